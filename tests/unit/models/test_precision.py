"""Which conversions are worth it."""

from __future__ import annotations

import pytest

from monkeycode_lsp.models import gguf, precision


def model(file_type, **elements):
    return gguf.Header(3, "qwen2", "", "", file_type, "", None, None, "", {}, 1, 1, "model", elements)


F16 = model("F16", F16=99, F32=1)
Q8 = model("Q8_0", Q8_0=99, F32=1)
Q4_K_M = model("Q4_K_M", Q5_0=62, Q8_0=22, Q6_K=8, Q4_K=8)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [(Q4_K_M, "q8_0"), (Q4_K_M, "f16"), (Q8, "f16"), (Q8, "q6_k"), (Q8, "q4_k_m"), (F16, "q8_0"), (F16, "q5_k_m"), (F16, "bf16")],
)
def test_what_costs_next_to_nothing_is_done(source, wanted):
    assert precision.objection(source, wanted) == ""


@pytest.mark.parametrize(
    ("source", "wanted", "words"),
    [
        (F16, "q4_0", "Q4_0 is refused: it halved the fill-in-the-middle accuracy of Qwen2.5-Coder 0.5B: 5 of 50"),
        (F16, "q2_k", "fewer than four and a half bits"),
        (F16, "iq4_xs", "importance matrix"),
        (F16, "q5_0", "Q5_K_M is of the same size"),
        (Q4_K_M, "q6_k", "the file is in Q4_K_M, so its weights would be rounded a second time"),
        (Q4_K_M, "q4_k_m", "in Q4_K_M already"),
        (Q8, "q8_0", "in Q8_0 already"),
    ],
)
def test_what_costs_quality_is_refused_in_words(source, wanted, words):
    assert words in precision.objection(source, wanted)


def test_more_bits_bring_nothing_back():
    assert precision.regains_nothing(Q4_K_M, "q8_0")
    assert not precision.regains_nothing(Q8, "q4_k_m")
    assert not precision.regains_nothing(F16, "q8_0")


def test_a_file_is_described_by_its_weights():
    assert precision.slow_share(Q4_K_M) == pytest.approx(0.62)
    assert precision.main_type(Q4_K_M) == "Q5_0"
    assert 5 < precision.mean_bits(Q4_K_M) < 8
    empty = model("")
    assert (precision.slow_share(empty), precision.mean_bits(empty), precision.main_type(empty)) == (0.0, 0.0, "")
