"""Work that may hang, on threads that nobody waits for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from monkeycode_lsp import threads
from tests.unit.test_completer import until

HANGS = """
import asyncio, threading
from monkeycode_lsp import threads

async def main():
    asking = asyncio.create_task(threads.run("hangs", threading.Event().wait))
    while not threads.at_work("hangs"):
        await asyncio.sleep(0)
    asking.cancel()

asyncio.run(main())
print("over")
"""


async def test_what_the_work_returns_or_raises_is_handed_on():
    assert await threads.run("sum", lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        await threads.run("quotient", lambda: 1 / 0)
    assert not threads.at_work("sum")
    assert not threads.at_work("quotient")


async def test_work_that_nobody_waits_for_any_more_is_still_at_work_and_only_its_own_kind_is():
    go = threading.Event()
    asking = asyncio.create_task(threads.run("one", go.wait))
    await until(lambda: threads.at_work("one"))
    assert not threads.at_work("other")
    asking.cancel()
    await asyncio.wait({asking})
    assert threads.at_work("one")
    go.set()
    await until(lambda: not threads.at_work("one"))


def test_a_process_ends_without_work_that_hangs():
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("over\n", "")


async def test_what_is_asked_for_in_one_moment_runs_on_one_thread_and_each_gets_its_own_answer():
    together = threads.Together("some work")

    def fails():
        raise ValueError("this one")

    answers = await asyncio.gather(
        *(together.run(threading.current_thread) for _ in range(3)), together.run(fails), together.run(lambda: 7), return_exceptions=True
    )
    assert len({thread.ident for thread in answers[:3]}) == 1
    assert isinstance(answers[3], ValueError)
    assert answers[4] == 7
    assert await together.run(threading.current_thread) is not threading.current_thread()


async def test_who_asks_together_and_leaves_takes_nothing_from_the_others():
    together, may_go_on = threads.Together("some work"), threading.Event()
    one, other = (asyncio.create_task(together.run(lambda: may_go_on.wait(10))) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    may_go_on.set()
    assert await other is True
    assert one.cancelled()
