"""The sample of holes."""

from __future__ import annotations

from monkeycode_lsp.bench import engine_text
from monkeycode_lsp.bench.quality import sample

FILES = engine_text.library()


def test_the_sample_is_the_same_each_time_and_a_larger_one_begins_with_it():
    small = sample.sample(FILES, 5)
    assert sample.sample(FILES, 5) == small
    assert sample.sample(FILES, 8)[:5] == small


def test_a_hole_is_the_rest_of_a_line_and_its_neighbours_are_as_long_as_the_protocol_says():
    for hole in sample.sample(FILES, 40):
        assert "\n" not in hole.expected
        assert len(hole.expected.strip()) >= 4
        assert len(hole.prefix) == 1200
        assert hole.suffix.startswith("\n")
        assert len(hole.suffix) <= 400


def test_some_cuts_fall_into_words_as_they_do_when_people_type():
    inside = [hole for hole in sample.sample(FILES, 40) if hole.prefix[-1].isalnum() and hole.expected[0].isalnum()]
    assert 5 <= len(inside) <= 35


def test_a_blank_rest_and_the_last_line_are_no_holes():
    assert sample.cut("value = 1   \nmore\n", 9) is None
    assert sample.cut("first\nlast line", 8) is None
    assert sample.cut("x = " + "1" * 500 + "\n", 4) is None
