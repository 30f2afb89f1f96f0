"""How near an answer is."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench.quality import scores


@pytest.mark.parametrize(
    ("said", "expected", "exact", "similar"),
    [
        ("return x", "return x", True, 1.0),
        ("  return x", "return x ", True, 1.0),
        ("return y", "return x", False, 0.875),
        ("", "abcd", False, 0.0),
        ("abcd", "abXcd", False, 0.8),
        ("kitten", "sitting", False, 1 - 3 / 7),
    ],
)
def test_what_was_said_is_compared_without_white_space_at_its_ends(said, expected, exact, similar):
    assert scores.is_exact(said, expected) is exact
    assert scores.similarity(said, expected) == pytest.approx(similar)
