"""Measuring what tokens cost over real code."""

import pytest

from monkeycode_lsp.bench import token_rates


def test_kinds_of_files_have_rates_and_what_tells_nothing_is_left_out(tmp_path):
    for n in range(3):
        (tmp_path / f"a{n}.py").write_text("value = compute(first)\n" * (40 + n))
        (tmp_path / f"b{n}.zh").write_text("值 = 1\n" * 100)
    (tmp_path / "one.go").write_text("x := 1\n" * 100)
    (tmp_path / "short.py").write_text("x = 1\n")
    (rate,) = token_rates.measure(token_rates._files([str(tmp_path)]), lambda texts: [len(text) // 4 for text in texts])
    assert (rate.suffix, rate.n_files) == (".py", 3)
    assert rate.characters == pytest.approx(4, rel=0.05)
    assert rate.pieces == pytest.approx(4 * 6 / 23, rel=0.05)
    assert rate.error < 0.01
    assert rate.by_line == pytest.approx(5 / (23 / 4), rel=0.05)
