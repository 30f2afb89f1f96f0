from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp import config
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.pool import choice, groups, neighbours
from monkeycode_lsp.engines.remote.pool.member import LEFT_OUT_S, Member, Standing
from monkeycode_lsp.errors import EngineRefusedError, EngineUnavailableError
from monkeycode_lsp.prompt import FAMILIES
from tests.unit.engines.remote.members import Clock

DEAD = EngineUnavailableError("dead")
REFUSED = EngineRefusedError("no")


class Record:
    """A server that is never asked."""

    def __init__(self, clock: Clock) -> None:
        self.backoff = Backoff(clock)


def made(name: str, clock: Clock | None = None, **how: Any) -> Member:
    clock = clock or Clock()
    return Member(Record(clock), base=name, clock=clock, **how)  # type: ignore[arg-type]  # never asked


def give(members: list[Member], n_asks: int, **how: Any) -> Counter[str]:
    """One ask after the other."""
    given_to: Counter[str] = Counter()
    for _ in range(n_asks):
        chosen = choice.choose(members, limit=5, **how)
        assert chosen is not None
        chosen.n_served += 1
        given_to[chosen.base] += 1
    return given_to


def test_weights_share_the_work_of_an_idle_pool() -> None:
    assert give([made("a", weight=2), made("b")], 300) == {"a": 200, "b": 100}
    assert give([made("a", weight=0.5), made("b", weight=1.5), made("c")], 300) == {"a": 50, "b": 150, "c": 100}


def test_who_has_least_to_do_for_its_weight_gets_the_next_ask() -> None:
    a, b = made("a", weight=2), made("b")
    a.n_asked, b.n_asked = 3, 1
    assert choice.choose([a, b], limit=5) is b
    a.n_asked, b.n_asked = 3, 2
    assert choice.choose([a, b], limit=5) is a


def test_a_document_stays_where_its_text_is_cached_while_that_one_is_not_overloaded() -> None:
    a, b = made("a"), made("b")
    a.n_asked, a.n_served = 2, 30
    assert choice.choose([a, b], limit=5, preferred=a) is a
    a.n_asked = 3
    assert choice.choose([a, b], limit=5, preferred=a) is b


def test_one_document_alone_is_shared_too_in_long_turns() -> None:
    members, preferred, turns = [made("a", weight=2), made("b")], None, []
    for _ in range(600):
        chosen = choice.choose(members, limit=5, preferred=preferred)
        assert chosen is not None
        turns.append(chosen.base)
        chosen.n_served += 1
        preferred = chosen
    assert 350 <= turns.count("a") <= 450
    assert sum(one != other for one, other in itertools.pairwise(turns)) <= 12


def test_a_document_leaves_a_server_that_failed() -> None:
    a, b = made("a"), made("b")
    a.failed(DEAD)
    assert choice.choose([a, b], limit=5, preferred=a) is b


def test_full_and_resting_ones_are_not_asked() -> None:
    clock = Clock()
    a, b = made("a", clock), made("b", clock)
    a.n_asked = 5
    assert choice.choose([a, b], limit=5) is b
    b.server.backoff.failed(DEAD, slow=True)
    assert choice.choose([a, b], limit=5) is None
    assert choice.usable([a, b]) == [a]
    clock.now += 10
    assert choice.choose([a, b], limit=5) is b


def test_nothing_is_risked_on_a_suspect_while_a_trusted_one_is_only_full() -> None:
    a, b = made("a"), made("b")
    a.failed(DEAD)
    b.n_asked = 5
    assert choice.choose([a, b], limit=5) is None


def test_one_ask_at_a_time_is_risked_on_a_suspect() -> None:
    a, b = made("a"), made("b")
    a.failed(DEAD)
    b.failed(DEAD)
    assert choice.choose([a, b], limit=5) is a
    a.n_asked = 1
    assert choice.choose([a, b], limit=5) is b
    b.n_asked = 1
    assert choice.choose([a, b], limit=5) is None
    assert a.answered()
    assert choice.choose([a, b], limit=5) is a


def test_one_that_refuses_what_others_take_is_the_last_choice_for_a_while() -> None:
    clock = Clock()
    a, b = made("a", clock), made("b", clock)
    a.leave_out(REFUSED)
    b.failed(DEAD)
    assert choice.choose([a, b], limit=5) is b
    assert choice.choose([a, b], limit=5, avoid=[b]) is a
    clock.now += LEFT_OUT_S
    assert a.standing is Standing.SUSPECT


@pytest.mark.parametrize(("limit", "n_background"), [(5, 4), (2, 1), (1, 1)])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_what_nobody_waits_for_leaves_the_last_place_free(limit: int, n_background: int, names: str) -> None:
    members = [made(name) for name in names]
    while (chosen := choice.choose(members, limit=limit, urgent=False)) is not None:
        chosen.n_asked += 1
    assert [member.n_asked for member in members] == [n_background] * len(members)
    assert (choice.choose(members, limit=limit) is None) == (limit == 1)


def paced(name: str, clock: Clock, *times: float) -> Member:
    """One that took these times, the last ask only just now."""
    member = made(name, clock)
    member.given()
    member.n_asked, member.n_served = 0, 0
    for seconds in times:
        member.latencies.add(seconds)
    return member


def test_a_document_leaves_a_server_that_is_much_slower_than_another_and_does_not_come_back_at_once() -> None:
    clock = Clock()
    a, b = paced("a", clock, 2.0), paced("b", clock, 0.02)
    assert choice.choose([a, b], limit=5, preferred=a) is b
    a.latencies.add(0.02)  # it has recovered
    assert choice.choose([a, b], limit=5, preferred=b) is b
    assert choice.choose([a, b], limit=5) is a


@pytest.mark.parametrize("pace_s", [0.05, 0.3, 1.0])
def test_a_document_stays_with_a_server_that_is_a_little_slower(pace_s: float) -> None:
    clock = Clock()
    a, b = paced("a", clock, *[pace_s + 0.09] * 5), paced("b", clock, *[pace_s] * 5)
    assert choice.choose([a, b], limit=5, preferred=a) is a


def test_a_few_slow_answers_may_be_those_of_a_cold_server() -> None:
    clock = Clock()
    a, b = paced("a", clock, 0.6, 0.6), paced("b", clock, *[0.05] * 5)
    assert choice.choose([a, b], limit=5, preferred=a) is a
    a.latencies.add(0.6)
    assert choice.choose([a, b], limit=5, preferred=a) is b


def test_one_that_was_never_asked_is_tried_by_one_ask_where_the_others_are_not_quick() -> None:
    clock = Clock()
    a, b = paced("a", clock, *[0.5] * 5), made("b", clock)
    a.given()
    assert choice.choose([a, b], limit=5, preferred=a) is b
    b.given()
    assert choice.choose([a, b], limit=5, preferred=a) is a
    quick = paced("quick", clock, *[0.08] * 5)
    assert choice.choose([quick, made("c", clock)], limit=5, preferred=quick) is quick


def test_a_slow_one_takes_asks_when_the_others_are_full() -> None:
    clock = Clock()
    a, b = paced("a", clock, 2.0), paced("b", clock, 0.02)
    b.n_asked = 5
    assert choice.choose([a, b], limit=5) is a


def test_a_slow_one_is_asked_again_now_and_then() -> None:
    clock = Clock()
    a, b = paced("a", clock, 2.0), paced("b", clock, 0.02)
    a.given()
    a.n_asked = 0
    asked = []
    for _ in range(120):
        clock.now += 1
        chosen = choice.choose([a, b], limit=5, preferred=b)
        assert chosen is not None
        asked.append(chosen.base)
        chosen.given()
        chosen.n_asked = 0
    assert 3 <= asked.count("a") <= 4


def test_members_at_one_server_share_its_places() -> None:
    a, b = made("a"), made("b")
    a.neighbours = b.neighbours = (a, b)
    a.n_asked, b.n_asked = 3, 1
    assert choice.choose([a, b], limit=5) is b
    b.n_asked = 2
    assert choice.choose([a, b], limit=5) is None
    assert choice.choose([a], limit=5) is None
    a.n_asked = 2
    assert choice.choose([a], limit=5) is a
    assert choice.choose([a], limit=5, urgent=False) is None


def test_one_that_was_away_does_not_get_everything_when_it_comes_back() -> None:
    a, b = made("a"), made("b")
    a.failed(DEAD)
    give([a, b], 1_000)
    a.came_back()
    choice.catch_up(a, [a, b])
    assert give([a, b], 20) == {"a": 10, "b": 10}


def test_the_error_of_a_pool_is_its_first_members() -> None:
    a, b = made("a"), made("b")
    b.failed(DEAD)
    assert choice.unusable([a, b]) is DEAD
    a.failed(REFUSED)
    assert choice.unusable([a, b]) is REFUSED
    assert "remote.endpoints" in str(choice.unusable([made("c")]))


def test_a_long_silence_makes_a_server_suspect_and_a_short_one_does_not() -> None:
    a = made("a")
    a.was_silent(0.9)
    assert a.is_good
    for _ in range(30):
        a.latencies.add(0.5)
    a.was_silent(1.9)
    assert a.is_good
    a.was_silent(2.1)
    assert not a.is_good


def test_two_silences_in_a_row_that_are_longer_than_usual_make_a_server_suspect() -> None:
    a = made("a")
    for _ in range(100):
        a.latencies.add(0.1)
    a.was_silent(0.2)
    a.answered()
    a.was_silent(0.2)
    assert a.is_good
    a.was_silent(0.05)
    assert a.is_good
    a.was_silent(0.2)
    assert not a.is_good


def test_documents_are_forgotten_when_there_are_many() -> None:
    sessions, a = choice.Sessions(), made("a")
    for number in range(2_000):
        sessions.served(f"s{number}", a)
        sessions.served("often", a)
    assert sessions.member("often") is a
    assert sessions.member("s1999") is a
    assert sessions.member("s0") is None
    assert sessions.member("") is None


@given(st.data())
def test_a_choice_never_breaks_a_limit_and_finds_a_place_if_there_is_one(data: st.DataObject) -> None:
    clock = Clock()
    members = []
    for number in range(data.draw(st.integers(1, 5))):
        member = made(str(number), clock, weight=data.draw(st.sampled_from([0.5, 1, 3])))
        member.n_asked = data.draw(st.integers(0, 4))
        match data.draw(st.sampled_from(["good", "good", "suspect", "resting", "left out"])):
            case "suspect":
                member.failed(DEAD)
            case "resting":
                member.server.backoff.failed(DEAD, slow=True)
            case "left out":
                member.leave_out(REFUSED)
        members.append(member)
    urgent, preferred = data.draw(st.booleans()), data.draw(st.sampled_from([None, *members]))
    chosen = choice.choose(members, limit=4, urgent=urgent, preferred=preferred)
    if chosen is None:
        assert all(
            member.n_asked >= (1 if member.standing is not Standing.GOOD and len(members) > 1 else 4 if urgent else 3)
            for member in choice.usable(members)
        )
    else:
        assert chosen.n_asked < (4 if urgent else 3)
        assert not chosen.is_resting
        assert len(members) == 1 or chosen.standing == min(member.standing for member in members if not member.is_resting)


# Groups

QWEN, STARCODER = (next(family for family in FAMILIES if family.name == name) for name in ("qwen2.5-coder", "starcoder2"))


def serving(name: str, model: str, family: Any = QWEN, tokens: int | None = None) -> Member:
    member = made(name)
    member.model = Model(model, family, f"remote:{name}", context_tokens=tokens)
    return member


def test_servers_of_the_same_model_form_a_group_however_they_name_it() -> None:
    a, b, c = serving("a", "Qwen/Qwen2.5-Coder-7B"), serving("b", "starcoder2", STARCODER), serving("c", "/models/qwen2.5-coder-7b")
    found = groups.gather([a, b, c, made("unknown")], "d")
    assert [group.members for group in found] == [(a, c), (b,)]
    assert found[0].model.name == "Qwen/Qwen2.5-Coder-7B"


def test_the_same_name_with_other_markers_is_another_group() -> None:
    found = groups.gather([serving("a", "m", QWEN), serving("b", "m", STARCODER), serving("c", "m", None)], "d")
    assert [len(group.members) for group in found] == [1, 1, 1]
    assert len({group.model.fingerprint for group in found}) == 3


def settled(url: str, **how: Any) -> tuple[config.Endpoint, address.Address]:
    return config.Endpoint(url=url, **how), address.parse(url)


def test_the_same_endpoint_written_in_several_ways_is_one_of_all_their_weight() -> None:
    written = [settled("http://h:1", weight=2), settled("http://i:1"), settled("http://h:1/v1", weight=0.5), settled("http://h:1/")]
    assert [(endpoint.url, endpoint.weight) for endpoint, _ in neighbours.merge(written)] == [("http://h:1", 3.5), ("http://i:1", 1)]


@pytest.mark.parametrize("more", [{"model": "m"}, {"api_key": "k"}, {"headers": {"x": "y"}}, {"api": "openai"}, {"url": "http://u:p@h:1"}])
def test_what_another_may_answer_stays_another_endpoint(more: dict[str, Any]) -> None:
    assert len(neighbours.merge([settled("http://h:1"), settled(**{"url": "http://h:1"} | more)])) == 2


def test_who_is_at_one_address_knows_of_each_other() -> None:
    a, b, c = made("http://h:1"), made("http://i:1"), made("http://h:1")
    neighbours.introduce([a, b, c])
    assert (a.neighbours, b.neighbours, c.neighbours) == ((a, c), (b,), (a, c))


def test_the_name_of_a_group_stays_while_members_come_and_go_and_the_least_window_counts() -> None:
    a, b, c = serving("a", "m", tokens=8192), serving("b", "m", tokens=2048), serving("c", "M")
    (both,), (one,), (other,) = (groups.gather(some, "d") for some in ([a, b, c], [a], [c, b]))
    assert both.model.fingerprint == one.model.fingerprint == other.model.fingerprint
    assert (both.model.context_tokens, one.model.context_tokens) == (2048, 8192)
    (elsewhere,) = groups.gather([a], "e")
    assert elsewhere.model.fingerprint != one.model.fingerprint
