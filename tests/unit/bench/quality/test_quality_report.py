"""What the tasks add up to."""

from __future__ import annotations

import msgspec
import pytest

from monkeycode_lsp.bench.quality import report
from monkeycode_lsp.bench.quality.report import PROMPT, RAW, WHOLE, WITH, WITHOUT, Done, Said


def done(raw="", prompt="", whole="", **more):
    """Each letter: p its tests passed, e it is the very text."""
    ways = {RAW: raw, PROMPT: prompt, WHOLE: whole}
    said = {name: Said(name, "e" in kind, 1.0 if "e" in kind else 0.5, "p" in kind) for name, kind in ways.items()}
    return Done("id", "gold", said, **({"n_faults": 0} | more))


def figures(*tasks, judged=True):
    made = report.filled(tasks, n_gold=len(tasks), n_passed_gold=len(tasks), judged=judged)
    return {figure.name: figure for figure in made}


def test_a_way_is_the_shares_of_its_answers_with_an_interval():
    way = report.way([done(raw="pe"), done(raw="p"), done(), done(raw="p")], RAW)
    assert (way.n, way.passed, way.exact, way.similarity) == (4, 0.75, 0.25, 0.625)
    assert way.interval is not None
    assert way.interval.low < 0.75 < way.interval.high


def test_to_pass_as_often_is_enough_but_exact_matches_must_be_more():
    found = figures(done("p", "p", "p"), done("", "", ""))
    assert found["pass@1: our prompt and filters - raw FIM call"].ok
    exact = found["exact match: our prompt and filters - raw FIM call"]
    assert (exact.value, exact.bound, exact.ok) == (0.0, "more", False)
    assert figures(done("p", "p", "pe"))["exact match: our prompt and filters - raw FIM call"].ok


def test_losses_are_points_and_a_p_value_of_the_pairs_that_differ():
    found = figures(*[done("p", "p", "")] * 5, *[done("", "", "p")], *[done("p", "p", "p")] * 4)
    figure = found["pass@1: our prompt and filters - raw FIM call"]
    assert (figure.value, figure.ok) == (pytest.approx(-40.0), False)
    assert "   won 1, lost 5; McNemar's p" in found


def test_few_tasks_give_no_verdict_on_rates_but_on_what_must_never_happen():
    tasks = [done("p", "p", "", n_faults=1)] * 49
    made = report.filled(tasks, n_gold=49, n_passed_gold=49, judged=True)
    few, many = ({figure.name: figure.ok for figure in report.judged(made, n)} for n in (49, 50))
    rate = "pass@1: our prompt and filters - raw FIM call"
    assert (few[rate], many[rate]) == (None, False)
    assert few["parse errors brought in by what was shown"] is False
    assert few["tests passed by the solutions themselves, of 49"] is True


def test_parse_errors_and_what_was_shown():
    found = figures(done(n_faults=0), done(n_faults=2, shown=False))
    assert found["parse errors brought in by what was shown"].value == 2
    assert found["parse errors brought in by what was shown"].ok is False
    assert found["asks that were shown something"].value == 0.5
    assert "parse errors brought in by what was shown" not in figures(done(n_faults=None))


def test_solutions_that_fail_their_own_tests_are_a_goal_missed():
    made = report.filled([done()], n_gold=1, n_passed_gold=0, judged=True)
    assert made[0].ok is False


def across(*pairs):
    tasks = [
        Done(
            "id",
            "gold",
            {WITH: Said("", one, float(one)), WITHOUT: Said("", other, float(other))},
            n_snippets=3,
            n_prompt={WITH: 100, WITHOUT: 110},
        )
        for one, other in pairs
    ]
    return {figure.name: figure for figure in report.across(tasks)}


def test_the_gain_of_snippets_has_a_goal_and_an_interval():
    found = across(*[(True, False)] * 2, *[(True, True)] * 18)
    gain = found["exact match: with snippets - without"]
    assert (gain.value, gain.goal, gain.ok) == (pytest.approx(10.0), 5.0, True)
    low, high = (found[f"   exact match, {name}"].value for name in ("95 % of the time at least", "and at most"))
    assert low <= 10.0 <= high
    assert found["snippets in a prompt, mean"].value == 3
    assert found["characters of a prompt without, mean"].value == 110
    assert across((False, True), (True, True))["exact match: with snippets - without"].ok is False


def test_examples_say_which_step_lost():
    tasks = [
        done("p", "", ""),
        done("p", "p", "", reason="It repeats."),
        done("pe", "pe", "p"),
        done("", "", "", n_faults=1),
        done("p", "p", "p"),
    ]
    assert [example.what for example in report.examples(tasks, 10)] == [
        "lost by the prompt",
        "lost by the filters: It repeats.",
        "exact match lost by the filters",
        "parse errors",
    ]
    assert len(report.examples(tasks, 2)) == 2


def test_a_report_can_be_read_by_other_programs_and_knows_what_it_missed():
    part = report.Part("gold", "about", figures=(report.gold("x", 1, 10, 0.0), report.gold("y", 1, 10, 0.2)))
    made = report.Report("model", (part,))
    assert made.n_missed == 1
    assert msgspec.json.decode(msgspec.json.encode(made), type=report.Report) == made
