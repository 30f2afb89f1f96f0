from __future__ import annotations

import pytest

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local import explain, selftest, verdict
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.errors import EngineUnavailableError


def loads(events):
    return [event["extra_buffers"] for event in events.so_far() if event["what"] == "load"]


async def test_a_runtime_that_lives_is_asked_once(model, stub, events):
    for _ in range(2):
        verdict = await selftest.check(settings=Local(), model=model, command=stub())
        assert verdict.attempt == Attempt()
    assert loads(events) == [True]


async def test_a_runtime_that_lives_without_extra_buffers_says_so_with_the_build_line(model, stub, events):
    verdict = await selftest.check(settings=Local(), model=model, command=stub(dies="SIGILL", dies_while="extra_buffers"))
    assert verdict.attempt == Attempt(extra_buffers=False)
    assert explain.BUILD_LINE in verdict.message
    assert loads(events) == [True, False]


async def test_only_an_illegal_instruction_makes_a_verdict_that_lasts(model, stub):
    for dies, is_lasting in (("SIGABRT", False), ("SIGILL", True)):
        found = await selftest.check(settings=Local(), model=model, command=stub(dies=dies, dies_while="extra_buffers"))
        assert found.attempt == Attempt(extra_buffers=False)
        assert found.is_lasting is is_lasting
        verdict.forget()


async def test_a_runtime_that_dies_in_every_way_says_how_and_what_cures_it(model, stub):
    verdict = await selftest.check(settings=Local(), model=model, command=stub(dies="SIGILL"))
    assert verdict.attempt is None
    assert "illegal instruction" in verdict.message
    assert explain.BUILD_LINE in verdict.remedy


async def test_a_runtime_that_hangs_is_given_up(model, stub):
    verdict = await selftest.check(settings=Local(), model=model, command=stub(hangs=True), timeout_s=1.0)
    assert verdict.attempt is None
    assert "hung" in verdict.message


async def test_a_model_that_is_not_there_is_no_verdict_on_the_runtime(tmp_path, stub, events):
    with pytest.raises(EngineUnavailableError, match="does not exist"):
        await selftest.check(settings=Local(), model=tmp_path / "no.gguf", command=stub())
    assert loads(events) == []


async def test_the_build_is_told_without_loading_a_model(stub, events):
    build = await selftest.build_info(command=stub())
    assert build.system == "CPU : STUB = 1"
    assert loads(events) == []


async def test_a_build_that_cannot_tell_itself_is_an_error_in_words(tmp_path):
    with pytest.raises(EngineUnavailableError, match="cannot be started"):
        await selftest.build_info(command=[str(tmp_path / "nothing")])


async def test_what_the_library_prints_does_not_mix_with_the_verdict(model, stub):
    verdict = await selftest.check(settings=Local(), model=model, command=stub(prints=10_000))
    assert verdict.attempt == Attempt()
