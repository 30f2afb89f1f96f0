"""An event loop on a clock of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

from monkeycode_lsp.bench.replay.virtual import VirtualLoop


def run(main):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def test_a_year_passes_at_once_and_to_the_second():
    async def sleep():
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(365 * 86_400)
        return asyncio.get_running_loop().time() - began

    began = time.monotonic()
    assert abs(run(sleep()) - 365 * 86_400) < 1e-6
    assert time.monotonic() - began < 60


def test_timers_go_off_in_order_at_their_times():
    async def main():
        loop = asyncio.get_running_loop()
        heard = []

        async def wait(name, delay):
            await asyncio.sleep(delay)
            heard.append((name, round(loop.time(), 6)))

        await asyncio.gather(wait("c", 0.3), wait("a", 0.1), wait("b", 0.2), wait("d", 1e7))
        return heard

    assert run(main()) == [("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 1e7)]


def test_work_takes_none_of_its_time():
    async def main():
        time.sleep(0.01)  # noqa: ASYNC251 - busy, as a pipeline is
        await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run(main()) < 1e-9


def test_a_time_limit_that_is_not_needed_does_not_go_off():
    async def main():
        async with asyncio.timeout(1.0):
            await asyncio.sleep(0.999)
        return round(asyncio.get_running_loop().time(), 6)

    assert run(main()) == 0.999


def test_a_socket_that_has_something_to_say_is_heard():
    async def main():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0)
            theirs.send(b"x")
            return await asyncio.get_running_loop().sock_recv(ours, 1)

    assert run(main()) == b"x"


def test_a_thread_is_waited_for_when_nothing_else_is_to_come():
    async def main():
        begun = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(None, begun.wait)
        asyncio.get_running_loop().call_soon(begun.set)
        return await work

    assert run(main()) is True
