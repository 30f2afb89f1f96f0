"""`monkeycode model`."""

from __future__ import annotations

import json
import sys

import pytest

from monkeycode_lsp.models import catalogue
from tests.unit.models import samples

# The smallest thing that is a GGUF file: magic, version 3, no tensors, no metadata.
EMPTY_GGUF = b"GGUF" + (3).to_bytes(4, "little") + bytes(16)


@pytest.fixture
def own(home):
    """A model that the catalogue does not know."""
    (home / "models").mkdir(parents=True)
    (home / "models" / "mine.gguf").write_bytes(EMPTY_GGUF)
    return home / "models" / "mine.gguf"


def test_list_shows_the_catalogue_and_what_is_here(run, own):
    lines = run("model", "list").stdout.splitlines()
    assert any(line.startswith(catalogue.DEFAULT_ID) and line.split()[-1] == "-" for line in lines)
    assert any(line.startswith("mine.gguf") and line.split()[-1] == "yes" for line in lines)


def test_list_as_json(run, own):
    rows = json.loads(run("model", "list", "--json").stdout)
    default = next(row for row in rows if row["id"] == catalogue.DEFAULT_ID)
    assert default["sha256"] == catalogue.default().sha256
    assert default["path"] is None
    assert rows[-1] == {"id": "mine.gguf", "bytes": len(EMPTY_GGUF), "path": str(own)}


def test_path_of_a_model_that_is_not_here_says_how_to_get_it(run):
    done = run("model", "path", "0.5b")
    assert done.exit_code == 1
    assert "monkeycode model pull" in done.stderr


def test_remove_asks_and_a_no_keeps_it(run, own):
    assert run("model", "remove", "mine.gguf", stdin="n\n").exit_code == 0
    assert own.exists()
    done = run("model", "remove", "mine.gguf", "--yes")
    assert done.exit_code == 0
    assert not own.exists()
    assert f"Removed {own}" in done.stdout


def test_a_model_of_ours_needs_no_ending(run, own):
    assert run("model", "path", "mine").stdout.strip() == str(own)
    assert run("model", "remove", "mine", "--yes").exit_code == 0
    assert not own.exists()


def test_path_blames_the_argument_and_not_the_setting(run):
    for name in ("7b", "nonesuch"):
        done = run("model", "path", name)
        assert done.stderr.startswith(f"Error: The argument names {name}, ")
        assert "local.model" not in done.stderr


def test_path_without_a_name_is_that_of_the_model_that_is_set(run, own, user_settings):
    user_settings('[local]\nmodel = "mine.gguf"\n')
    assert run("model", "path").stdout.strip() == str(own)


def test_remove_of_a_download_that_was_cut_off_takes_its_wheels_too(run, home):
    file = catalogue.default().file
    (home / "models" / f".{file}.wheels" / "work").mkdir(parents=True)
    (home / "models" / f".{file}.wheels" / "work" / "half").write_bytes(bytes(3_000_000))
    (home / "models" / f"{file}.part").write_bytes(bytes(2_000_000))
    done = run("model", "remove", catalogue.DEFAULT_ID, "--yes")
    assert "5 MB are free again." in done.stdout
    assert list((home / "models").iterdir()) == []


def test_recommend_names_a_model_and_the_reason(run):
    found = json.loads(run("model", "recommend", "--json").stdout)
    assert catalogue.lookup(found["id"]) is not None
    assert found["reason"]
    assert f"monkeycode model pull {found['id']}" in run("model", "recommend").stdout


def test_verify_without_models_says_so(run):
    done = run("model", "verify")
    assert done.exit_code == 0
    assert "No model is here" in done.stdout


def test_verify_of_a_changed_file_fails(run, home):
    (home / "models").mkdir(parents=True)
    (home / "models" / catalogue.default().file).write_bytes(EMPTY_GGUF)
    done = run("model", "verify")
    assert done.exit_code == 1
    assert "not Qwen2.5-Coder-0.5B-Instruct Q4_K_M as published" in done.stdout


def test_list_marks_the_default(run):
    (marked,) = [line for line in run("model", "list").stdout.splitlines() if " default " in line]
    assert marked.startswith(catalogue.DEFAULT_ID)


def test_recommend_says_that_the_model_is_here(run, home):
    entry = catalogue.find(json.loads(run("model", "recommend", "--json").stdout)["id"])
    (home / "models").mkdir(parents=True)
    (home / "models" / entry.file).write_bytes(EMPTY_GGUF)
    shown = run("model", "recommend").stdout
    assert "It is here." in shown
    assert "Fetch it" not in shown


def test_remove_of_what_is_not_here_fails_before_it_asks(run):
    done = run("model", "remove", "nosuch")
    assert done.exit_code == 1
    assert "Remove" not in done.output
    assert done.stderr.startswith("Error: No model called nosuch is in ")


def test_verify_without_a_terminal_is_few_lines(run, own):
    assert len(run("model", "verify", "mine.gguf").stdout.splitlines()) <= 3


@pytest.fixture
def small(home):
    """A model whose precision is known, among ours."""
    (home / "models").mkdir(parents=True)
    path = home / "models" / "small.gguf"
    path.write_bytes(samples.gguf({"general.file_type": 15}))
    return path


def test_convert_refuses_what_costs_quality_with_the_figures(run, small):
    done = run("model", "convert", "small.gguf", "--to", "q4_0")
    assert done.exit_code == 1
    assert "halved the fill-in-the-middle accuracy" in done.stderr
    assert "5 of 50" in done.stderr
    assert "--force" in done.stderr
    assert list(small.parent.iterdir()) == [small]


def test_convert_leaves_a_file_that_exists_alone(run, small, tmp_path):
    (tmp_path / "mine.gguf").write_text("mine", encoding="utf-8")
    done = run("model", "convert", small, "--output", tmp_path / "mine.gguf")
    assert done.exit_code == 1
    assert "exists already" in done.stderr
    assert (tmp_path / "mine.gguf").read_text(encoding="utf-8") == "mine"


def test_convert_of_what_is_not_here_says_so(run):
    done = run("model", "convert", "1.5b")
    assert done.exit_code == 1
    assert "SOURCE names 1.5b" in done.stderr
    assert "monkeycode model pull" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [(["0.5b", "q4_k_m"], "--to q4_k_m"), (["q4"], "--to q4_k_m"), (["Q8_0"], "--to q8_0"), (["0.5b", "fp16"], "--to f16")],
)
def test_a_precision_in_the_place_of_a_model_is_not_taken_for_one(run, arguments, option):
    done = run("model", "convert", *arguments)
    assert done.exit_code == 2
    assert f"Did you mean `{option}`?" in done.stderr


def test_convert_takes_one_model(run):
    assert "One model at a time" in run("model", "convert", "0.5b", "7b").stderr


def test_convert_without_the_full_engine_says_how_to_get_it(run, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    done = run("model", "convert", "small.gguf")
    assert done.exit_code == 1
    assert "monkeycode engine install" in done.stderr
    assert list(small.parent.iterdir()) == [small]
