"""Programs and whether their tests pass: each is run once, two at a time, and the verdict kept."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from monkeycode_lsp.bench.quality import sandbox
from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.bench.quality.sandbox import Verdict

_AT_ONCE = 2


class Verdicts:
    """Of one run.  A context manager: who leaves it waits for what is under way."""

    # The mutable state is the ledger.

    def __init__(self, path: Path, *, wall_s: float = sandbox.WALL_S) -> None:
        self._known = Ledger(path, bool)
        self._wall_s = wall_s
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="candidate")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    async def passes(self, program: str) -> bool:
        """Whether it ran to its end."""
        name = _key(program)
        known = self._known.get(name)
        if known is not None:
            return known
        verdict = await asyncio.get_running_loop().run_in_executor(self._pool, lambda: sandbox.run(program, wall_s=self._wall_s))
        if verdict is not Verdict.LATE:  # the machine may have been busy
            self._known.put(name, verdict is Verdict.PASSED)
        return verdict is Verdict.PASSED


def _key(program: str) -> str:
    said = hashlib.blake2b(repr(sys.version_info[:3]).encode(), digest_size=16)
    said.update(program.encode("utf-8", errors="replace"))
    return said.hexdigest()
