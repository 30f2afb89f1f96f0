from __future__ import annotations

from monkeycode_lsp.context import words


def test_words_are_identifiers_without_the_languages_own() -> None:
    assert words.words("def größe(self, max_size: int) -> None:  # x 12") == {"größe", "max_size"}


def test_only_a_part_of_a_huge_text_is_looked_at() -> None:
    assert words.words("x " * words.LOOKED_AT + "far_away") == frozenset()


def test_likeness_is_what_two_texts_share_of_all_their_words() -> None:
    assert words.likeness(frozenset("ab"), frozenset("bc")) == 1 / 3
    assert words.likeness(frozenset(), frozenset()) == 0


def test_lines_are_compared_whatever_their_indentation_and_short_ones_not_at_all() -> None:
    assert words.lines("    value = 1\n}\n\nvalue = 1\n") == {"value = 1"}


def test_a_part_is_contained_by_the_share_that_the_whole_has() -> None:
    assert words.contained(frozenset("ab"), frozenset("bcd")) == 0.5
    assert words.contained(frozenset(), frozenset("a")) == 1
