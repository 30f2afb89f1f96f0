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
    assert tokens.estimate(seen.prefix) <= SMALL.prefix_tokens + 1
    assert tokens.estimate(seen.suffix) <= SMALL.suffix_tokens + 1


def test_the_beginning_stays_while_lines_are_typed():
    lines = "".join(f"value_{n} = {n}\n" for n in range(400))
    context = config.Context(prefix_tokens=512)
    starts = set()
    for n in range(window.STEP_LINES):
        seen = at(lines + "x\n" * n + "‸", context)
        starts.add(seen.prefix[:20])
    assert len(starts) <= 2


def test_one_very_long_line_is_cut_inside():
    seen = at("a" * 100_000 + "‸" + "b" * 100_000, SMALL)
    assert 0 < len(seen.prefix) <= 64 * 3.2 + 1
    assert set(seen.prefix) == {"a"}
    assert not seen.whole_prefix
    assert not seen.whole_suffix


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
