"""`monkeycode why`."""

from __future__ import annotations

import io
import json
import time

import pytest
from rich.console import Console

from monkeycode_lsp.cli import why
from monkeycode_lsp.domain import Outcome, OutcomeKind
from monkeycode_lsp.observe.outcomes import Outcomes


@pytest.fixture
def asked(run):
    """Outcomes as a server leaves them."""
    del run  # sets the home
    outcomes = Outcomes(why.folder())
    for number, (kind, reason) in enumerate([(OutcomeKind.GATED, "The cursor stands [inside] a word."), (OutcomeKind.SHOWN, "Shown.")]):
        outcomes.add(
            Outcome(
                id=number, at=time.time() + number, kind=kind, reason=reason, place=f"app.py:{number}:1", total_ms=12.34,
                stages_ms={"gate": 0.9, "engine": 12.0},
                fate="accepted" if number else "", confidence=-0.42 if number else None, odds=0.31 if number else None,
            )
        )  # fmt: skip
    outcomes.save()


def test_nothing_asked_yet_is_said(run):
    done = run("why")
    assert done.exit_code == 0
    assert done.stdout.startswith("No editor has asked yet.")
    assert "monkeycode doctor" in done.stdout


def test_the_newest_is_last_with_its_reason_and_stages(run, asked):
    lines = run("why").stdout.splitlines()
    assert "The cursor stands [inside] a word." in lines[1]
    assert "shown, accepted" in lines[2]
    assert "12.3" in lines[2]
    assert "\N{MINUS SIGN}0.4, 31%" in lines[2]
    assert lines[2].rstrip().endswith("engine 12.0")  # stages that took no time are left out


def test_only_so_many(run, asked):
    assert "gated" not in run("why", "-n", "1").stdout


def test_json_is_for_programs(run, asked):
    rows = json.loads(run("why", "--json").stdout)
    assert [row["kind"] for row in rows] == ["gated", "shown"]


def test_times_that_cannot_be_are_no_traceback(run):
    outcomes = Outcomes(why.folder())
    for number, at in enumerate((1e300, -1e30, 0.0)):
        outcomes.add(Outcome(id=number, at=at, kind=OutcomeKind.EMPTY, reason="Odd."))
    outcomes.save()
    done = run("why")
    assert done.exit_code == 0
    assert done.stdout.count("Odd.") == 3


def test_a_folder_that_cannot_be_read_is_an_error_in_words(run, monkeypatch):
    def load(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("monkeycode_lsp.observe.outcomes.load", load)
    done = run("why")
    assert done.exit_code == 1
    assert done.stderr == f"Error: {why.folder()}: Permission denied.\n"


def test_on_a_narrow_terminal_the_reason_has_a_line_of_its_own():
    reason = "The cursor stands [inside] a word, and the rest of this is long enough for a second line."
    outcome = Outcome(id=1, at=0.0, kind=OutcomeKind.SHOWN, reason=reason, place="app.py:1:1", total_ms=2.0, fate="accepted")
    out = Console(file=io.StringIO(), width=60)
    why._tell_narrowly([outcome], out)
    first, *rest = out.file.getvalue().splitlines()
    assert first.endswith("app.py:1:1  shown, accepted  2.0 ms")
    assert " ".join(" ".join(rest).split()) == reason
    assert max(map(len, rest)) <= 60
