"""Is what was taken still there?"""

from monkeycode_lsp.observe.fates import Place
from monkeycode_lsp.observe.retention import Kept, Retention
from tests.unit.places import URI


def lines(text):
    return text.splitlines(keepends=True)


BEFORE = lines("a\nx = \nb\n")
PLACE = Place(1, len(BEFORE), "x = ")


def watching(text="hello(1)"):
    retention = Retention()
    retention.watch(7, URI, PLACE, text, 0.0)
    return retention


def test_what_nobody_touches_is_kept():
    retention = watching()
    assert retention.due(29.9) == []
    assert retention.due(30) == [Kept(7, 30, 1.0)]
    assert retention.due(31) == []
    assert retention.due(500) == [Kept(7, 120, 1.0)]
    assert retention.due(501) == []


def test_what_is_deleted_is_not():
    retention = watching()
    retention.edited(URI, lines("a\nx = \nb\n"), 10)
    assert retention.due(40) == [Kept(7, 30, 0.0)]


def test_what_moved_is_kept():
    retention = watching("\n    one\n    two")
    retention.edited(URI, lines("new\n" * 50 + "a\nif x:\n        one\n        two\nb\n"), 10)
    assert retention.due(40) == [Kept(7, 30, 1.0)]


def test_a_part_is_a_share_by_characters():
    retention = watching("\n    one\n    threes")
    retention.edited(URI, lines("a\nx = \n    one\nb\n"), 10)
    assert retention.due(40) == [Kept(7, 30, 3 / 9)]


def test_the_first_and_the_last_line_may_go_on():
    retention = watching("hello(\n    1,\n")
    retention.edited(URI, lines("a\nx = hello(\n    1, 2)\n"), 10)
    assert retention.due(40) == [Kept(7, 30, 1.0)]


def test_an_answer_that_is_due_is_not_changed_by_what_comes_later():
    retention = watching()
    assert retention.due(30) == [Kept(7, 30, 1.0)]
    retention.edited(URI, lines("a\n"), 60)
    assert retention.due(130) == [Kept(7, 120, 0.0)]


def test_other_documents_do_not_matter_and_closed_ones_are_forgotten():
    retention = watching()
    retention.edited("file:///w/other.py", lines("a\n"), 10)
    assert retention.due(30) == [Kept(7, 30, 1.0)]
    retention.closed(URI)
    assert retention.due(130) == []


def test_it_does_not_look_at_every_key():
    retention = watching()
    retention.edited(URI, lines("a\n"), 10)
    retention.edited(URI, lines("a\nx = hello(1)\n"), 10.5)
    assert retention.due(30) == [Kept(7, 30, 0.0)]
    retention.edited(URI, lines("a\nx = hello(1)\n"), 31)
    assert retention.due(120) == [Kept(7, 120, 1.0)]


def test_white_space_is_nothing_to_keep():
    assert watching("\n    ").due(130) == []
