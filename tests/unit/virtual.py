"""Tests on a clock of their own: what takes seconds there takes none here."""

from __future__ import annotations

import asyncio
import functools

from monkeycode_lsp.bench.replay.virtual import VirtualLoop


def on_virtual_time(test):
    """Run an async test on a loop whose time goes on by itself."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(test(*args, **kwargs))

    return run


def now():
    return asyncio.get_running_loop().time()
