from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.local.host import control, registry, rendezvous
from monkeycode_lsp.engines.local.managed.engine import ManagedEngine
from tests.managed.scene import SETTINGS, Notes, header


@pytest.fixture(autouse=True)
def own_home(request, tmp_path, monkeypatch):
    """The model may be the user's; what the engine writes beside it is not."""
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "home"))


@pytest.fixture
def told():
    return []


@pytest.fixture
async def make(tmp_path, told):
    """Makes engines whose server behaves as told; closes them, and waits until their processes are gone."""
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("stand_in.py").read_text())
    program.chmod(0o700)
    engines = []

    def one(behaviour="", *, settings=SETTINGS, model=tmp_path / "model.gguf", **more):
        if not model.exists():
            model.write_bytes(header(behaviour))
        more = {"pauses_s": (0.0,), "load_timeout_s": 60.0, "loopback": False, "server": str(program)} | more
        engines.append(ManagedEngine(settings=settings, model=model, notify=told.append, **more))
        return engines[-1]

    yield one
    for engine in engines:
        await engine.aclose()
    await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path / "model.gguf.log")


@pytest.fixture
def prompt():
    return lambda text="a", **more: msgspec.structs.replace(Prompt(segments=(Plain(text),), prefix=text, suffix=""), **more)


@pytest.fixture
def say(prompt):
    """The whole answer of an engine."""

    async def say(engine, asked=None):
        async with aclosing(engine.stream(asked or prompt())) as stream:
            return "".join([chunk.text async for chunk in stream])

    return say


@pytest.fixture
def gone():
    """Waits until a process is no more."""

    async def gone(pid, within_s=10):
        async with asyncio.timeout(within_s):
            while control.is_running(pid):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
                await asyncio.sleep(0.01)

    return gone


@pytest.fixture
def empty():
    """Waits until nothing of any process lies about any more."""

    async def empty():
        async with asyncio.timeout(10):
            while [path.name for path in rendezvous.folder().iterdir()]:  # noqa: ASYNC110 - files cannot be awaited
                await asyncio.sleep(0.01)

    return empty
