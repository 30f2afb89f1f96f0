"""The load benchmark's report: made of asks, judged by goals, shown as a table, written as JSON."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from monkeycode_lsp.bench import load_report
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Report, Size, Told
from monkeycode_lsp.cli import benchmark_tables


def figures(found):
    return {figure.name: figure for figure in found}


def texts(*times):
    return [Told(ms, "text") for ms in times]


REPORT = Report(
    endpoint="our own",
    busy_cores=0.25,
    cores=2,
    servers=16,
    rate=50.0,
    seconds=20.0,
    parts=(
        Part(
            "arrivals",
            "As they come.",
            {THROUGH: load_report.spread(texts(254.0)), STRAIGHT: load_report.spread(texts(250.0))},
            load_report.arrivals([{THROUGH: texts(254.0), STRAIGHT: texts(250.0)}], judged=True),
        ),
        Part("saturation", "More.", {}, load_report.saturation({THROUGH: {8: 30.0}, STRAIGHT: {8: 32.0}})),
        Part("cancels", "", left_out="Not with yours."),
    ),
)


def test_what_is_added_is_the_difference_of_the_percentiles():
    found = figures(load_report.arrivals([{THROUGH: texts(*range(100, 200)), STRAIGHT: texts(*range(90, 190))}], judged=True))
    assert (found["added, p50"].value, found["added, p99"].value) == (10.0, 10.0)
    assert found["added, p99"].ok


def test_too_much_added_misses_the_goal_and_nobody_judges_an_endpoint_of_the_users():
    told = [{THROUGH: texts(300.0), STRAIGHT: texts(250.0)}]
    assert figures(load_report.arrivals(told, judged=True))["added, p99"].ok is False
    assert figures(load_report.arrivals(told, judged=False))["added, p99"].ok is None


def test_a_moment_in_which_the_machine_was_busy_does_not_move_the_middle_slice():
    calm = {THROUGH: texts(254.0), STRAIGHT: texts(250.0)}
    found = figures(load_report.arrivals([calm, {THROUGH: texts(254.0), STRAIGHT: texts(900.0)}, calm], judged=True))
    assert found["added, p99"].value == 254.0 - 900.0
    assert found["added, p99, in the middle one of the time slices"].value == 4.0


def test_failures_and_asks_without_text_are_counted_apart():
    ours = [Told(1.0, "text"), Told(1.0, "empty"), Told(1.0, "error"), Told(1.0, "silence")]
    found = figures(load_report.arrivals([{THROUGH: ours, STRAIGHT: texts(1.0)}], judged=True))
    failed = found[f"asks that failed, {THROUGH}"]
    assert (failed.value, failed.ok) == (2.0, False)
    assert found[f"asks without text, {THROUGH}"].value == 0.25
    assert found[f"asks without text, {STRAIGHT}"].value == 0.0


def test_the_times_are_of_asks_that_were_answered():
    assert load_report.spread([Told(1.0, "text"), Told(2.0, "empty"), Told(900.0, "error"), Told(999.0, "silence")]).p99 == 2.0
    assert load_report.spread([Told(900.0, "error")]).p99 == 0.0


def test_saturation_compares_the_best_rate_of_each_way():
    found = figures(load_report.saturation({THROUGH: {8: 32.0, 16: 60.0, 32: 59.0}, STRAIGHT: {8: 32.0, 16: 62.0, 32: 64.0}}))
    share = found["rate at saturation / straight"]
    assert (share.value, share.ok) == (60 / 64, False)
    assert found["straight, 32 under way"].value == 64.0


def test_an_endpoint_that_answers_nothing_is_no_division_by_zero():
    assert figures(load_report.saturation({THROUGH: {1: 0.0}, STRAIGHT: {1: 0.0}}))["rate at saturation / straight"].ok is False


def test_too_few_answers_are_not_judged():
    found = load_report.saturation({THROUGH: {1: 0.8}, STRAIGHT: {1: 1.6}}, judged=False)
    assert [figure.name for figure in found] == [f"{THROUGH}, 1 under way", f"{STRAIGHT}, 1 under way"]


@pytest.mark.parametrize(
    ("closed", "unsent", "in_time", "never", "ok"),
    [([100.0, 200.0], 0, 2, 0, True), ([100.0, 201.0], 0, 1, 0, False), ([100.0], 1, 2, 0, True), ([100.0], 0, 1, 1, False)],
)
def test_a_cancel_is_in_time_when_the_endpoint_saw_it_or_never_got_it(closed, unsent, in_time, never, ok):
    found = figures(load_report.cancels(closed, n=2, n_unsent=unsent))
    goal = found["closed within 200 ms, of 2"]
    assert (goal.value, goal.ok, found["never closed"].value) == (in_time, ok, never)


def test_one_lost_suggestion_is_borne_and_an_ask_without_reply_is_not():
    lost_one = figures(load_report.failover([Told(1.0, "empty"), Told(1.0, "text")], back_s=10.0, share_after=0.5))
    assert all(figure.ok is not False for figure in lost_one.values())
    silent = figures(load_report.failover([Told(1.0, "silence"), Told(1.0, "empty"), Told(1.0, "error")], back_s=10.1, share_after=0.0))
    assert [silent[name].ok for name in ("asks without a reply", "suggestions lost", "asked again after its return")] == [False] * 3


def test_a_server_that_grows_is_found():
    before = Size(files=20, threads=4, mb=40.0)
    flat = figures(load_report.endurance(before, Size(21, 5, 44.0), texts(1.0)))
    assert all(figure.ok is not False for figure in flat.values())
    grown = figures(load_report.endurance(before, Size(60, 9, 90.0), texts(1.0)))
    assert [grown[name].ok for name in ("files opened since", "threads started since", "memory taken since")] == [False] * 3


def test_the_table_shows_ways_goals_and_what_was_left_out():
    out = io.StringIO()
    benchmark_tables.show_load(REPORT, Console(file=out, width=200))
    lines = [" ".join(row.split()) for row in out.getvalue().splitlines()]
    assert lines[0] == "Endpoint: our own. 16 servers; of 2 processors 0.2 were busy before the run"
    assert "arrivals through monkeycode 1 254 254 254" in lines
    assert "arrivals added, p99 4 ms ≤ 15 ms ok" in lines
    assert "saturation rate at saturation / straight 93.8% ≥ 95.0% missed" in lines
    assert "cancels: left out. Not with yours." in lines
    assert lines[-1] == "1 goal is missed."


def shown(*parts):
    out = io.StringIO()
    benchmark_tables.show_load(msgspec.structs.replace(REPORT, parts=parts), Console(file=out, width=400))
    return out.getvalue()


def test_what_was_done_sooner_than_straight_is_explained_and_nothing_else_is():
    sooner = Part("arrivals", "", {}, load_report.arrivals([{THROUGH: texts(240.0), STRAIGHT: texts(250.0)}], judged=False))
    assert "below 0: our way was done sooner" in shown(sooner)
    assert "below 0" not in shown(*REPORT.parts)


def test_an_endpoint_that_is_slower_than_the_deadline_is_told_in_words():
    late = {way: [Told(3000.0, "late"), Told(2000.0, "text")] for way in (THROUGH, STRAIGHT)}
    assert load_report.too_slow(late) == " 2 of 4 asks had no text by then: the endpoint is slower than `completion.deadlineMs`."
    assert load_report.too_slow({THROUGH: texts(1.0), STRAIGHT: texts(1.0)}) == ""


def test_where_most_asks_end_without_text_nothing_is_said_to_be_added_or_met():
    late = [Told(3000.0, "late"), Told(3000.0, "empty")]
    found = load_report.arrivals([{THROUGH: late, STRAIGHT: late}], judged=False)
    assert not [name for name in figures(found) if name.startswith("added")]
    assert figures(found)[f"asks without text, {THROUGH}"].value == 1.0
    assert figures(found)[f"asks that failed, {THROUGH}"].ok
    told = shown(Part("arrivals", "", {}, found))
    assert "Most asks got no text" in told
    assert "All goals are met" not in told


def test_the_json_has_stable_names():
    told = msgspec.json.decode(msgspec.json.encode(REPORT))
    assert {"version", "endpoint", "busyCores", "cores", "servers", "rate", "seconds", "parts"} == told.keys()
    assert {"name", "about", "systems", "figures", "leftOut"} == told["parts"][0].keys()
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT


def test_a_rate_is_told_in_words():
    assert [load_report.a_second(rate) for rate in (1.0, 0.5, 50.0)] == ["1 ask a second", "0.5 asks a second", "50 asks a second"]
