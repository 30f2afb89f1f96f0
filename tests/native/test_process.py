"""The native engine whole: the editor's side, the child process and the real model."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp", reason="needs the native engine")

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Control, Finish, Plain, Priority, Prompt
from monkeycode_lsp.engines.local import explain, selftest
from monkeycode_lsp.engines.local.host import control, registry, rendezvous
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.native import NativeEngine
from monkeycode_lsp.errors import EngineRefusedError, EngineUnavailableError

pytestmark = [pytest.mark.model, pytest.mark.native]

SETTINGS = Local(context_tokens=2048, linger_seconds=0)
FIM = (
    Control("<|fim_prefix|>"),
    Plain("def is_even(n):\n    return "),
    Control("<|fim_suffix|>"),
    Plain("\n\nprint(is_even(4))\n"),
    Control("<|fim_middle|>"),
)


@pytest.fixture
async def engine(model_path):
    engine = NativeEngine(settings=SETTINGS, model=model_path, notify=lambda message: None)
    yield engine
    await engine.aclose()
    await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))


def prompt(*segments, **more):
    return Prompt(segments=segments, prefix="", suffix="", **{"max_tokens": 24, **more})


async def chunks(engine, asked):
    async with aclosing(engine.stream(asked)) as stream:
        return [chunk async for chunk in stream]


async def test_a_hole_in_real_code_is_filled_and_the_family_is_known(engine):
    model = await engine.ready()
    assert model.family is not None
    assert model.family.name.startswith("qwen")
    said = await chunks(engine, prompt(*FIM, stop=("\n",)))
    assert "".join(chunk.text for chunk in said) == "n % 2 == 0"
    assert said[-1].finish is Finish.STOP
    assert said[-1].usage.generated == sum(chunk.n_tokens for chunk in said) + 1  # the stop string's token gives no text


async def test_the_same_prompt_again_reads_one_token_and_says_the_same(engine):
    first = await chunks(engine, prompt(*FIM))
    again = await chunks(engine, prompt(*FIM))
    # Pieces may be cut elsewhere: what has been said once is proposed as a draft.
    assert "".join(chunk.text for chunk in again) == "".join(chunk.text for chunk in first)
    assert again[-1].usage.read == 1


async def test_a_second_window_shares_the_process_and_what_it_has_read(engine, model_path):
    await chunks(engine, prompt(*FIM))
    other = NativeEngine(settings=SETTINGS, model=model_path, notify=lambda message: None)
    said = await chunks(other, prompt(*FIM))
    [seen] = await control.look()
    await other.aclose()
    assert said[-1].usage.read == 1
    assert (seen.status.clients, seen.status.running, seen.status.totals.asks) == (2, 0, 2)
    assert seen.status.totals.generated > 0


async def test_a_prompt_that_is_only_read_makes_the_next_one_warm(engine):
    assert (await engine.ready()).takes_background
    said = await chunks(engine, prompt(*FIM, max_tokens=0, priority=Priority.WARM_UP))
    assert "".join(chunk.text for chunk in said) == ""
    assert (await chunks(engine, prompt(*FIM)))[-1].usage.read <= 1


async def test_a_long_prompt_is_left_at_once_and_what_was_read_is_kept(engine):
    await engine.ready()
    began = time.perf_counter()
    await chunks(engine, prompt(Plain("x = 1\n" * 60), max_tokens=1))
    some_s = time.perf_counter() - began
    long = prompt(Plain("".join(f"value_{n} = compute({n}, {n * 7})\n" for n in range(110))))
    reading = asyncio.create_task(chunks(engine, long))
    # Long enough for a chunk, too short for all of them.
    await asyncio.wait([reading], timeout=1.5 * some_s)
    assert not reading.done()
    reading.cancel()
    began = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert time.perf_counter() - began < 1.0
    usage = (await chunks(engine, long))[-1].usage
    assert usage.reused > 0
    assert usage.reused % 128 == 0


async def test_a_marker_of_another_family_is_refused_in_words(engine):
    with pytest.raises(EngineRefusedError, match="<PRE>") as caught:
        await chunks(engine, prompt(Control("<PRE>"), Plain("x")))
    assert "template" in caught.value.remedy
    assert (await chunks(engine, prompt(*FIM, stop=("\n",))))[-1].finish is Finish.STOP


async def test_a_file_that_only_begins_like_a_model_is_named(tmp_path):
    path = tmp_path / "half.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    engine = NativeEngine(settings=Local(), model=path, notify=lambda message: None)
    with pytest.raises(EngineUnavailableError, match="cannot be loaded") as caught:
        await engine.ready()
    assert str(path) in caught.value.message
    await engine.aclose()
    assert list(rendezvous.folder().iterdir()) == []


async def test_a_build_that_dies_of_an_illegal_instruction_runs_the_model_without_extra_buffers(model_path):
    told = []
    command = [sys.executable, str(Path(__file__).with_name("amx_worker.py"))]
    engine = NativeEngine(settings=Local(context_tokens=512, linger_seconds=0), model=model_path, notify=told.append, command=command)
    said = await chunks(engine, prompt(*FIM, stop=("\n",)))
    await engine.aclose()
    assert "".join(chunk.text for chunk in said) == "n % 2 == 0"
    assert len(told) == 1
    assert explain.BUILD_LINE in told[0]


async def test_the_runtime_survives_its_self_test(model_path):
    verdict = await selftest.check(settings=Local(context_tokens=256), model=model_path)
    assert verdict.attempt in {Attempt(), Attempt(extra_buffers=False)}


async def test_the_build_tells_its_processor_features():
    build = await selftest.build_info()
    assert "CPU" in build.system
    assert build.version
