"""Work that may block for ever, on daemon threads of our own: nobody waits for them, not even the interpreter at its end.

The event loop's own executor is no place for such work: a few that hang there starve everything else that uses it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


async def run(kind: str, work: Callable[[], T]) -> T:
    """What `work` returns or raises.  Who is cancelled waits no more; the work goes on."""
    thread = _Thread(kind, work)
    thread.start()
    return await asyncio.wrap_future(thread.answer)


def at_work(kind: str) -> bool:
    """Whether work of this kind goes on somewhere in the process, so that no more of it piles up where it hangs."""
    return any(isinstance(thread, _Thread) and thread.name == kind and not thread.answer.done() for thread in threading.enumerate())


class _Thread(threading.Thread, Generic[T]):
    """One piece of work; `answer` is all that changes, once, when the work ends."""

    def __init__(self, kind: str, work: Callable[[], T]) -> None:
        super().__init__(name=kind, daemon=True)
        self._work = work
        self.answer: Future[T] = Future()
        self.answer.set_running_or_notify_cancel()  # it cannot be taken back

    def run(self) -> None:
        """On the thread."""
        try:
            result = self._work()
        except BaseException as exc:  # noqa: BLE001 - whatever it is, it belongs to who waits
            self.answer.set_exception(exc)
        else:
            self.answer.set_result(result)
