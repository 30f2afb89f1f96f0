"""How many layers of a model have room on the GPUs.  An estimate by arithmetic: knows no library and asks no device.

It errs on the side of fewer layers: a layer too few costs some speed, a layer too many the process.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_MARGIN_BYTES = 512 * 1024 * 1024
"""Left free on every GPU: for what the driver takes, and for the screen."""
_FLOAT_BYTES = 4


class Shape(msgspec.Struct, frozen=True):
    """What a model's header says about its size."""

    file_bytes: int
    n_layers: int
    n_vocabulary: int
    n_heads: int
    kv_numbers: int
    """Numbers that one token puts into the KV cache of one layer."""


class Use(msgspec.Struct, frozen=True):
    """What the context is to hold."""

    slots: int
    context_tokens: int
    batch_tokens: int
    n_outputs: int
    """Most rows of one batch that logits are wanted of."""
    kv_number_bytes: float
    """Of one number in the KV cache."""


def layers(shape: Shape, use: Use, *, free: Sequence[int], split: Sequence[float] = ()) -> int:
    """Layers that have room, where the output counts as one more; all of them where nothing is known.

    `free` has the free bytes of every GPU; `split`, if any, the shares of the model that they are to take.
    """
    n_all = shape.n_layers + 1
    if not free or not all(free):
        return n_all
    kv_bytes = use.slots * use.context_tokens * shape.n_layers * shape.kv_numbers * use.kv_number_bytes
    layer_bytes = (shape.file_bytes + kv_bytes) / n_all
    room = [max(0.0, n_bytes - _scratch_bytes(shape, use) - _MARGIN_BYTES) / layer_bytes for n_bytes in free]
    shares = list(split[: len(room)])
    if not any(shares):
        return min(n_all, sum(map(int, room)))
    whole = sum(shares)
    return min(n_all, *(int(fitting * whole / share) for fitting, share in zip(room, shares, strict=False) if share))


def _scratch_bytes(shape: Shape, use: Use) -> int:
    """What a decode computes with on each GPU: logits, and attention scores of one slot."""
    logits = use.n_outputs * shape.n_vocabulary
    scores = shape.n_heads * use.batch_tokens * use.context_tokens
    return (logits + scores) * _FLOAT_BYTES
