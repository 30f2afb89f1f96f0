"""How well an answer fills a built-in hole."""

from __future__ import annotations

import pytest

from monkeycode_lsp.engines.remote.examination import holes
from monkeycode_lsp.engines.remote.examination.holes import HOLES
from monkeycode_lsp.prompt.families import QWEN

AREA, TOTAL, SQUARE = HOLES


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("after", ["", "\n", "all"])
def test_what_is_expected_fills_it_also_where_the_model_runs_on_into_what_follows(hole: holes.Hole, after: str) -> None:
    assert holes.likeness(hole, hole.expected + (hole.suffix if after == "all" else after)) == 1.0


@pytest.mark.parametrize("hole", HOLES)
def test_the_name_that_is_wanted_stands_in_what_follows_only(hole: holes.Hole) -> None:
    name = hole.expected.partition(" ")[0]
    assert name in hole.suffix
    assert name not in hole.prefix


@pytest.mark.parametrize("hole", HOLES)
def test_nothing_is_worth_nothing(hole: holes.Hole) -> None:
    assert holes.likeness(hole, " \n") == 0.0


@pytest.mark.parametrize(
    ("hole", "said"),
    [
        (AREA, " return width * height\n\nprint(area(5, 3))"),
        (AREA, "def surface(width, height):\n    <fim_suffix>"),
        (TOTAL, " total = 0;\n\nfor (let i = 0; i < prices.length; i++)"),
        (TOTAL, "const grandTotal = 0;\nfor (const price of prices) {"),
        (TOTAL, "grandTotal = grandTotal + 10;\n"),
        (SQUARE, "int square_of(int x)\n{\n    return x * x;\n}\n"),
        (SQUARE, " count(int n) {\n    if (n == 0) return 1;"),
        (SQUARE, "square_of_root(x)"),
    ],
)
def test_what_small_models_say_without_understanding_the_markers_does_not_fill_it(hole: holes.Hole, said: str) -> None:
    assert holes.likeness(hole, said) < holes.FILLED


def test_white_space_tells_nothing() -> None:
    assert holes.likeness(AREA, "  surface  =  width*height\n") == 1.0


def test_markers_that_come_back_are_seen() -> None:
    assert holes.shows(QWEN, "a<|fim_suffix|>b")
    assert not holes.shows(QWEN, "a<fim_suffix>b")
