from __future__ import annotations

import time

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local import verdict
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.verdict import Verdict


def test_a_verdict_is_remembered_under_its_key():
    lives = Verdict(attempt=Attempt(extra_buffers=False), at=0.0)
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


def test_a_verdict_on_a_crowded_gpu_or_a_failure_holds_for_a_day_only():
    for attempt in (Attempt(gpu_share=0.5), None):
        verdict.remember("old", Verdict(attempt=attempt, at=time.time() - 90_000))
        verdict.remember("new", Verdict(attempt=attempt, at=time.time()))
        assert verdict.recall("old") is None
        assert verdict.recall("new") is not None


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
