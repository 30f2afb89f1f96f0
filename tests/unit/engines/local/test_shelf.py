"""KV states without a slot: what is kept, what goes, and which one a prompt finds."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.shelf import Entry, Shelf
from monkeycode_lsp.engines.local.batch.tokens import common_prefix


def entry(tokens, n_bytes=1):
    return Entry(tuple(tokens), n_bytes, lambda: b"x" * n_bytes)


def shelf_of(*entries, most_bytes=10):
    shelf = Shelf(most_bytes)
    for each in entries:
        shelf.put(each)
    return shelf


def kept(shelf):
    """Most recently used first."""
    return [each.tokens for each in shelf]


def test_what_does_not_fit_pushes_out_what_was_put_first():
    shelf = shelf_of(entry([1], 4), entry([2], 4), entry([3], 4))
    assert kept(shelf) == [(3,), (2,)]
    assert shelf.n_bytes == 8


def test_one_large_state_pushes_out_as_many_as_it_must():
    assert kept(shelf_of(entry([1], 4), entry([2], 4), entry([3], 7))) == [(3,)]


def test_what_never_fits_pushes_out_nothing():
    assert kept(shelf_of(entry([1], 4), entry([2], 11))) == [(1,)]


def test_a_state_that_fits_exactly_is_kept():
    assert kept(shelf_of(entry([1], 10))) == [(1,)]


def test_what_was_used_goes_last():
    first, second = entry([1], 4), entry([2], 4)
    shelf = shelf_of(first, second)
    shelf.used(first)
    shelf.put(entry([3], 4))
    assert kept(shelf) == [(3,), (1,)]


def test_what_was_only_looked_at_is_not_used():
    # All prompts of a model begin with the same token; that must not keep the oldest document.
    shelf = shelf_of(entry([7, 1], 4), entry([7, 2], 4))
    assert shelf.best([7, 3])[1] == 1
    shelf.put(entry([7, 4], 4))
    assert kept(shelf) == [(7, 4), (7, 2)]


def test_a_longer_state_takes_the_place_of_its_beginnings():
    assert kept(shelf_of(entry([1]), entry([1, 2]), entry([1, 3]), entry([1, 2, 3, 4]))) == [(1, 2, 3, 4), (1, 3)]


def test_the_same_again_is_kept_once():
    assert kept(shelf_of(entry([1, 2]), entry([3]), entry([1, 2]))) == [(1, 2), (3,)]


def test_the_best_state_shares_most_whatever_its_length():
    shelf = shelf_of(entry([1, 2, 3, 9]), entry([1, 2]), entry([1, 9, 9, 9, 9]))
    found, shared = shelf.best([1, 2, 3, 4])
    assert (found.tokens, shared) == ((1, 2, 3, 9), 3)


def test_an_empty_shelf_has_nothing():
    assert Shelf(10).best([1]) == (None, 0)
    assert not Shelf(10).has([1])


def test_it_has_what_an_entry_begins_with():
    shelf = shelf_of(entry([1, 2, 3]))
    assert shelf.has([1, 2])
    assert shelf.has([1, 2, 3])
    assert not shelf.has([1, 2, 3, 4])
    assert not shelf.has([2])


def test_what_was_dropped_is_gone_and_dropping_it_again_does_no_harm():
    first = entry([1])
    shelf = shelf_of(first, entry([2]))
    for _ in range(2):
        shelf.drop(first)
        assert kept(shelf) == [(2,)]


states = st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(1, 5))


@given(st.lists(states, max_size=20), st.integers(0, 12), st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_it_never_holds_too_much_nor_a_beginning_of_what_it_holds_and_finds_the_best(puts, most_bytes, wanted):
    shelf = Shelf(most_bytes)
    for tokens, n_bytes in puts:
        shelf.put(entry(tokens, n_bytes))
        held = kept(shelf)
        assert shelf.n_bytes == sum(each.n_bytes for each in shelf) <= most_bytes
        assert n_bytes > most_bytes or held[0] == tuple(tokens)
        assert all(common_prefix(newer, older) < len(older) for newer, older in itertools.combinations(held, 2))
    assert shelf.best(wanted)[1] == max((common_prefix(tokens, wanted) for tokens in kept(shelf)), default=0)
