"""Which KV cache a prompt takes, and what becomes of what that one held."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.shelf import Shelf
from monkeycode_lsp.engines.local.batch.slots import WORTH, Slots
from monkeycode_lsp.engines.local.batch.tokens import common_prefix
from tests.unit.engines.local.toy import ToyRuntime

HEADER = [7] * WORTH


def document(name, n=100):
    """Tokens that no other document begins with."""
    return [1000 * name + at for at in range(n)]


class Caches:
    """Slots over a toy, and prompts that are read and released."""

    def __init__(self, n_sequences=2, shelf_bytes=1 << 20, **more):
        self.runtime = ToyRuntime(n_sequences=n_sequences, **more)
        self.shelf = Shelf(shelf_bytes)
        self.slots = Slots(self.runtime, self.shelf)
        self.n_read = 0

    def take(self, tokens, session="", *, free=None):
        """As the batch loop takes a slot: `n_read` is what is left to read."""
        if free is None:
            free = [slot for slot in self.slots.all if not slot.taken]
        slot = self.slots.take(tokens, session, free=free)
        self.check()
        held = len(slot.tokens)
        assert slot in free
        assert slot.taken
        assert slot.tokens == tokens[:held]
        assert held < len(tokens)  # the last token is read for its logits
        self.n_read = len(tokens) - held
        self.runtime.cells[slot.number] += tokens[held:]
        slot.tokens += tokens[held:]
        return slot

    def read(self, tokens, session=""):
        slot = self.take(tokens, session)
        self.slots.release(slot)
        return slot.number

    def check(self):
        """What is said of each slot is what its cache holds."""
        assert [slot.tokens for slot in self.slots.all] == self.runtime.cells

    def shelved(self):
        return [list(entry.tokens) for entry in self.shelf]


def test_another_document_takes_an_empty_slot():
    caches = Caches()
    assert [caches.read(document(n), str(n)) for n in (1, 2)] == [0, 1]
    assert caches.shelved() == []


def test_the_same_document_stays_in_its_slot_whatever_was_edited_and_nothing_is_put_away():
    caches = Caches()
    tokens = document(1)
    number = caches.read(tokens, "a")
    caches.read(document(2), "b")
    edited = [*tokens[:40], 5, *tokens[60:]]
    assert caches.read(edited, "a") == number
    assert caches.n_read == len(edited) - 40
    assert caches.shelved() == []
    assert caches.runtime.n_saved == 0


def test_one_token_more_reads_one_token():
    caches = Caches()
    caches.read(document(1))
    caches.read([*document(1), 5])
    assert caches.n_read == 1


def test_the_same_prompt_again_reads_its_last_token_only():
    caches = Caches()
    caches.read(document(1))
    caches.read(document(1))
    assert caches.n_read == 1


def test_a_prompt_that_ends_earlier_reads_its_last_token_only():
    caches = Caches()
    caches.read(document(1))
    caches.read(document(1)[:50])
    assert caches.n_read == 1


def test_a_prompt_of_one_token_is_read_also_where_it_is_held():
    caches = Caches()
    caches.read([5])
    caches.read([5])
    assert caches.n_read == 1


def test_the_document_that_was_not_used_for_longest_goes_to_the_shelf():
    caches = Caches()
    for n in (1, 2, 1):
        caches.read(document(n), str(n))
    assert caches.read(document(3), "3") == 1
    assert caches.shelved() == [document(2)]


def test_a_document_comes_back_from_the_shelf_and_leaves_it():
    caches = Caches(1)
    caches.read(document(1), "1")
    caches.read(document(2), "2")
    caches.read([*document(1), 5], "1")
    assert caches.n_read == 1
    assert caches.shelved() == [document(2)]


def test_a_state_that_is_used_in_part_stays_on_the_shelf():
    caches = Caches(1)
    caches.read(document(1), "1")
    caches.read(document(2), "2")
    caches.read([*document(1)[:80], 5], "3")
    assert caches.n_read == 1
    assert sorted(caches.shelved()) == [document(1), document(2)]


def test_a_state_that_is_used_in_part_is_kept_longer_than_one_that_is_not():
    caches = Caches(1, shelf_bytes=1400)  # two of them
    for n in (1, 2, 3):
        caches.read(document(n), str(n))
    assert sorted(caches.shelved()) == [document(1), document(2)]
    caches.read([*document(1)[:80], 5], "4")
    assert sorted(caches.shelved()) == [document(1), document(3)]


def test_a_taken_slot_is_left_alone_and_its_document_is_copied():
    caches = Caches()
    busy = caches.take(document(1), "a")
    other = caches.take([*document(1), 5], "a")
    assert other is not busy
    assert (busy.tokens, caches.n_read) == (document(1), 1)


def test_less_than_it_is_worth_is_read_and_not_copied():
    caches = Caches()
    caches.take([*HEADER[1:], *document(1)], "a")
    caches.take([*HEADER[1:], *document(2)], "b")
    assert caches.n_read == WORTH - 1 + len(document(2))
    assert caches.runtime.n_saved == 0


def test_a_common_header_is_copied_and_its_first_document_stays():
    caches = Caches()
    first = [*HEADER, *document(1)]
    caches.read(first, "a")
    assert caches.read([*HEADER, *document(2)], "b") == 1
    assert caches.n_read == len(document(2))
    assert caches.runtime.cells[0] == first


def test_without_another_slot_a_common_header_stays_and_its_first_document_goes_to_the_shelf():
    caches = Caches(1)
    caches.read([*HEADER, *document(1)], "a")
    caches.read([*HEADER, *document(2)], "b")
    assert caches.n_read == len(document(2))
    assert caches.shelved() == [[*HEADER, *document(1)]]


def test_little_is_not_put_away():
    caches = Caches(1)
    caches.read(document(1, WORTH - 1), "1")
    caches.read(document(2), "2")
    assert caches.shelved() == []


def test_what_another_slot_holds_as_well_is_not_put_away():
    caches = Caches()
    short, long = document(1, 50), document(1, 90)
    first = caches.take(short, "a")
    second = caches.take(long, "b")  # a copy, and more
    caches.slots.release(first)
    caches.slots.release(second)
    assert caches.read(document(2), "c") == first.number
    assert caches.shelved() == []


def test_an_answer_that_is_not_taken_over_does_not_make_its_document_another_one():
    caches = Caches()
    slot = caches.take(document(1), "a")
    answer = [5] * 2 * WORTH
    caches.runtime.cells[slot.number] += answer
    slot.tokens += answer
    caches.slots.release(slot)
    assert caches.read([*document(1), 6], "b") == slot.number
    assert caches.n_read == 1


def test_of_those_that_a_more_urgent_prompt_may_take_the_idle_one_is_taken():
    caches = Caches()
    lesser = caches.take([*HEADER, *document(1)], "a")
    idle = caches.take(document(2), "b")
    caches.slots.release(idle)
    taken = caches.take([*HEADER, *document(3)], "c", free=[lesser, idle])
    assert taken is idle
    assert lesser.tokens == [*HEADER, *document(1)]


def test_of_two_that_hold_as_much_the_idle_one_is_taken():
    caches = Caches()
    lesser = caches.take([*document(1), 5], "a")
    idle = caches.take([*document(1), 6], "a")
    caches.slots.release(idle)
    assert caches.take([*document(1), 7], "a", free=[lesser, idle]) is idle


def test_a_state_that_cannot_be_put_back_is_dropped_and_everything_is_read():
    caches = Caches(1)
    caches.read(document(1), "1")
    caches.read(document(2), "2")
    caches.runtime.restore = lambda sequence, state: caches.runtime.cells[sequence].clear()
    caches.read(document(1), "1")
    assert caches.n_read == len(document(1))
    assert caches.shelved() == [document(2)]


def test_a_state_whose_bytes_are_gone_is_dropped_and_everything_is_read():
    caches = Caches(1)
    caches.read(document(1), "1")
    caches.read(document(2), "2")
    next(iter(caches.shelf)).load = lambda: None
    caches.read(document(1), "1")
    assert caches.n_read == len(document(1))


def test_a_cache_that_cannot_be_cut_is_read_from_the_start():
    caches = Caches(1, can_cut=False)
    caches.read(document(1), "a")
    caches.read([*document(1)[:50], 5], "a")
    assert caches.n_read == 51


def test_a_copy_that_fails_leaves_an_empty_slot():
    caches = Caches()
    caches.take(document(1), "a")
    caches.runtime.restore = lambda sequence, state: caches.runtime.cells[sequence].clear()
    caches.take([*document(1), 5], "b")
    assert caches.n_read == len(document(1)) + 1


@pytest.mark.parametrize("n_kept", [0, 3])
def test_after_an_abort_the_cache_is_cut_back_to_what_is_known(n_kept):
    caches = Caches()
    slot = caches.take(document(1), "a")
    caches.runtime.cells[slot.number] += [1, 2, 3]
    assert caches.slots.resync(slot, n_kept)
    caches.check()
    assert slot.tokens == document(1)[:n_kept]


def test_all_states_are_put_away_in_the_order_of_their_use():
    caches = Caches(3)
    for n in (1, 2, 3, 1):
        caches.read(document(n), str(n))
    caches.slots.put_all_away()
    assert caches.shelved() == [document(1), document(3), document(2)]


prompts = st.tuples(st.integers(0, 3), st.integers(0, 90), st.integers(0, 40), st.lists(st.integers(0, 9), max_size=50), st.booleans())


@settings(deadline=None)
@given(st.lists(prompts, max_size=12), st.integers(1, 3), st.sampled_from([0, 2000, 1 << 20]), st.booleans())
def test_what_is_said_of_a_slot_is_always_what_its_cache_holds_and_a_copy_never_reads_more(asks, n_slots, shelf_bytes, can_cut):
    caches = Caches(n_slots, shelf_bytes, can_cut=can_cut)
    texts = [document(n % 2, 100) for n in range(4)]
    for which, at, n_removed, inserted, stays in asks:
        tokens = texts[which][:at] + inserted + texts[which][at + n_removed :]
        texts[which] = tokens = tokens or [0]
        taken = [slot for slot in caches.slots.all if slot.taken]
        if len(taken) == n_slots:
            caches.slots.release(taken[at % n_slots])
            taken.pop(at % n_slots)
        busy = {slot: list(slot.tokens) for slot in taken}
        held = [common_prefix(slot.tokens, tokens) for slot in caches.slots.all]
        slot = caches.take(tokens, str(which))
        assert all(other.tokens == before for other, before in busy.items())
        if can_cut:
            assert caches.n_read <= max(len(tokens) - max(held), 1) + WORTH
        if not stays:
            caches.slots.release(slot)
        caches.check()
        assert caches.shelf.n_bytes <= shelf_bytes
