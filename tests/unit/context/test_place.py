from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.context import place, window
from monkeycode_lsp.domain import Snapshot


def test_the_window_shows_the_lines_from_its_first_to_its_last() -> None:
    lines = [f"line_{n} = {n}\n" for n in range(400)] + [""]
    snapshot = Snapshot("file:///w/a.py", "python", 1, lines, 200, 3, workspace="file:///w")
    shown = window.around(snapshot, config.Context(prefix_tokens=64, suffix_tokens=32))
    here = place.of(snapshot, shown)
    assert (here.path, here.line) == ("a.py", 200)
    assert shown.prefix.startswith(lines[here.first])
    assert shown.suffix.rstrip("\n").endswith(lines[here.stop - 1].rstrip("\n"))


@pytest.mark.parametrize(
    ("uri", "first", "stop", "shown"),
    [("u", 0, 10, False), ("u", 0, 11, True), ("u", 19, 30, True), ("u", 20, 30, False), ("v", 10, 20, False)],
)
def test_lines_are_shown_if_one_of_them_is(uri: str, first: int, stop: int, *, shown: bool) -> None:
    assert place.Place("u", "python", "a.py", 15, 10, 20).shows(uri, first, stop) is shown


def test_cells_above_do_not_make_lines() -> None:
    snapshot = Snapshot("u", "python", 1, ["a\n", "b"], 1, 0, cells_before=("x\ny\nz",), cells_after=("q\nr",))
    here = place.of(snapshot, window.around(snapshot, config.Context()))
    assert (here.first, here.stop) == (0, 2)
