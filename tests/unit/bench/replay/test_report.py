"""What `--json` writes: the figures beside their goals."""

from __future__ import annotations

import msgspec
import pytest

from monkeycode_lsp.bench.replay import report
from monkeycode_lsp.bench.replay.observed import Observed, Replied, Sent, Typed
from monkeycode_lsp.bench.replay.simulate import AT_ONCE, PRODUCT

SETUP = report.Setup(
    trace="t", language="python", first_key=0, keys=300, seconds=3.0, mode="real time", engine="oracle",
    latency_ms=250, q=0.3, seed=0, editor_delay_ms=50, speed=1,
)  # fmt: skip
TYPED = [Typed(float(n), "abcd"[: n + 1], "", "abcd"[n + 1 :]) for n in range(4)]


def observed(system, *, n_fresh):
    """`a`'s answer is from the backend; then it is typed through, one key after the other."""
    replied = [
        Replied(n + 0.055, "bcd"[n:], "engine" if n == 0 else "typed-through") if n < n_fresh else Replied(n + 0.01) for n in range(4)
    ]
    return Observed(system, TYPED, replied, [Sent(0.0, 0, "bcd", right=True, ended=0.25, prefix="a")])


def goals(made):
    return {goal.name: goal for goal in made.goals}


def test_fresh_answers_are_compared_with_the_server_that_neither_waits_nor_remembers():
    made = report.make(SETUP, [observed(PRODUCT, n_fresh=3), observed(AT_ONCE, n_fresh=2)], goals=True)
    assert [system.fresh_ratio for system in made.systems] == [1.5, 1.0]
    assert goals(made)["fresh, compared with naive"].ok is True


def test_without_that_server_there_is_no_ratio_and_no_verdict():
    made = report.make(SETUP, [observed(PRODUCT, n_fresh=3)], goals=True)
    goal = goals(made)["fresh, compared with naive"]
    assert (goal.value, goal.ok) == (None, None)


def test_a_recalled_answer_takes_from_the_ask_to_the_reply():
    (system,) = report.make(SETUP, [observed(PRODUCT, n_fresh=3)]).systems
    assert system.recalled_ms.n == 2
    assert system.recalled_ms.p50 == pytest.approx(5)  # the editor waited 50 of the 55


def test_simulated_there_are_no_such_times():
    made = report.make(msgspec.structs.replace(SETUP, mode="simulated"), [observed(PRODUCT, n_fresh=3)], goals=True)
    assert made.systems[0].recalled_ms is None
    assert "recalled answer, p50" not in goals(made)


@pytest.mark.parametrize(
    ("changed", "system", "why"),
    [
        ({"keys": 299}, PRODUCT, "299 keys are too few"),
        ({"engine": "configured"}, PRODUCT, "an engine of your own"),
        ({}, AT_ONCE, "leaves out"),
    ],
)
def test_where_the_goals_say_nothing_none_is_judged(changed, system, why):
    made = report.make(msgspec.structs.replace(SETUP, **changed), [observed(system, n_fresh=3)], goals=True)
    assert made.goals == ()
    assert why in made.not_judged


def test_goals_are_for_who_asks_for_them():
    made = report.make(SETUP, [observed(PRODUCT, n_fresh=3)])
    assert (made.goals, made.not_judged) == ((), "")


def test_json_has_as_many_digits_as_mean_something():
    made = report.make(msgspec.structs.replace(SETUP, q=0.123456), [observed(PRODUCT, n_fresh=3)])
    exact = msgspec.structs.replace(made.systems[0], fresh_ratio=1 / 3, waits_ms=(8.5e-11, 250.0000000017))
    written = msgspec.json.decode(report.encode(msgspec.structs.replace(made, systems=(exact,))))
    assert (written["systems"][0]["freshRatio"], written["systems"][0]["waitsMs"]) == (0.3333, [0.0, 250.0])
    assert written["setup"]["q"] == 0.123456


def test_a_goal_is_met_or_not_by_its_own_bound():
    made = goals(report.make(SETUP, [observed(PRODUCT, n_fresh=3)], goals=True))
    assert (made["requests per key"].value, made["requests per key"].ok) == (0.25, True)
    assert (made["useful work"].value, made["useful work"].ok) == (1.0, True)
    assert (made["recalled answer, p50"].bound, made["recalled answer, p50"].ok) == ("most", False)


def test_the_waits_are_percentiles():
    (system,) = report.make(SETUP, [observed(PRODUCT, n_fresh=3)]).systems
    assert len(system.waits_ms) == 100
    assert list(system.waits_ms) == sorted(system.waits_ms)
    assert report.make(SETUP, [observed(PRODUCT, n_fresh=0)]).systems[0].waits_ms == ()
