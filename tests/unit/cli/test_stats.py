"""`monkeycode stats`."""

from __future__ import annotations

import json
import time

import pytest

from monkeycode_lsp import folders
from monkeycode_lsp.domain import Outcome, OutcomeKind
from monkeycode_lsp.observe.outcomes import FOLDER, Outcomes

QUIET = "The model was not sure enough (\N{MINUS SIGN}1.9 per token; setting completion.silence)."


@pytest.fixture
def worked(run):
    """A day of work, and one ask of long ago."""
    del run  # sets the home
    kept = Outcomes(folders.state() / FOLDER)
    rows = [
        {
            "fate": "accepted",
            "confidence": -0.1,
            "n_shown": 10,
            "n_taken": 10,
            "kept": {"30": 1.0},
            "model": "Qwen [small]",
            "language": "python",
        },
        {"fate": "ignored", "confidence": -0.2, "n_shown": 10, "model": "Qwen [small]", "language": "python"},
        {"kind": OutcomeKind.QUIET, "reason": QUIET, "model": "Qwen [small]", "language": "go"},
        {"kind": OutcomeKind.SUPERSEDED, "reason": "A newer request took over."},
        {"kind": OutcomeKind.GATED, "reason": "The cursor stands inside a word.", "at": time.time() - 10 * 86_400, "language": "go"},
    ]
    for number, row in enumerate(rows):
        known = {
            "id": number,
            "at": time.time(),
            "kind": OutcomeKind.SHOWN,
            "reason": "Shown.",
            "total_ms": 50.0,
            "stages_ms": {"gate": 1.0},
        }
        kept.add(Outcome(**{**known, **row}))
    kept.save()


def test_nothing_asked_yet_is_said(run):
    done = run("stats")
    assert done.exit_code == 0
    assert done.stdout.startswith("No editor has asked yet.")
    assert "in the last 3 days" in run("stats", "--days", "3").stdout


def test_the_rates_are_told(run, worked):
    told = run("stats").stdout
    lines = {" ".join(line.split()) for line in told.splitlines()}
    assert told.startswith("4 asks since ")
    assert "and 1 that newer ones overtook" in told
    assert "shown, of all asks 50.0%" in lines
    assert "kept quiet, where the model said how sure it was 33.3%" in lines
    assert "taken, of 2 suggestions whose fate is known 50.0%" in lines
    assert "taken, of their characters 50.0%" in lines
    assert "still there after 30 s, of what was taken 100.0%" in lines
    assert "The model was not sure enough. 1" in lines
    assert "passed over 1" in lines
    assert "gate 1.0 1.0 4" in lines
    assert "Qwen [small] python 2 100.0% 0.0% 50.0% 50 50" in lines


def test_only_the_last_days_count(run, worked):
    assert run("stats", "--days", "1").stdout.startswith("3 asks since ")
    assert run("stats", "--days", "0").exit_code != 0


def test_json_is_for_programs(run, worked):
    told = json.loads(run("stats", "--json").stdout)
    assert told["whole"]["nAsks"] == 4
    assert {(group["model"], group["language"]) for group in told["groups"]} == {
        ("Qwen [small]", "python"),
        ("Qwen [small]", "go"),
        ("", ""),
        ("", "go"),
    }


def test_what_is_not_known_is_a_dash_with_its_reason_and_never_an_empty_cell(run):
    kept = Outcomes(folders.state() / FOLDER)
    known = {"at": time.time(), "kind": OutcomeKind.SHOWN, "reason": "Shown.", "language": "python", "total_ms": 5.0, "stages_ms": {}}
    kept.add(Outcome(id=1, model="mute", fate="open", **known))
    kept.add(Outcome(id=2, **{**known, "kind": OutcomeKind.GATED, "reason": "The cursor stands inside a word."}))
    kept.save()
    told = run("stats").stdout
    lines = {" ".join(line.split()) for line in told.splitlines()}
    assert "taken not known yet of any: it is when you type on, or take one" in lines
    assert "kept quiet, where the model said how sure it was \N{EN DASH}" in lines
    assert "mute python 1 100.0% \N{EN DASH} \N{EN DASH} 5 5" in lines
    assert "\N{EN DASH} python 1 0.0% \N{EN DASH} \N{EN DASH}" in lines
    notes = told.replace("\n", " ")
    assert "quiet \N{EN DASH}: the engine does not tell how sure the model is" in notes
    assert "model \N{EN DASH}: it ended before there was a suggestion" in notes
    assert "taken \N{EN DASH}: of none of them" in notes


def test_where_all_is_known_there_are_no_notes(run, worked):
    assert "engine does not tell" not in run("stats").stdout
