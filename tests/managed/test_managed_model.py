"""The managed engine with the real model: xllamacpp in a process of its own, shared."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.error
import urllib.request
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.domain import Control, Plain, Prompt
from monkeycode_lsp.engines.local.host import control, registry
from monkeycode_lsp.engines.local.managed import engine as managed
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.engines.local.managed.engine import ManagedEngine
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError

pytestmark = [
    pytest.mark.model,
    pytest.mark.managed,
    pytest.mark.skipif(not managed_library.has_package(), reason="xllamacpp is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals"),
]

SETTINGS = config.Local(context_tokens=2048, slots=4, linger_seconds=0)
CODE = "def is_even(n):\n    return "
N_LONG = 45


@pytest.fixture
async def engine(model_path):
    """Makes engines; closes them, and waits until their processes are gone."""
    engines = []

    def make(**more):
        settings = msgspec.structs.replace(SETTINGS, **more)
        engines.append(ManagedEngine(settings=settings, model=model_path, notify=print, pauses_s=(0.0,)))
        return engines[-1]

    yield make
    for made in engines:
        await made.aclose()
    await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))


def fim(prefix=CODE, suffix="\n", **more):
    segments = (Control("<|fim_prefix|>"), Plain(prefix), Control("<|fim_suffix|>"), Plain(suffix), Control("<|fim_middle|>"))
    return msgspec.structs.replace(Prompt(segments=segments, prefix=prefix, suffix=suffix, max_tokens=8), **more)


def long():
    return "".join(f"value_{number} = {number} * compute(value_{number - 1})\n" for number in range(N_LONG))


async def chunks(engine, asked):
    async with aclosing(engine.stream(asked)) as stream:
        return [chunk async for chunk in stream]


async def busy(engine):
    """Until the server has read a part of a prompt."""
    endpoint = (await engine._tenant.up())[1].endpoint
    while not any(slot["is_processing"] for slot in msgspec.json.decode(await endpoint.look("/slots"))):  # noqa: ASYNC110 - a server's page
        await asyncio.sleep(0.01)


async def test_two_engines_share_one_server_its_figures_and_its_prompts(engine, model_path):
    first, second = engine(), engine()
    model, other = await asyncio.gather(first.ready(), second.ready())
    assert model == other
    assert model.context_tokens == 2048
    assert model.family is not None
    assert model.family.name == "qwen2.5-coder"  # by its vocabulary: the file may have any name
    assert first._tenant.running.link.pid == second._tenant.running.link.pid
    whole = await chunks(first, fim())
    assert "n" in "".join(chunk.text for chunk in whole)
    assert [chunk.finish is not None for chunk in whole] == [False] * (len(whole) - 1) + [True]
    usage = whole[-1].usage
    assert (usage.reused, usage.generated) == (0, 8)
    again = (await chunks(second, fim(CODE + "n")))[-1].usage
    assert again.reused > 0
    assert again.read < usage.read
    (seen,) = await control.look()
    assert (seen.status.clients, seen.status.totals.asks, seen.status.totals.generated) == (2, 2, 16)


async def test_four_asks_at_once_are_answered_side_by_side(engine):
    made = engine()
    await made.ready()
    order = []

    async def ask(number):
        async with aclosing(made.stream(fim(f"def function_{number}(n):\n    return ", max_tokens=24))) as stream:
            async for chunk in stream:
                order.append((number, chunk.finish is not None))  # noqa: PERF401 - in the order in which they come

    await asyncio.gather(*map(ask, range(4)))
    ends = [at for at, (_, is_end) in enumerate(order) if is_end]
    begins = [order.index((number, False)) for number in range(4)]
    assert max(begins) < min(ends)


async def test_the_figures_of_an_answer_that_is_cut_are_known(engine):
    made = engine()
    stream = made.stream(fim(max_tokens=400))
    first = await anext(stream)
    await stream.aclose()
    assert first.usage.read > 0
    (seen,) = await control.look()
    totals = seen.status.totals
    assert (totals.asks, totals.cancelled, totals.read, totals.generated) == (1, 1, first.usage.read, 1)


async def test_nobody_without_the_key_is_answered(engine):
    made = engine()
    await made.ready()
    url = made._tenant.running.link.serving.url
    with pytest.raises(urllib.error.HTTPError) as caught:
        await asyncio.to_thread(urllib.request.urlopen, f"{url}/props")
    with caught.value as reply:
        assert reply.code == 401


async def test_a_cancel_while_the_prompt_is_read_frees_the_slot_within_about_a_chunk(engine):
    made = engine(slots=1)
    await made.ready()
    reading = asyncio.create_task(chunks(made, fim(long(), max_tokens=1)))
    await busy(made)
    reading.cancel()
    await asyncio.wait({reading})
    # There is one slot: had the first reading gone on to its end, this one would find everything read.
    usage = (await chunks(made, fim(long(), max_tokens=1)))[-1].usage
    assert usage.reused > 0  # what had been read is kept
    assert usage.read > 128


async def test_settings_reach_the_server(engine, model_path):
    made = engine(batch_tokens=32, kv_type="q8_0", mmap=False, main_gpu=0, tensor_split=(1.0,))
    assert "n" in "".join(chunk.text for chunk in await chunks(made, fim()))


async def test_a_server_that_was_killed_breaks_the_answer_and_is_started_again(engine):
    made = engine()
    stream = made.stream(fim(max_tokens=400))
    await anext(stream)
    os.kill(made._tenant.running.link.pid, signal.SIGKILL)
    with pytest.raises(StreamBrokenError):
        async for _ in stream:
            pass
    assert (await chunks(made, fim(max_tokens=2)))[-1].finish is not None


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
async def test_the_server_dies_with_its_host_even_while_it_loads(engine, model_path):
    made = engine()
    loading = asyncio.create_task(made.ready())
    while not (servers := [pid for _, note in registry.all_notes() for pid in children(note.pid) if has_opened(pid, model_path)]):  # noqa: ASYNC110 - a process that is not our child
        await asyncio.sleep(0.01)
    assert not loading.done()
    ((_, note),) = registry.all_notes()
    await made.aclose()
    os.kill(note.pid, signal.SIGKILL)
    async with asyncio.timeout(5):
        while control.is_running(servers[0]):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
            await asyncio.sleep(0.01)
    await asyncio.wait([loading])


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def has_opened(pid, model):
    try:
        return model.name in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


async def test_a_broken_model_file_is_named_with_the_setting(tmp_path, model_path):
    broken = tmp_path / "cut.gguf"
    with model_path.open("rb") as file:
        broken.write_bytes(file.read(2_000_000))
    made = ManagedEngine(settings=SETTINGS, model=broken, notify=print)
    with pytest.raises(EngineUnavailableError, match=r"cut\.gguf.*local\.model"):
        await made.ready()
    await made.aclose()


async def test_the_self_test_loads_the_model_and_the_library_says_what_it_is(model_path):
    assert (await managed.self_test(settings=SETTINGS, model=model_path)).family == prompt.by_name("qwen2.5-coder")
    about = await managed_library.about()
    assert about.version
    assert about.devices
