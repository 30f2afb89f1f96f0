"""The engine benchmark's report: made of answers, shown as a table, written as JSON."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from monkeycode_lsp.bench.engine_report import (
    DIRECT,
    OURS,
    SERVER,
    Answer,
    Asks,
    Figure,
    Part,
    Report,
    asks,
    at_least,
    at_most,
    first_ratio,
    speed_ratio,
)
from monkeycode_lsp.bench.figures import Spread, paired_ratio, percentile
from monkeycode_lsp.cli import benchmark_tables


def answer(first_ms, total_ms=0.0, n_tokens=1, reused=0, read=0, **more):
    return Answer(first_ms, total_ms or first_ms, n_tokens, reused, read, **more)


REPORT = Report(
    model="small.gguf",
    machine="a processor",
    busy_cores=0.25,
    threads=2,
    slots=4,
    context_tokens=4096,
    batch_tokens=128,
    drafts="auto",
    quick=False,
    systems={OURS: "Small Q4", DIRECT: "0.3.36", SERVER: "not here: not installed"},
    parts=(
        Part(
            "warm",
            "The same prompt again.",
            asks({OURS: [answer(10.0, 110.0, 11, reused=99, read=1)], SERVER: []}),
            (at_most("time", 1.2, 1.05, "x"), at_least("reused", 0.99, 0.98, "share"), Figure("memory", 812.4, "MB")),
        ),
        Part("kills", "", left_out="Only with --kills."),
    ),
)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 5), (0.9, 9), (0.99, 10), (0.0, 1)])
def test_a_percentile_is_the_value_of_the_nearest_rank(share, expected):
    assert percentile(range(1, 11), share) == expected


def test_a_spread_does_not_need_its_values_in_order():
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(3, 2.0, 3.0, 3.0)


def test_one_disturbed_pair_does_not_move_the_ratio():
    assert paired_ratio([10, 11, 500], [10, 11, 12]) == 1.0


def test_the_first_piece_does_not_count_for_the_speed():
    assert answer(100.0, 200.0, n_tokens=11).tokens_per_second == pytest.approx(100.0)
    assert answer(100.0, 200.0, n_tokens=11, n_first=6).tokens_per_second == pytest.approx(50.0)


def test_an_answer_of_one_piece_has_no_speed():
    assert answer(100.0, 100.0, n_tokens=1).tokens_per_second is None
    assert Asks.of([answer(100.0)]).tokens_per_second is None


def test_the_reuse_share_is_of_all_prompt_tokens():
    both = Asks.of([answer(1.0, reused=90, read=10), answer(1.0, reused=0, read=100)])
    assert (both.reuse_share, both.reused, both.read) == (0.45, 90, 110)


def test_an_engine_that_tells_no_tokens_has_no_share():
    assert Asks.of([answer(1.0)]).reuse_share == 0.0


@pytest.mark.parametrize(
    ("figure", "ok"), [(at_most("", 1, 1), True), (at_most("", 2, 1), False), (at_least("", 1, 1), True), (at_least("", 0, 1), False)]
)
def test_a_goal_is_met_at_its_bound(figure, ok):
    assert figure.ok is ok


def test_a_competitor_that_did_not_run_gives_no_ratio():
    answers = {OURS: [answer(1.0, 2.0, 3)]}
    assert first_ratio(answers, DIRECT, 1.05) == ()
    assert speed_ratio(answers, DIRECT, 0.95) == ()


def test_ratios_are_of_ours_to_theirs_and_judged_only_with_a_goal():
    answers = {OURS: [answer(20.0, 30.0, 11)], DIRECT: [answer(10.0, 15.0, 11)]}
    (first,) = first_ratio(answers, DIRECT, 1.05)
    (speed,) = speed_ratio(answers, DIRECT)
    assert (first.value, first.ok) == (2.0, False)
    assert (speed.value, speed.ok) == (0.5, None)


def test_missed_goals_are_counted():
    assert REPORT.n_missed == 1


def test_the_json_has_stable_names():
    told = msgspec.json.decode(msgspec.json.encode(REPORT))
    assert told["version"] == 1
    assert {"model", "busyCores", "contextTokens", "batchTokens", "systems", "parts"} <= told.keys()
    warm = told["parts"][0]
    assert warm["systems"][OURS]["firstMs"] == {"n": 1, "p50": 10.0, "p90": 10.0, "p99": 10.0}
    assert warm["systems"][OURS]["reuseShare"] == 0.99
    assert warm["figures"][0] == {"name": "time", "value": 1.2, "unit": "x", "goal": 1.05, "bound": "most", "ok": False}
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT


def test_the_table_shows_each_system_each_goal_and_who_is_missing():
    out = io.StringIO()
    benchmark_tables.show_engine(REPORT, Console(file=out, width=200))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert "warm monkeycode 1 10 10 10 110 110 110 100 99.0%" in lines
    assert "warm time 1.20 x ≤ 1.05 x missed" in lines
    assert "warm reused 99.0% ≥ 98.0% ok" in lines
    assert "warm memory 812 MB" in lines
    assert "llama-server: not here: not installed" in lines
    assert "kills: left out. Only with --kills." in lines
    assert lines[-1] == "1 goal is missed."
