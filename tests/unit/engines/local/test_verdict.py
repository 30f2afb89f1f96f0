from __future__ import annotations

import os
import time

import msgspec
import pytest

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local import verdict
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.verdict import Verdict


def test_a_verdict_is_remembered_under_its_key():
    lives = Verdict(attempt=Attempt(extra_buffers=False), at=0.0, is_illegal_instruction=True)
    verdict.remember("a", lives)
    verdict.remember("b", Verdict(attempt=Attempt(), at=0.0))
    assert verdict.recall("a") == lives
    assert verdict.recall("c") is None


def test_a_key_follows_model_and_layers(model):
    name = verdict.key(model, gpu_layers=-1)
    assert name == verdict.key(model, gpu_layers=-1)
    assert name != verdict.key(model, gpu_layers=0)
    model.write_bytes(b"GGUF")
    assert name != verdict.key(model, gpu_layers=-1)


PASSING = [
    Verdict(attempt=Attempt(gpu_share=0.5), at=0.0),
    Verdict(attempt=Attempt(extra_buffers=False), at=0.0),
    Verdict(attempt=Attempt(extra_buffers=False, gpu_share=0.5), at=0.0, is_illegal_instruction=True),
    Verdict(attempt=None, at=0.0),
]
LASTING = [
    Verdict(attempt=Attempt(), at=0.0),
    Verdict(attempt=Attempt(extra_buffers=False), at=0.0, is_illegal_instruction=True),
]


@pytest.mark.parametrize("passing", PASSING)
def test_what_may_have_been_a_chance_holds_for_a_day_only(passing):
    verdict.remember("old", msgspec.structs.replace(passing, at=time.time() - 90_000))
    verdict.remember("new", msgspec.structs.replace(passing, at=time.time()))
    assert verdict.recall("old") is None
    assert verdict.recall("new") is not None


def test_what_may_have_been_a_chance_is_forgotten_when_told_and_the_rest_is_not():
    for n, known in enumerate([*PASSING, *LASTING]):
        verdict.remember(str(n), msgspec.structs.replace(known, at=time.time()))
    verdict.forget()
    assert [verdict.recall(str(n)) is None for n in range(6)] == [True] * 4 + [False] * 2


def test_a_key_and_a_message_may_name_a_file_whose_name_is_no_text(tmp_path):
    model = tmp_path / os.fsdecode(b"m\xfc.gguf")
    model.write_bytes(b"GGUF")
    name = verdict.key(model, gpu_layers=0)
    assert name != verdict.key(tmp_path / "m.gguf", gpu_layers=0)
    failed = Verdict(attempt=None, at=time.time(), message=f"{model} is broken.")
    verdict.remember(name, failed)
    assert verdict.recall(name) == failed


def test_a_broken_file_is_as_good_as_none():
    folders.private(folders.cache()).joinpath("engine-verdicts.json").write_text("{")
    assert verdict.recall("a") is None
    verdict.remember("a", Verdict(attempt=Attempt(), at=0.0))
    assert verdict.recall("a") is not None


def test_only_the_newest_are_kept():
    for n in range(80):
        verdict.remember(str(n), Verdict(attempt=Attempt(), at=0.0))
    assert verdict.recall("0") is None
    assert verdict.recall("79") is not None
    assert len(list(folders.cache().iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "plain"))
    verdict.remember("a", Verdict(attempt=Attempt(), at=0.0))
    assert verdict.recall("a") is None


def test_crashes_are_counted_for_the_attempt_that_is_in_use():
    lives = Verdict(attempt=Attempt(), at=0.0)
    verdict.remember("a", lives)
    verdict.crashed("a", Attempt(gpu_share=0.5))
    assert verdict.recall("a") == lives
    for _ in range(20):
        verdict.crashed("a", Attempt())
    crashes = verdict.recall("a").crashes
    assert 2 <= len(crashes) <= 8
    assert time.time() - crashes[-1] < 60
