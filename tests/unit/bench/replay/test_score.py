"""Figures of replays, from runs written down by hand."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench.replay.observed import Observed, Replied, Sent, Typed
from monkeycode_lsp.bench.replay.score import figures, rates


def typed(*keys):
    """(at, prefix, what comes next)."""
    return [Typed(at, prefix, "", then) for at, prefix, then in keys]


def run(keys, replied, sent=(), **more):
    return Observed("it", typed(*keys), list(replied), list(sent), **more)


def sent(key, answer, *, at=0.0, prefix="", right=True, **more):
    return Sent(at=at, key=key, answer=answer, right=right, ended=at + 0.25, prefix=prefix, **more)


SUPERSEDED = Replied(0.1, superseded=True)
PAUSES = [(0.0, "a", "bcd"), (1.0, "ab", "cd"), (2.0, "abc", "d"), (2.1, "abcd", "")]


def test_text_before_the_next_key_is_fresh_and_later_text_is_stale():
    found = figures(
        run(PAUSES, [Replied(0.5, "bcd"), Replied(2.0, "cd"), Replied(2.5, "d"), Replied(None)], [sent(0, "bcd", prefix="a")]),
        latency_s=0.25,
    )
    assert (found.n_fresh, found.n_stale, found.n_asks) == (1, 2, 3)
    assert found.waits_ms == (500.0,)


@pytest.mark.parametrize("reply", [Replied(0.5, ""), Replied(0.5, " \n"), Replied(0.5, "bcd", superseded=True), Replied(None)])
def test_what_nobody_sees_is_not_fresh(reply):
    assert figures(run(PAUSES[:1], [reply]), latency_s=0.25).n_fresh == 0


def test_a_request_counts_once_however_often_its_text_is_shown():
    replied = [
        Replied(0.3, "bcd", "engine"),
        Replied(1.0, "cd", "typed-through"),
        Replied(2.0, "d", "typed-through"),
        Replied(2.4, "zz", "engine"),
    ]
    requests = [sent(0, "bcd", prefix="a"), sent(3, "zz", at=2.1, prefix="abcd", right=False), sent(3, "yy", at=2.2, aborted=True)]
    found = figures(run(PAUSES, replied, requests), latency_s=0.25)
    assert (found.n_requests, found.n_useful, found.n_aborted, found.n_wrong) == (3, 2, 1, 0)
    assert found.fresh_by_origin == {"engine": 2, "typed-through": 2}
    assert rates(found).recalled_of_asks == 0.5
    assert rates(found).recalled_of_decided == pytest.approx(2 / 5)
    assert rates(found).useful == pytest.approx(2 / 3)


def test_what_was_worked_out_ahead_is_counted_apart():
    replied = [Replied(0.3, "b", "engine"), Replied(1.0, "cd", "memory"), *[SUPERSEDED] * 2]
    requests = [sent(0, "b", prefix="a"), sent(1, "cd", at=0.3, prefix="ab", background=True), sent(1, "x", at=0.9, background=True)]
    found = figures(run(PAUSES, replied, requests), latency_s=0.25)
    assert (found.n_requests, found.n_useful) == (1, 1)
    assert (found.n_background, found.n_background_useful) == (2, 1)


@pytest.mark.parametrize(
    ("shown", "prefix", "answer", "wrong"),
    [
        ("cd", "a", "bcd", False),
        ("c", "a", "bcd", False),  # less than was said
        ("bcd", "a", "bcd", True),  # "b" has been typed since
        ("cd", "a", "xcd", True),  # another letter was typed
        ("cd", "z", "bcd", True),  # made for another place
        ("cd", "", "cd", False),  # the document's beginning is all that is known
        ("cde", "a", "bcd", True),  # more than was said
        ("cd", "a ", "  b\n cd", False),  # indented anew
    ],
)
def test_text_that_contradicts_what_was_typed_is_a_wrong_hit(shown, prefix, answer, wrong):
    found = figures(run(PAUSES[1:2], [Replied(1.1, shown, "memory")], [sent(0, answer, prefix=prefix)]), latency_s=0.25)
    assert found.n_wrong == wrong
    assert found.wrong_keys == ((0,) if wrong else ())
    assert found.n_useful == (not wrong)


def test_an_answer_of_the_future_explains_nothing():
    found = figures(run(PAUSES[:1], [Replied(0.1, "bcd")], [sent(0, "bcd", at=0.2, prefix="a")]), latency_s=0.25)
    assert found.n_wrong == 1


def test_recalled_text_that_the_author_did_not_type_is_told_apart_where_one_can_tell():
    replied = [Replied(0.1, "bcd", "memory"), Replied(1.1, "xyz", "memory"), Replied(2.05, "xyz", "engine"), Replied(2.2, "xyz", "disk")]
    found = figures(run(PAUSES, replied), latency_s=0.25)
    assert (found.n_recalled, found.n_recalled_decidable, found.n_recalled_not_typed) == (3, 2, 1)


def test_chances_are_pauses_that_the_backend_can_use():
    keys = [(0.0, "a", ""), (0.1, "b", ""), (0.4, "c", ""), (0.41, "d", "")]  # the last key's pause never ends
    replied = [SUPERSEDED, Replied(0.34, "x"), SUPERSEDED, SUPERSEDED]
    found = figures(run(keys, replied, [sent(1, "x", at=0.1), sent(3, "y", at=0.41)]), latency_s=0.25)
    assert (found.n_chances, found.n_chances_kept) == (2, 1)
    assert rates(found).chances_kept == 0.5
    assert rates(found).needless_suppressed == 0.5  # two keys without a chance, one request in vain


def test_a_draft_is_confirmed_when_the_answer_begins_with_it():
    requests = [sent(0, "bcd", draft="bc"), sent(1, "cd", draft="x"), sent(2, "d")]
    found = figures(run(PAUSES, [SUPERSEDED] * 4, requests), latency_s=0.25)
    assert (found.n_drafts, found.n_drafts_confirmed) == (2, 1)


def test_a_run_without_keys_has_no_shares():
    assert rates(figures(run([], []), latency_s=0.25)).fresh_per_key is None
