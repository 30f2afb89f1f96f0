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
from monkeycode_lsp.engines.local.host import control, registry, rendezvous
from monkeycode_lsp.engines.local.native import NativeEngine

PARENT = Path(__file__).with_name("parent.py")
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


SETTINGS = Local(linger_seconds=0)
"""The process goes with its last client, so that no test waits for it."""


@pytest.fixture
async def engine(model, stub):
    """Makes engines around the stub; closes them, and waits until their processes are gone."""
    engines = []

    def make(*, settings=SETTINGS, notify=lambda message: None, model=model, command=None, pauses_s=(0.0,), confirm_s=3.0, **more):
        how = {name: more.pop(name) for name in ("give_up_s", "patience", "load_timeout_s", "loopback") if name in more}
        how = {"load_timeout_s": 60.0, "loopback": False} | how
        command = command or stub(**more)
        made = NativeEngine(
            settings=settings, model=model, notify=notify, command=command, pauses_s=pauses_s, confirm_s=confirm_s, **how
        )  # fmt: skip
        engines.append(made)
        return made

    yield make
    for made in engines:
        await made.aclose()
    await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))


@pytest.fixture
def empty():
    """Waits until nothing of any process lies about any more."""

    async def empty():
        async with asyncio.timeout(30):
            while [path.name for path in rendezvous.folder().iterdir()]:  # noqa: ASYNC110 - files cannot be awaited
                await asyncio.sleep(0.01)
        rendezvous.places()  # takes an empty temporary folder along

    return empty


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


@pytest.fixture
def parent(model, stub):
    """Starts processes that have an engine of their own; ends them."""
    processes = []

    async def start(linger_s, **behaviour):
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, str(PARENT), str(linger_s), str(model), *stub(**behaviour)]
        processes.append(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
        return processes[-1]

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
