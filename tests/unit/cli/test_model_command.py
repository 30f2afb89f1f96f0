"""`monkeycode model`."""

from __future__ import annotations

import json

import pytest

from monkeycode_lsp.models import catalogue

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
