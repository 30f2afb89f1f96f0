from __future__ import annotations

import pytest

from monkeycode_lsp.engines.remote.pool import hedging
from monkeycode_lsp.errors import EngineUnavailableError
from tests.unit.engines.remote import members


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "::1", "[::1]", "10.1.2.3", "192.168.0.9", "172.16.0.1", "169.254.1.1", "fe80::1%eth0", "fd00::1", "gpu",
     "gpu.local", "GPU.LAN", "a.b.internal", "box.home.arpa.", "100.64.0.7", "::ffff:10.0.0.1"],
)  # fmt: skip
def test_hosts_of_the_own_network_cost_nothing(host: str) -> None:
    assert not hedging.is_metered("auto", host)
    assert hedging.is_metered("yes", host)


@pytest.mark.parametrize(
    "host", ["api.mistral.ai", "8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "internal.example.com", "10.1.2.3.example"]
)
def test_all_others_may_cost_money(host: str) -> None:
    assert hedging.is_metered("auto", host)
    assert not hedging.is_metered("no", host)


async def test_what_costs_money_is_only_asked_beside_another_where_the_user_wants_it() -> None:
    free, paid = members.member(members.FakeServer()), members.member(members.FakeServer(), metered=True)
    assert [hedging.allows(mode, free) for mode in ("auto", "on", "off")] == [True, True, False]  # type: ignore[arg-type]  # words of the setting
    assert [hedging.allows(mode, paid) for mode in ("auto", "on", "off")] == [False, True, False]  # type: ignore[arg-type]  # words of the setting


async def test_slow_is_what_nearly_all_answers_are_faster_than_and_never_an_instant() -> None:
    first = members.member(members.FakeServer())
    assert hedging.after_s(first, [first]) == hedging.UNKNOWN_S
    for _ in range(20):
        first.latencies.add(0.001)
    assert hedging.after_s(first, [first]) == hedging.LEAST_S
    for _ in range(100):
        first.latencies.add(0.4)
    assert hedging.after_s(first, [first]) == pytest.approx(0.4)


async def test_what_is_not_known_of_a_server_or_far_worse_is_told_by_the_quickest() -> None:
    first, quick, slow = all_members = [members.member(members.FakeServer()) for _ in range(3)]
    for _ in range(20):
        quick.latencies.add(0.3)
        slow.latencies.add(2.0)
    assert hedging.after_s(first, all_members) == pytest.approx(0.3)
    assert hedging.after_s(slow, all_members) == pytest.approx(0.3)
    for _ in range(20):
        first.latencies.add(0.4)
    assert hedging.after_s(first, all_members) == pytest.approx(0.4)
    quick.failed(EngineUnavailableError("dead"))
    assert hedging.after_s(slow, all_members) == pytest.approx(0.4)


def test_about_one_ask_in_ten_gets_a_second_request() -> None:
    budget, n_spent = hedging.Budget(), 0
    for _ in range(1_000):
        budget.asked()
        n_spent += budget.spend()
    assert 95 <= n_spent <= 105


def test_what_was_not_spent_for_long_allows_only_a_few_at_once() -> None:
    budget = hedging.Budget()
    for _ in range(10_000):
        budget.asked()
    assert sum(budget.spend() for _ in range(100)) == 5
