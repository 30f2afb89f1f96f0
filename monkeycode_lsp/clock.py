"""The clock of the pipeline: the running event loop's, so that a replay can run the same code on a clock of its own."""

from __future__ import annotations

import asyncio


def now() -> float:
    """Seconds, from some start."""
    return asyncio.get_running_loop().time()
