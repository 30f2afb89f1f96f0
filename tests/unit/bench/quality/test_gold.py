"""Right answers must come out as they went in."""

from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench.quality import gold
from monkeycode_lsp.bench.quality.infilling import Problem

PROBLEM = Problem(
    id="HumanEval/7",
    prompt="def f(a):\n    '''Twice.'''\n",
    solution="    b = a + a\n    c = b\n    return c\n",
    test="",
    entry_point="f",
)


@pytest.mark.parametrize("text", ["    for idx, element in enumerate(numbers):", "a\n\n    b  \n", "", "    ", "x = 'ä' + \"→\"", "\n\n"])
def test_nothing_is_lost_in_pieces_and_they_are_small(text):
    pieces = gold.pieces(text)
    assert "".join(pieces) == text
    assert all(len(piece.strip()) <= 6 for piece in pieces)


async def test_answers_that_are_right_are_unchanged_and_counted():
    heard = []
    part = await gold.run([PROBLEM], settings=config.Config(), limit=0, say=lambda *progress: heard.append(progress))
    assert [(figure.name.rpartition(", of ")[2], figure.value, figure.ok) for figure in part.figures] == [("3", 0.0, True)] * 4
    assert part.examples == ()
    assert heard[-1] == ("gold", 12, 12)


async def test_what_is_cut_is_counted_and_shown():
    limited = config.Config(completion=config.Completion(multiline="never"))
    part = await gold.run([PROBLEM], settings=limited, limit=0, say=lambda *_: None)
    figures = {figure.name: figure for figure in part.figures}
    cut = figures["2 to 6 lines, asked by key changed, of 3"]
    assert (cut.value, cut.ok) == (1.0, False)
    assert any(example.gold == "    b = a + a\n    c = b" and example.said == {"shown": "    b = a + a"} for example in part.examples)
    assert figures["single lines, asked by key changed, of 3"].ok


async def test_a_limit_takes_as_many_of_each_kind():
    part = await gold.run([PROBLEM], settings=config.Config(), limit=2, say=lambda *_: None)
    assert all(figure.name.endswith("of 2") for figure in part.figures)
