"""A prompt's segments → its tokens.  Pure but for the vocabulary.

Plain text gives no control token of the prompt, whatever it says.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from monkeycode_lsp.domain import Control, Plain, Segment
from monkeycode_lsp.engines.local.batch.runtime import Vocabulary

_BLOCK = 64


def prompt_tokens(vocabulary: Vocabulary, segments: Sequence[Segment]) -> list[int]:
    """A prompt's tokens.  Plain text gives no control token of the prompt; begin-of-text comes at most once and first."""
    controls = {segment.text: vocabulary.control(segment.text) for segment in segments if isinstance(segment, Control)}
    tokens: list[int] = []
    for is_plain, group in itertools.groupby(segments, key=lambda segment: isinstance(segment, Plain)):
        if is_plain:
            tokens += _plain_tokens(vocabulary, "".join(segment.text for segment in group), controls)
        else:
            tokens += [controls[segment.text] for segment in group]
    if vocabulary.bos is not None and tokens[:1] != [vocabulary.bos]:
        tokens.insert(0, vocabulary.bos)
    return tokens or [vocabulary.filler]


def _plain_tokens(vocabulary: Vocabulary, text: str, controls: dict[str, int]) -> list[int]:
    tokens = vocabulary.tokenize(text)
    if not set(controls.values()).isdisjoint(tokens):
        # A vocabulary that lists its markers as ordinary words: take the written marker apart.
        pieces = [text]
        for marker in controls:
            pieces = [part for piece in pieces for part in _apart(piece, marker)]
        tokens = [token for piece in pieces for token in vocabulary.tokenize(piece)]
    return tokens


def _apart(text: str, marker: str) -> list[str]:
    """`text` cut behind the first letter of each `marker` in it, so that no piece holds a whole one."""
    head, tail = marker[:1], marker[1:]
    parts = text.split(marker)
    last = len(parts) - 1
    return [("" if n == 0 else tail) + part + ("" if n == last else head) for n, part in enumerate(parts)]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    if type(one) is not type(other):  # their slices would never be equal
        one, other = list(one), list(other)
    most = min(len(one), len(other))
    # Blocks are compared at the speed of C: this is asked of every slot and every kept state for every prompt.
    start = next((at for at in range(0, most, _BLOCK) if one[at : at + _BLOCK] != other[at : at + _BLOCK]), most)
    return next((at for at in range(start, min(start + _BLOCK, most)) if one[at] != other[at]), min(start + _BLOCK, most))
