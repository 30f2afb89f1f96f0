"""A part of a trace: for real-time runs, and to look at one stretch closely."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.trace import Key, Trace


def excerpt(trace: Trace, first: int, n_keys: int) -> Trace:
    """`n_keys` keys from the one with index `first`; the text typed before them is its start.  Times begin anew."""
    text = GapText(trace.start)
    for key in trace.keys[:first]:
        for patch in key.patches:
            text.apply(patch)
    keys = trace.keys[first : first + n_keys]
    at = keys[0].at_s if keys else 0.0
    return msgspec.structs.replace(trace, start=text.text, keys=tuple(Key(key.at_s - at, key.patches) for key in keys))
