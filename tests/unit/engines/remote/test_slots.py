"""Which document has which slot."""

from monkeycode_lsp.engines.remote.slots import Slots


def test_a_document_keeps_its_slot_and_two_have_two():
    slots = Slots(2)
    assert (slots.of("a"), slots.of("b"), slots.of("a"), slots.of("b")) == (0, 1, 0, 1)


def test_a_third_document_gets_the_slot_that_was_not_asked_for_longest():
    slots = Slots(2)
    assert [slots.of(session) for session in "abac"] == [0, 1, 0, 1]
    assert [slots.of(session) for session in "cab"] == [1, 0, 1]


def test_those_who_share_a_server_need_not_begin_with_the_same_slot():
    assert [Slots(4, first=3).of("a"), Slots(4, first=7).of("a")] == [3, 3]
    slots = Slots(4, first=3)
    assert [slots.of(session) for session in "abcd"] == [3, 0, 1, 2]


def test_one_slot_or_none_is_no_choice_and_neither_is_an_ask_of_no_document():
    assert [Slots(0).of("a"), Slots(1).of("a"), Slots(2).of("")] == [None, None, None]


def test_a_number_of_slots_that_no_server_has_costs_nothing():
    for count in (10**18, 50_000_000):
        slots = Slots(count, first=3)
        assert len({slots.of(str(session)) for session in range(2000)}) == 1024
    assert Slots(-5).of("a") is None
