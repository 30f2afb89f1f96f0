from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.local.native import NativeEngine

STUB = Path(__file__).with_name("stub_worker.py")


class Events:
    """What the stub tells, in order, over however many processes."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)
        # Read and write: opening does not wait for the other side, and there is no end between two writers.
        self._handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""

    async def next(self):
        while b"\n" not in self._rest:
            readable = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._handle, readable.set)
            try:
                await asyncio.wait_for(readable.wait(), 30)
            finally:
                loop.remove_reader(self._handle)
            self._rest += os.read(self._handle, 65536)
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def so_far(self):
        """Everything told and not read yet."""
        with suppress(BlockingIOError):
            self._rest += os.read(self._handle, 65536)
        lines, self._rest = self._rest, b""
        return [json.loads(line) for line in lines.splitlines()]

    def close(self):
        os.close(self._handle)


@pytest.fixture
def events(tmp_path):
    events = Events(tmp_path / "events")
    yield events
    events.close()


@pytest.fixture
def model(tmp_path):
    """A file that passes for a model."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(1000))
    return path


@pytest.fixture
def stub(events):
    """The command of a worker that behaves as told."""
    return lambda **behaviour: [sys.executable, str(STUB), json.dumps({"events": str(events.path), **behaviour})]


@pytest.fixture
async def engine(model, stub):
    """Makes engines around the stub; closes them."""
    engines = []

    def make(
        *,
        settings=None,
        notify=lambda message: None,
        model=model,
        command=None,
        pauses_s=(0.0,),
        confirm_s=3.0,
        load_timeout_s=60.0,
        loopback=False,
        **behaviour,
    ):
        engines.append(
            NativeEngine(
                settings=settings or Local(),
                model=model,
                notify=notify,
                command=command or stub(**behaviour),
                pauses_s=pauses_s,
                confirm_s=confirm_s,
                load_timeout_s=load_timeout_s,
                loopback=loopback,
            )
        )
        return engines[-1]

    yield make
    for made in engines:
        await made.aclose()


@pytest.fixture
def prompt():
    def make(text="x", **more):
        return Prompt(segments=(Plain(text),), prefix=text, suffix="", session=text, **more)

    return make


@pytest.fixture
def say():
    """The whole answer of an engine."""

    async def say(engine, prompt):
        async with aclosing(engine.stream(prompt)) as stream:
            return "".join([chunk.text async for chunk in stream])

    return say
