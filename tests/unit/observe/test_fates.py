"""What becomes of a suggestion that was shown."""

import pytest

from monkeycode_lsp.domain import Fate
from monkeycode_lsp.observe.fates import Fates
from tests.unit.places import URI, snapshot

OTHER = "file:///w/other.py"


class Editor:
    """One window: what it shows and how its text changes."""

    def __init__(self):
        self.fates = Fates()
        self.told = []
        self.n_asks = 0

    def shows(self, marked, text, uri=URI):
        self.n_asks += 1
        self.told += self.fates.shown(self.n_asks, snapshot(marked, uri=uri), text)
        return self

    def has(self, *marked, uri=URI):
        for text in marked:
            self.told += self.fates.edited(uri, snapshot(text, uri=uri).lines)
        return self

    def ends(self):
        return [(one.ask_id, one.fate, one.taken) for one in self.told if one.fate is not Fate.OPEN]


def test_it_is_open_until_something_happens():
    editor = Editor().shows("x = ‸", "hello")
    assert [(one.ask_id, one.fate) for one in editor.told] == [(1, Fate.OPEN)]
    assert editor.ends() == []


def test_what_comes_into_the_text_at_once_was_accepted():
    editor = Editor().shows("a\nx = ‸\nb", "hello(1)").has("a\nx = hello(1)‸\nb")
    assert editor.ends() == [(1, Fate.ACCEPTED, "hello(1)")]
    assert editor.told[-1].share == 1
    assert editor.has("a\nx = hello(1)y‸\nb").shows("a\nx = hello(1)y‸\nb", "z").ends() == [(1, Fate.ACCEPTED, "hello(1)")]


def test_what_comes_key_by_key_was_typed():
    text = "hello()"
    editor = Editor().shows("x = ‸", text)
    editor.has(*(f"x = {text[:n]}‸" for n in range(1, 6)), "x = hello()‸")
    assert editor.ends() == [(1, Fate.TYPED, text)]


def test_several_lines_are_accepted_too_and_windows_line_ends_do_not_matter():
    editor = Editor().shows("if x:‸\r\nz\r\n", "\n    a\n    b").has("if x:\r\n    a\r\n    b‸\r\nz\r\n")
    assert editor.ends() == [(1, Fate.ACCEPTED, "\n    a\n    b")]


def test_the_rest_of_it_is_the_same_suggestion():
    editor = Editor().shows("x = ‸", "hello(1)").has("x = he‸").shows("x = he‸", "llo(1)").has("x = hel‸").shows("x = hel‸", "lo(1)")
    assert editor.ends() == [(2, Fate.CONTINUED, ""), (3, Fate.CONTINUED, "")]
    editor.has("x = hello(1)‸")
    assert editor.ends()[-1] == (1, Fate.ACCEPTED, "hello(1)")


def test_one_that_was_still_being_made_grows():
    editor = Editor().shows("x = ‸", "[\n").shows("x = ‸", "[\n    1,\n]").has("x = [\n    1,\n]‸")
    assert editor.ends() == [(2, Fate.CONTINUED, ""), (1, Fate.ACCEPTED, "[\n    1,\n]")]


def test_an_ask_that_answers_twice_has_one_fate():
    editor = Editor().shows("x = ‸", "hello")
    editor.n_asks -= 1
    editor.shows("x = ‸", "hello()").has("x = hello()‸")
    assert [(one.ask_id, one.fate) for one in editor.told] == [(1, Fate.OPEN), (1, Fate.ACCEPTED)]


def test_another_one_in_its_place_ends_it():
    editor = Editor().shows("x = ‸", "hello").has("x = y‸").shows("x = y‸", "z")
    assert editor.ends() == [(1, Fate.IGNORED, "")]


def test_a_part_that_was_typed_is_a_part():
    editor = Editor().shows("x = ‸", "hello").has("x = hel‸", "x = hely‸").shows("x = hely‸", "z")
    assert editor.ends() == [(1, Fate.PARTIAL, "hel")]
    assert editor.told[-2].share == 3 / 5


def test_a_letter_or_two_are_no_part():
    editor = Editor().shows("x = ‸", "hello").has("x = h‸", "x = ha‸").shows("x = ha‸", "z")
    assert editor.ends() == [(1, Fate.IGNORED, "")]


def test_a_place_that_is_gone_ends_it():
    assert Editor().shows("x = ‸", "hello").has("y‸").ends() == [(1, Fate.IGNORED, "")]


def test_edits_above_and_below_do_not():
    editor = Editor().shows("a\nx = ‸\nb", "hello").has("a\nnew\nx = ‸\nb", "a\nnew\nx = \nb\nmore‸")
    assert editor.ends() == []
    assert editor.has("a\nnew\nx = hello‸\nb\nmore").ends() == [(1, Fate.ACCEPTED, "hello")]


def test_lines_that_look_alike_are_not_mixed_up():
    editor = Editor().shows("    a\n    ‸\n    b\n", "hello").has("    hello\n    a\n    ‸\n    b\n")
    assert editor.ends() == [], "the same text in another line"
    editor.has("    hello\n    a\n    hello‸\n    b\n")
    assert editor.ends() == [(1, Fate.ACCEPTED, "hello")]
    assert editor.told[-1].place.line == 2


def test_a_typo_that_is_corrected_costs_nothing():
    editor = Editor().shows("x = ‸", "hello()").has("x = h‸", "x = hr‸", "x = h‸", "x = he‸", "x = hel‸", "x = hell‸", "x = hello‸")
    assert editor.has("x = hello()‸").ends() == [(1, Fate.TYPED, "hello()")]


def test_what_stood_there_already_is_not_taken():
    editor = Editor().shows("f(‸)", ")").has("f(a‸)")
    assert editor.ends() == []
    editor = Editor().shows("f(‸)", ") + 1").has("f() + 1‸)")
    assert editor.ends() == [(1, Fate.ACCEPTED, ") + 1")]


def test_what_the_editor_says_counts_once():
    editor = Editor().shows("x = ‸", "hello")
    editor.told += editor.fates.accepted(1)
    assert editor.has("x = hello‸").ends() == [(1, Fate.ACCEPTED, "hello")]
    editor = Editor().shows("x = ‸", "hello").has("x = hello‸")
    assert editor.fates.accepted(1) == []


def test_the_rest_is_accepted_by_its_own_number():
    editor = Editor().shows("x = ‸", "hello").has("x = he‸").shows("x = he‸", "llo")
    editor.told += editor.fates.accepted(2)
    assert editor.ends()[-1] == (1, Fate.ACCEPTED, "hello")


def test_no_is_no_to_what_is_on_the_screen_only():
    editor = Editor().shows("x = ‸", "hello").has("x = he‸").shows("x = he‸", "llo")
    assert editor.fates.rejected(1) == []
    assert [(one.ask_id, one.fate) for one in editor.fates.rejected(2)] == [(1, Fate.REJECTED)]
    assert editor.fates.rejected(2) == []
    assert editor.fates.rejected(9) == []


def test_no_after_a_part_was_taken_is_a_part():
    editor = Editor().shows("x = ‸", "hello").has("x = hell‸")
    assert [(one.fate, one.taken) for one in editor.fates.rejected(1)] == [(Fate.PARTIAL, "hell")]


def test_what_was_never_seen_has_no_fate():
    editor = Editor().shows("x = ‸", "hello")
    editor.fates.unseen(1)
    assert editor.has("x = hello‸").ends() == []
    editor.shows("x = ‸", "hello").has("x = he‸").shows("x = he‸", "llo")
    editor.fates.unseen(3)
    assert editor.has("x = hello‸").ends()[-1] == (2, Fate.ACCEPTED, "hello"), "the one before is on the screen as it was"


def test_a_document_that_is_closed_ends_it():
    editor = Editor().shows("x = ‸", "hello").shows("x = ‸", "hello", OTHER)
    assert [(one.ask_id, one.fate) for one in editor.fates.closed(URI)] == [(1, Fate.IGNORED)]
    assert editor.fates.closed(URI) == []
    assert editor.has("x = hello‸", uri=OTHER).ends() == [(2, Fate.ACCEPTED, "hello")]


def test_documents_without_end_are_forgotten_with_a_fate():
    editor = Editor()
    for number in range(70):
        editor.shows("x = ‸", "hello", f"file:///w/{number}.py")
    assert [fate for _, fate, _ in editor.ends()] == [Fate.IGNORED] * 6


@pytest.mark.parametrize("text", ["\0", "\ud800", "\n", "\n\n\n", "x" * 10_000])
def test_any_text_can_be_followed(text):
    assert Editor().shows("‸", text).has("‸", text).told


def test_a_shorter_rest_of_it_is_the_same_suggestion_and_what_was_seen_first_is_what_was_taken():
    editor = Editor().shows("x = ‸", "hello(1) + 2").has("x = he‸").shows("x = he‸", "llo(1)")
    assert editor.ends() == [(2, Fate.CONTINUED, "")]
    assert editor.has("x = hello(1) + 2‸").ends()[-1] == (1, Fate.ACCEPTED, "hello(1) + 2")
