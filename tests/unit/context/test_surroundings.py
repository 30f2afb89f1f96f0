"""What stands beyond the window, as far as it decides how the window's text is parsed."""

from __future__ import annotations

from monkeycode_lsp.config import Context
from monkeycode_lsp.context import surroundings
from monkeycode_lsp.context.window import around
from monkeycode_lsp.domain import Snapshot


def test_what_is_too_far_above_to_be_taken_whole_is_cut_at_a_line_of_the_left_margin() -> None:
    far, near = [f"    far_{n} = 1\n" for n in range(3_000)], [f"    near_{n} = 1\n" for n in range(300)]
    lines = ["def first():\n", *far, "def second():\n", *near]
    snapshot = Snapshot("file:///w/a.py", "python", 1, lines, len(lines) - 1, 4)
    window = around(snapshot, Context(prefix_tokens=64, suffix_tokens=32))
    found = surroundings.of(snapshot, window)
    assert found.before.startswith("def second():\n    near_0 = 1\n")
    assert found.cut_before
