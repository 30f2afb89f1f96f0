"""Converting a model, with a stand-in for llama.cpp."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monkeycode_lsp.engines.local import convert
from monkeycode_lsp.errors import EngineUnavailableError, ModelError
from tests.unit.models import samples

STUB = str(Path(__file__).with_name("stub_quantize.py"))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "tiny-q4_k_m.gguf"
    path.write_bytes(samples.gguf({"general.file_type": 15}, n_tensors=2))
    return path


@pytest.fixture
def target(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "tiny-q8_0.gguf"


def how(name):
    return (sys.executable, STUB, name)


def plan(source, target, precision="q8_0", **more):
    return convert.plan(source, precision, output=target, **more)


def test_the_result_has_its_name_only_when_it_is_whole(source, target):
    heard = []
    size = convert.run(plan(source, target), threads=1, progress=lambda done, total: heard.append((done, total)), command=how("copies"))
    assert target.read_bytes() == source.read_bytes()
    assert size == source.stat().st_size
    assert list(target.parent.iterdir()) == [target]
    assert heard
    assert all(0 <= done <= total for done, total in heard)
    assert target.stat().st_mode == source.stat().st_mode


@pytest.mark.parametrize(("name", "words"), [("refuses", "tensor is strange"), ("aborts", "stopped by signal 6")])
def test_a_conversion_that_fails_leaves_nothing_and_says_why(source, target, name, words):
    with pytest.raises(ModelError, match=words):
        convert.run(plan(source, target), threads=1, command=how(name))
    assert not list(target.parent.iterdir())


def test_a_result_that_lacks_weights_is_thrown_away(source, target, tmp_path, monkeypatch):
    (tmp_path / "short").write_bytes(samples.gguf(n_tensors=1))
    monkeypatch.setenv("STUB_RESULT", str(tmp_path / "short"))
    with pytest.raises(ModelError, match="did not write all"):
        convert.run(plan(source, target), threads=1, command=how("replaces"))
    assert not list(target.parent.iterdir())


def test_an_interrupt_leaves_nothing(source, target):
    def interrupted(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert.run(plan(source, target), threads=1, progress=interrupted, command=how("works on"))
    assert not list(target.parent.iterdir())


def test_what_a_killed_conversion_left_goes_with_the_next_one_and_nothing_else(source, target):
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    stale = target.with_name(f".{target.name}-{dead.pid}-abc.part")
    others = [
        target.with_name(name)
        for name in (f".{target.name}-{os.getpid()}-abc.part", f".other.gguf-{dead.pid}-abc.part", f".{target.name}-mine.part")
    ]
    for path in (stale, *others):
        path.write_bytes(b"GGUF half")
    convert.run(plan(source, target), threads=1, command=how("copies"))
    assert sorted(target.parent.iterdir()) == sorted([target, *others])


def test_a_target_that_comes_into_being_meanwhile_is_left_alone(source, target):
    work = plan(source, target)
    target.write_text("someone else's", encoding="utf-8")
    with pytest.raises(ModelError, match="left alone"):
        convert.run(work, threads=1, command=how("copies"))
    assert target.read_text(encoding="utf-8") == "someone else's"
    assert list(target.parent.iterdir()) == [target]


def test_a_target_that_exists_is_refused_beforehand(source, target):
    target.touch()
    with pytest.raises(ModelError, match="exists already") as caught:
        plan(source, target)
    assert "--output" in caught.value.remedy


def test_too_little_room_is_told_beforehand_with_figures(source, target):
    with pytest.raises(ModelError, match=r"takes about 0 MB, and .* has 0 MB left") as caught:
        plan(source, target, free_bytes=lambda folder: 10)
    assert "--output" in caught.value.remedy


def test_a_folder_that_is_not_there_is_told(source, tmp_path):
    with pytest.raises(ModelError, match="There is no folder"):
        plan(source, tmp_path / "none" / "x.gguf")


def test_a_precision_that_costs_quality_is_refused_with_the_figures_and_can_be_forced(source, target):
    with pytest.raises(ModelError, match=r"halved .* 5 of 50") as caught:
        plan(source, target, "q4_0")
    assert "--force" in caught.value.remedy
    assert plan(source, target, "q4_0", force=True).precision == "q4_0"


def test_what_is_no_model_is_refused(tmp_path, target):
    (tmp_path / "text.gguf").write_text("no model", encoding="utf-8")
    with pytest.raises(ModelError, match="not a GGUF"):
        plan(tmp_path / "text.gguf", target)
    (tmp_path / "adapter.gguf").write_bytes(samples.gguf({"general.type": "adapter"}))
    with pytest.raises(ModelError, match="is an adapter"):
        plan(tmp_path / "adapter.gguf", target)


def test_without_a_name_the_result_lies_among_our_models_and_tells_what_was_done(source, home):
    work = convert.plan(source, "q8_0")
    assert work.target == home / "models" / "tiny-q4_k_m-to-q8_0.gguf"


def test_without_the_full_engine_it_says_how_to_get_it(source, target, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(EngineUnavailableError, match="needs the full engine"):
        convert.run(plan(source, target), threads=1)
    assert not list(target.parent.iterdir())
