"""The precisions in which a model can be kept, what they cost, and which of them are worth having.  Pure."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.models.gguf import Header


class Precision(msgspec.Struct, frozen=True):
    """One way of rounding weights."""

    number: int
    """llama.cpp's own number of it (`llama_ftype`)."""
    bits: float
    """A weight's, on average."""
    harm: str = ""
    """Why it is not used; empty: it is."""


_TOO_COARSE = "fewer than four and a half bits a weight cost a small code model more than the speed is worth"
_NO_MATRIX = f"{_TOO_COARSE}, all the more without an importance matrix, which cannot be made here"

PRECISIONS = {
    "f16": Precision(1, 16.0),
    "bf16": Precision(32, 16.0),
    "q8_0": Precision(7, 8.5),
    "q6_k": Precision(18, 6.6),
    "q5_k_m": Precision(17, 5.8),
    "q4_k_m": Precision(15, 5.0),
    "q4_0": Precision(
        2,
        4.6,
        "it halved the fill-in-the-middle accuracy of Qwen2.5-Coder 0.5B: 5 of 50 held-out lines were right, after 10 in Q4_K_M and 12 in Q8_0",
    ),
    "q4_1": Precision(3, 5.1, "it rounds as coarsely as Q4_0, which halved accuracy where we measured, and takes more memory than Q4_K_M"),
    "q5_0": Precision(8, 5.6, "Q5_K_M is of the same size and closer to the original"),
    "q5_1": Precision(9, 6.1, "Q6_K is hardly larger and closer to the original"),
    "q4_k_s": Precision(14, 4.7, "it saves 5 % of Q4_K_M's memory and is coarser"),
    "q3_k_m": Precision(12, 4.0, _TOO_COARSE),
    "q2_k": Precision(10, 3.2, _TOO_COARSE),
    "iq4_xs": Precision(30, 4.4, _NO_MATRIX),
}
"""By the name that the command takes."""

_BITS = {
    "F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_1": 6.0, "Q5_K": 5.5, "Q5_0": 5.5, "Q4_1": 5.0,
    "Q4_K": 4.5, "Q4_0": 4.5, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "Q3_K": 3.44, "IQ3_S": 3.44, "IQ3_XXS": 3.06, "Q2_K": 2.63,
}  # fmt: skip
_PUBLISHABLE = 8.0
"""Bits a weight from which on rounding once more is nearly what rounding the original gives."""
_SLOW_ON_TILES = frozenset({"Q5_0", "Q5_1", "Q4_1"})
"""Neither AMX tiles nor repacking speed these up."""


def objection(header: Header, precision: str) -> str:
    """Why a file should not be converted to `precision`, in words; empty: nothing speaks against it."""
    wanted = PRECISIONS[precision]
    title = precision.upper()
    if wanted.harm:
        return f"{title} is refused: {wanted.harm}."
    source = header.file_type or "its present precision"
    if header.file_type.lower() == precision:
        return f"The file is in {title} already."
    if wanted.bits < _PUBLISHABLE and mean_bits(header) < _PUBLISHABLE:
        return (
            f"{title} is refused: the file is in {source}, so its weights would be rounded a second time, which loses more than "
            f"rounding the original to {title} does. Fetch a published {title} file, or convert one in F16 or Q8_0."
        )
    return ""


def regains_nothing(header: Header, precision: str) -> bool:
    """Whether the result has more bits than the file ever had information for: it can be faster, not better."""
    return PRECISIONS[precision].bits > mean_bits(header)


def mean_bits(header: Header) -> float:
    """Bits a weight of a file; types that are not known count as coarse."""
    total = sum(header.elements.values())
    return sum(count * _BITS.get(kind, 2.0) for kind, count in header.elements.items()) / total if total else 0.0


def slow_share(header: Header) -> float:
    """The share of a file's weights that are kept in types without a fast kernel on processors with AMX."""
    total = sum(header.elements.values())
    return sum(count for kind, count in header.elements.items() if kind in _SLOW_ON_TILES) / total if total else 0.0


def main_type(header: Header) -> str:
    """The type that most weights are kept in."""
    return max(header.elements, key=lambda kind: header.elements[kind], default="")
