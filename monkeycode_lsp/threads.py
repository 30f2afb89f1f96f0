"""Work that may block for ever, on daemon threads of our own: nobody waits for them, not even the interpreter at its end.

The event loop's own executor is no place for such work: a few that hang there starve everything else that uses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def run(kind: str, work: Callable[[], T]) -> T:
    """What `work` returns or raises.  Who is cancelled waits no more; the work goes on."""
    thread = _Thread(kind, work)
    thread.start()
    return await asyncio.wrap_future(thread.answer)


class Together:
    """Work of one kind that is asked for in the same moment runs on one thread, one after the other: a thread each would cost more."""

    # The mutable state is the work that waits for the thread to be started.

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, answer))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._start)
        return await answer

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()

        def tell(answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
            if answer.done():
                return  # who asked has gone
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        def work_all() -> None:
            for work, answer in waiting:
                result, error = None, None
                try:
                    result = work()
                except Exception as exc:  # noqa: BLE001 - whatever it is, it belongs to who waits
                    error = exc
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(tell, answer, result, error)

        _Thread(self._kind, work_all).start()


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
