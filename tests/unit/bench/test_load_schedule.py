"""When the load benchmark asks, and how much at a time."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from monkeycode_lsp.bench.load import OF_YOURS, PARTS, about_s
from monkeycode_lsp.bench.load_arrivals import SLICE_S, schedule, slice_s, turns
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Told
from monkeycode_lsp.bench.load_saturation import is_full, levels
from monkeycode_lsp.bench.load_stage import Ask, Plan, play


def asks(seconds=200.0, rate=50.0, editors=16):
    return list(schedule(rate, seconds, editors, random.Random(1)))  # noqa: S311 - no secret


def test_arrivals_come_at_the_rate_in_order_and_within_the_time():
    times = [ask.at_s for ask in asks()]
    assert times == sorted(times)
    assert times[-1] < 200.0
    assert len(times) == pytest.approx(10_000, rel=0.05)


def test_gaps_are_as_irregular_as_those_of_people_who_do_not_know_of_each_other():
    times = [ask.at_s for ask in asks()]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance == pytest.approx(mean**2, rel=0.15)  # exponential


def test_every_editor_asks_about_as_often():
    by_editor = [sum(ask.who == who for ask in asks()) for who in range(16)]
    assert min(by_editor) > 0.8 * max(by_editor)


@pytest.mark.parametrize("seconds", [1.0, SLICE_S, 20.0])
def test_the_ways_take_turns_and_share_the_time(seconds):
    slices = list(turns(seconds))
    assert sum(length for length, _ in slices) == pytest.approx(seconds)
    assert max(length for length, _ in slices) <= SLICE_S
    assert all(set(order) == {THROUGH, STRAIGHT} for _, order in slices)
    assert all(one[1] != other[1] for one, other in itertools.pairwise(slices))


@pytest.mark.parametrize(("usual_s", "slices"), [(0.25, 16), (1.0, 5), (3.0, 2), (600.0, 2)])
def test_the_slower_the_answers_the_fewer_ends_of_slices_are_waited_for(usual_s, slices):
    assert len(list(turns(20.0, slice_s(usual_s)))) == slices


def test_the_time_that_is_told_counts_what_is_measured_and_how_slow_it_is():
    plan = Plan(servers=2, rate=1, seconds=5.0)
    fast, slow = (about_s(plan, OF_YOURS, usual_s) for usual_s in (0.1, 600.0))
    assert 10 < fast < slow < 60
    assert about_s(plan, tuple(PARTS), 0.25) > about_s(plan, OF_YOURS, 0.25)


def test_levels_double_up_to_what_each_editor_keeps_open():
    assert levels(16) == [8, 16, 32, 64]
    assert levels(1) == [1, 2, 4]


@pytest.mark.parametrize(
    ("rates", "full"), [({8: 32.0}, False), ({8: 32.0, 16: 64.0}, False), ({8: 64.0, 16: 65.0}, True), ({8: 64.0, 16: 40.0}, True)]
)
def test_an_endpoint_is_full_when_more_asks_bring_no_more_answers(rates, full):
    assert is_full(rates) is full


class Slow:
    """A way on which answers wait until all have been asked."""

    def __init__(self, n):
        self._all = asyncio.Barrier(n)
        self.asked = []

    async def ask(self, who, number):
        self.asked.append((who, number))
        await self._all.wait()
        return Told(1.0, "text")


async def test_open_loop_asks_do_not_wait_for_the_answers_before():
    way = Slow(3)
    async with asyncio.timeout(10):
        told = await play([Ask(0.0, 2), Ask(0.001, 0), Ask(0.002, 1)], way, iter([7, 8, 9]))
    assert way.asked == [(2, 7), (0, 8), (1, 9)]
    assert [one.kind for one in told] == ["text"] * 3
    assert all(one.late_ms >= 0 for one in told)
