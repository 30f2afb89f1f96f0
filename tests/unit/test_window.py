"""The window: what it takes, in which units, and that it costs what it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from monkeycode_lsp import config
from monkeycode_lsp.context import tokens, window
from monkeycode_lsp.domain import Selected
from tests.unit.places import at, snapshot

SMALL = config.Context(prefix_tokens=64, suffix_tokens=16)


def test_a_small_document_is_taken_whole():
    seen = at("a\nb‸c\nd\n")
    assert (seen.prefix, seen.suffix, seen.whole_prefix, seen.whole_suffix) == ("a\nb", "c\nd\n", True, True)


def test_the_prompt_never_holds_a_carriage_return():
    seen = at("a\r\n\tb‸\r\nc\rd")
    assert (seen.prefix, seen.suffix) == ("a\n\tb", "\nc\nd")


@given(st.lists(st.sampled_from(["x = 1\n", "漢字漢字\n", "\n", "a" * 400 + "\n"]), max_size=60), st.integers(0, 60))
def test_the_window_is_the_text_around_the_cursor_and_fits(lines, at_line):
    text = "".join(lines)
    offset = sum(map(len, lines[:at_line]))
    seen = at(text[:offset] + "‸" + text[offset:], SMALL)
    assert text[:offset].endswith(seen.prefix)
    assert text[offset:].startswith(seen.suffix)
    assert seen.whole_prefix == (seen.prefix == text[:offset])
    budget = SMALL.prefix_tokens + SMALL.suffix_tokens
    n_before, n_after = (tokens.estimate(part, tokens.rates("python")) for part in (seen.prefix, seen.suffix))
    assert n_before + n_after <= budget + 2
    assert n_before <= SMALL.prefix_tokens + 2 or n_after < SMALL.suffix_tokens


def typed_on(before, typed, context, **more):
    """The windows at each key of `typed`, behind `before`."""
    for n in range(0, len(typed) + 1, 11):
        yield at(before + typed[:n] + "‸\n# the end\n", context, **more)


@pytest.mark.parametrize("widths", [(1, 1), (4, 12), (1, 40), (20, 20)])
def test_the_beginning_stays_for_long_while_200_lines_are_typed(widths):
    least, most = widths
    lines = [f"{'word ' * (least + n * 7 % (most - least + 1))}\n" for n in range(500)]
    context = config.Context(prefix_tokens=512, suffix_tokens=64)
    n_resets = n_typed = 0
    last = ""
    for seen in typed_on("".join(lines[:300]), "".join(lines[300:]), context):
        n_typed += 1
        n_resets += not seen.prefix.startswith(last) if last else 0
        last = seen.prefix
        assert 0.7 * 512 <= tokens.estimate(seen.prefix, tokens.rates("python")) <= 512 + 65
    # At most one for an eighth of the budget: the least that could be with this slack is one for a quarter.
    n_tokens = tokens.estimate("".join(lines[300:]), tokens.rates("python"))
    assert 0 < n_resets <= n_tokens / 64 + 1
    assert n_resets < n_typed / 6


def test_the_end_stays_while_lines_are_typed_above_it():
    below = "".join(f"value_{n} = {n}\n" for n in range(400))
    ends = {at("x\n" * n + "y‸\n" + below, SMALL).suffix for n in range(60, 100)}
    assert len(ends) == 1


def test_what_one_side_does_not_need_the_other_gets():
    lines = "x = 1\n" * 200
    context = config.Context(prefix_tokens=256, suffix_tokens=64)
    middle, top, bottom = at(lines + "‸\n" + lines, context), at("‸" + lines, context), at(lines + "‸", context)
    cost = lambda text: tokens.estimate(text, tokens.rates("python"))  # noqa: E731 - a name for two words
    assert 0.7 * 256 <= cost(middle.prefix) <= 256
    assert 0.8 * 64 <= cost(middle.suffix) <= 64
    assert 0.9 * 320 <= cost(top.suffix) <= 320
    assert 0.7 * 320 <= cost(bottom.prefix) <= 320


def test_who_wants_nothing_from_below_gets_nothing():
    assert at("‸x = 1\ny = 2\n", config.Context(suffix_tokens=0)).suffix.strip() == ""


def test_the_other_border_moves_seldom_while_a_short_document_grows():
    below = "".join(f"value_{n} = {n}\n" for n in range(400))
    typed = "word word word\n" * 60
    suffixes = {at(typed[:n] + "‸\n" + below, config.Context(prefix_tokens=256, suffix_tokens=64)).suffix for n in range(0, len(typed), 5)}
    assert len(suffixes) <= 9


LONG = ", ".join(f"value_{n}" for n in range(30_000))


def test_one_very_long_line_is_cut_inside_where_something_begins():
    seen = at(LONG + "‸, " + LONG, SMALL)
    assert LONG.endswith(seen.prefix)
    assert seen.prefix.startswith("value_")
    assert 0.6 * 64 <= tokens.estimate(seen.prefix) <= 64 + 16 + 1
    assert 0 < tokens.estimate(seen.suffix) <= 17
    assert (seen.whole_prefix, seen.whole_suffix) == (False, False)


def test_the_beginning_stays_while_a_very_long_line_is_typed():
    context = config.Context(prefix_tokens=512, suffix_tokens=64)
    last, n_resets = "", 0
    for n in range(20_000, 22_000, 9):
        prefix = at(LONG[:n] + "‸", context).prefix
        n_resets += not prefix.startswith(last)
        last = prefix
    assert n_resets <= 2_000 / (512 * 2.0 * window.SLACK / 2)


def test_the_end_of_a_very_long_line_stays_while_it_is_typed_in():
    context = config.Context(prefix_tokens=16, suffix_tokens=64)
    assert len({at("x" * n + "‸" + LONG, context).suffix for n in range(40, 80)}) == 1


def test_a_part_of_an_endless_line_above_is_better_than_nothing():
    seen = at(LONG + "\nx = ‸", SMALL)
    assert (LONG + "\nx = ").endswith(seen.prefix)
    assert len(seen.prefix) > 60


def test_an_endless_line_costs_no_more_than_a_long_one():
    class Watched(str):
        __slots__ = ()
        longest = 0

        def __getitem__(self, key):
            part = str.__getitem__(self, key)
            Watched.longest = max(Watched.longest, len(part))
            return part

        def rstrip(self, characters=None):
            raise AssertionError("the whole line was copied")

    line = Watched("x = 1; " * 700_000)
    place = replace(snapshot("‸"), lines=[line, line, line], line=1, column=2_500_000)
    seen = window.around(place, config.Context())
    assert Watched.longest <= 1_280 * 16 + 2
    assert seen.prefix.endswith("x = 1; "[: 2_500_000 % 7] or "; ")


@pytest.mark.parametrize("letter", ["e\u0301", "\U0001f44d\U0001f3fd", "\ud83d\ude00", "\U0001f469\u200d\U0001f467", "\u0915\u093e"])
def test_no_cut_is_inside_what_is_one_character_to_a_reader(letter):
    for n in range(40, 60):
        seen = at("x" + letter * 3 * n + "‸" + "y" + letter * 3 * n, config.Context(prefix_tokens=n, suffix_tokens=n))
        assert 0 < len(seen.prefix) < 3 * n * len(letter)
        assert seen.prefix == letter * (len(seen.prefix) // len(letter))
        assert 0 < len(seen.suffix) < 3 * n * len(letter)
        assert seen.suffix == "y" + letter * (len(seen.suffix) // len(letter))


def test_a_smaller_scale_takes_less_of_both_sides():
    lines = "x = 1\n" * 2_000
    whole, half = (window.around(snapshot(lines + "‸\n" + lines), config.Context(), scale=scale) for scale in (1.0, 0.5))
    assert 0.35 <= len(half.prefix) / len(whole.prefix) <= 0.65
    assert 0.4 <= len(half.suffix) / len(whole.suffix) <= 0.6


def test_the_counter_decides_what_fits():
    class Dear:
        def line(self, text):
            return 10.0

        def part(self, text):
            return 10.0

    place = snapshot("x\n" * 100 + "‸\n" + "y\n" * 100)
    seen = window.around(place, config.Context(prefix_tokens=100, suffix_tokens=50), counter=Dear())
    assert 6 <= seen.prefix.count("\n") <= 9
    assert seen.suffix.count("y") == 4


def test_only_the_lines_that_are_taken_are_looked_at():
    class Counting(list):
        n_read = 0

        def __getitem__(self, key):
            Counting.n_read += len(range(*key.indices(len(self)))) if isinstance(key, slice) else 1
            return super().__getitem__(key)

    lines = Counting(["x = 1\n"] * 100_000 + [""])
    place = snapshot("‸")
    window.around(replace(place, lines=lines, line=50_000, column=2), SMALL)
    assert Counting.n_read < 1_000


def test_notebook_cells_come_before_and_after():
    seen = at("df.‸", cells_before=("# title", "df = load()\n"), cells_after=("end()",))
    assert seen.prefix == "# title\ndf = load()\ndf."
    assert seen.suffix == "\nend()"


def test_of_a_cell_that_does_not_fit_the_nearest_lines_are_taken():
    cell = "".join(f"a{n} = 1\n" for n in range(200))
    seen = at("df.‸", SMALL, cells_before=("first\n", cell), cells_after=(cell,))
    before, after = seen.prefix.splitlines(), seen.suffix.splitlines()
    assert before[-2:] == ["a199 = 1", "df."]
    assert 5 < len(before) < 30
    assert after[:3] == ["", "a0 = 1", "a1 = 1"]
    assert (seen.whole_prefix, seen.whole_suffix) == (False, False)


def test_the_selected_entry_is_taken_in():
    seen = window.around(snapshot("x = foo.ba‸r\ny"), config.Context(), Selected("bar_long(", 0, 8, 11))
    assert (seen.prefix, seen.suffix) == ("x = foo.bar_long(", "\ny")


@pytest.mark.parametrize(
    ("uri", "workspace", "path"),
    [
        ("file:///w/src/a.py", "file:///w", "src/a.py"),
        ("file:///home/someone/a%20b.py", "", "a b.py"),
        ("file:///home/someone/a.py", "file:///w", "a.py"),
        ("untitled:Untitled-1", "file:///w", "Untitled-1"),
        ("file:///c%3A/w/x/a.py", "file:///c%3A/w", "x/a.py"),
    ],
)
def test_no_path_of_this_machine_is_shown(uri, workspace, path):
    assert window.relative_path(uri, workspace) == path
