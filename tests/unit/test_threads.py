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
