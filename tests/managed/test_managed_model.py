"""The managed engine with the real model: xllamacpp in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.domain import Chunk, Control, Plain, Prompt
from monkeycode_lsp.engines.local import managed
from monkeycode_lsp.engines.local.managed import ManagedEngine
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError

pytestmark = [
    pytest.mark.model,
    pytest.mark.managed,
    pytest.mark.skipif(not managed.has_package(), reason="xllamacpp is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals"),
]

SETTINGS = config.Local(context_tokens=2048, slots=2, threads=2)
CODE = "def is_even(n):\n    return "


@pytest.fixture
async def engine(model_path: Path) -> AsyncIterator[ManagedEngine]:
    made = ManagedEngine(settings=SETTINGS, model=model_path, notify=print)
    yield made
    await made.aclose()


def fim(prefix: str = CODE, suffix: str = "\n", **more: object) -> Prompt:
    segments = (Control("<|fim_prefix|>"), Plain(prefix), Control("<|fim_suffix|>"), Plain(suffix), Control("<|fim_middle|>"))
    return msgspec.structs.replace(Prompt(segments=segments, prefix=prefix, suffix=suffix, max_tokens=8), **more)


async def chunks(engine: ManagedEngine, asked: Prompt) -> list[Chunk]:
    async with aclosing(engine.stream(asked)) as stream:
        return [chunk async for chunk in stream]


def alive(group: int) -> bool:
    """Whether any process of the group runs; one that is dead and waits to be collected does not."""
    if not Path("/proc/self/stat").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 0)
            return True
        return False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgid = stat.read_text().rpartition(")")[2].split()[:3]
            if int(pgid) == group and state != "Z":
                return True
    return False


async def gone(pid: int, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_it_completes_code_reuses_the_prompt_and_leaves_nothing_behind(engine: ManagedEngine, model_path: Path) -> None:
    model = await engine.ready()
    assert model.name == model_path.name
    assert model.context_tokens == 2048
    assert model.family is not None
    assert model.family.name == "qwen2.5-coder"  # by its vocabulary: the file may have any name
    first = await chunks(engine, fim())
    assert "n" in "".join(chunk.text for chunk in first)
    assert [chunk.finish is not None for chunk in first] == [False] * (len(first) - 1) + [True]
    again = await chunks(engine, fim(CODE + "n"))
    usage = again[-1].usage
    assert usage is not None
    assert usage.reused is not None
    assert usage.reused > 0
    pid = engine.pid
    assert pid is not None
    assert alive(pid)
    await engine.aclose()
    assert not alive(pid)
    await engine.aclose()


async def test_nobody_without_the_key_is_answered(engine: ManagedEngine) -> None:
    await engine.ready()
    assert engine._running is not None
    url = engine._running.endpoint._address.url("/props")
    with pytest.raises(urllib.error.HTTPError) as caught:
        await asyncio.to_thread(urllib.request.urlopen, url)
    with caught.value as reply:
        assert reply.code == 401


async def test_a_cancel_while_the_prompt_is_read_stops_the_reading(model_path: Path) -> None:
    long = "".join(f"value_{number} = {number} * compute(value_{number - 1})\n" for number in range(45))
    one_slot = msgspec.structs.replace(SETTINGS, slots=1)
    engine = ManagedEngine(settings=one_slot, model=model_path, notify=print)
    try:
        await engine.ready()
        task = asyncio.create_task(chunks(engine, fim(long, max_tokens=1)))
        await busy(engine)
        task.cancel()
        await asyncio.wait({task})
        # There is one slot: had the first reading gone on to its end, this one would find everything read.
        usage = (await chunks(engine, fim(long, max_tokens=1)))[-1].usage
    finally:
        await engine.aclose()
    assert usage is not None
    assert usage.read is not None
    assert usage.read > 128


async def busy(engine: ManagedEngine) -> None:
    """Until the server works on something."""
    assert engine._running is not None
    transport = await engine._running.endpoint._open()
    while True:
        reply = await transport.send("/slots")
        slots = msgspec.json.decode(await reply.body())
        await reply.aclose()
        if any(slot["is_processing"] for slot in slots):
            return


async def test_a_server_that_was_killed_breaks_the_answer_and_is_started_again(engine: ManagedEngine) -> None:
    await engine.ready()
    first = engine.pid
    assert first is not None
    stream = engine.stream(fim(max_tokens=400))
    await anext(stream)
    os.killpg(first, signal.SIGKILL)
    with pytest.raises(StreamBrokenError, match="died"):
        async for _ in stream:
            pass
    assert (await engine.ready()).name
    assert engine.pid != first
    assert (await chunks(engine, fim(max_tokens=2)))[-1].finish is not None
    assert not alive(first)


HOST = """
import asyncio, os, pathlib, sys
from monkeycode_lsp import config
from monkeycode_lsp.engines.local.managed import ManagedEngine

async def main():
    model = pathlib.Path(sys.argv[1])
    engine = ManagedEngine(settings=config.Local(context_tokens=512, slots=1), model=model, notify=lambda text: None)
    if sys.argv[2] == "loading":
        loading = asyncio.create_task(engine.ready())
        while not has_opened(model):
            await asyncio.sleep(0.01)
        assert not loading.done()
    else:
        await engine.ready()
    print(*children("self"), flush=True)
    await asyncio.sleep(60)

def children(pid):
    pid = os.readlink(f"/proc/{pid}") if pid == "self" else pid
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

def has_opened(model):
    servers = [server for keeper in children("self") for server in children(keeper)]
    return any(model.name in pathlib.Path(f"/proc/{server}/maps").read_text() for server in servers)

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("when", ["loading", "ready"])
async def test_the_server_dies_with_us_even_if_we_are_killed_while_it_loads(model_path: Path, when: str) -> None:
    pipe = asyncio.subprocess.PIPE
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(model_path), when, stdout=pipe)
    try:
        assert host.stdout is not None
        output = (await host.stdout.readline()).split()
        assert len(output) == 1  # exactly one child, and nothing but our own print on stdout
        keeper = int(output[0])
        assert alive(keeper)
    finally:
        host.kill()
        await host.wait()
    assert await gone(keeper, 2)


async def test_a_broken_model_file_is_named_with_the_setting(tmp_path: Path, model_path: Path) -> None:
    with model_path.open("rb") as file:
        for name, content in (("cut.gguf", file.read(2_000_000)), ("junk.gguf", b"not a model")):
            broken = tmp_path / name
            broken.write_bytes(content)
            engine = ManagedEngine(settings=SETTINGS, model=broken, notify=print)
            with pytest.raises(EngineUnavailableError, match=rf"{name}.*local\.model"):
                await engine.ready()
            await engine.aclose()


async def test_the_self_test_loads_the_model_and_the_library_says_what_it_is(model_path: Path) -> None:
    assert (await managed.self_test(settings=SETTINGS, model=model_path)).family == prompt.by_name("qwen2.5-coder")
    build = await managed.about()
    assert build.version
    assert build.devices
