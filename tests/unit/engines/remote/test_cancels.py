"""Kind H: giving a request up closes its socket at once, in whatever phase and however often it is said."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http.http1 import Connection
from monkeycode_lsp.engines.remote.http.names import Names
from monkeycode_lsp.engines.remote.http.transport import Transport
from tests.servers import BlackHole, CompletionServer, Exchange, Script, hold, reply

CLOSED_WITHIN_S = 0.2
PATH = "/v1/completions"


@asynccontextmanager
async def connected(url: str, environ: dict[str, str] | None = None) -> AsyncIterator[Transport]:
    transport = Transport(address.parse(url), {}, environ=environ or {})
    try:
        yield transport
    finally:
        await transport.aclose()


async def ask(transport: Transport) -> bytes:
    answer = await transport.send(PATH, b"{}")
    try:
        return await answer.body()
    finally:
        await answer.aclose()


async def give_up(task: asyncio.Task[bytes], n_cancels: int = 1) -> float:
    start = asyncio.get_running_loop().time()
    for _ in range(n_cancels):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    assert task.cancelled()
    assert asyncio.get_running_loop().time() - start < CLOSED_WITHIN_S
    return start


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


def whole(transport: Transport) -> bool:
    """Whether there is nothing but connections that can be used."""
    return all(kept.idle for kept in kept_by(transport))


def kept_by(transport: Transport) -> list[Connection]:
    return [kept for kept in transport._connections if not kept.wire.over]


async def head_then_nothing(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.hold()


async def event_then_nothing(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.text("a")
    await exchange.hold()


async def events_without_end(exchange: Exchange) -> None:
    await exchange.head()
    while not exchange.request.closed.is_set():
        await exchange.text("a")
        await asyncio.sleep(0.001)


async def document_then_nothing(exchange: Exchange) -> None:
    await exchange.head(content_type="application/json", length=900)
    await exchange.send(b'{"choices": [')
    await exchange.hold()


@pytest.mark.parametrize("script", [hold, head_then_nothing, event_then_nothing, events_without_end, document_then_nothing])
@pytest.mark.parametrize("n_cancels", [1, 2, 5])
async def test_in_every_phase_of_an_answer(script: Script, n_cancels: int) -> None:
    async with CompletionServer(script, reply("ok")) as server, connected(server.url) as transport:
        task = asyncio.create_task(ask(transport))
        request = await server.request(0)
        await asyncio.sleep(0.02)  # lets what the script sends arrive
        start = await give_up(task, n_cancels)
        await asyncio.wait_for(request.closed.wait(), 5)
        assert request.closed_at is not None
        assert request.closed_at - start < CLOSED_WITHIN_S
        assert b"ok" in await ask(transport)
        assert whole(transport)


async def test_in_the_silent_retry() -> None:
    async def close_unread(exchange: Exchange) -> None:
        exchange.close()

    async with CompletionServer(reply("ok"), close_unread, hold, reply("ok")) as server, connected(server.url) as transport:
        await ask(transport)  # what is kept may have been closed by the server meanwhile
        task = asyncio.create_task(ask(transport))
        request = await server.request(2)
        await give_up(task, 2)
        await asyncio.wait_for(request.closed.wait(), CLOSED_WITHIN_S)
        assert b"ok" in await ask(transport)
        assert whole(transport)


async def test_while_connecting() -> None:
    with BlackHole() as url:
        async with connected(url) as transport:
            before = open_files()
            for n_cancels in (1, 3):
                task = asyncio.create_task(ask(transport))
                await asyncio.sleep(0.05)
                await give_up(task, n_cancels)
            await asyncio.sleep(0)
            assert open_files() == before
            assert whole(transport)


@pytest.mark.parametrize(
    ("url", "environ"),
    [
        ("https://127.0.0.1:{port}", {}),
        ("https://models.example", {"HTTPS_PROXY": "http://127.0.0.1:{port}"}),
        ("https://models.example", {"HTTPS_PROXY": "https://127.0.0.1:{port}"}),
        ("http://models.example", {"HTTP_PROXY": "https://127.0.0.1:{port}"}),
    ],
)
async def test_in_the_middle_of_a_handshake(url: str, environ: dict[str, str]) -> None:
    greeted: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await greeted.put(reader)
        await closed.wait()
        writer.close()
        await writer.wait_closed()
        left.release()

    closed, left = asyncio.Event(), asyncio.Semaphore(0)
    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with connected(url.format(port=port), {name: value.format(port=port) for name, value in environ.items()}) as transport:
        for n_cancels in (1, 2):
            task = asyncio.create_task(ask(transport))
            reader = await greeted.get()
            await give_up(task, n_cancels)
            await asyncio.wait_for(reader.read(), CLOSED_WITHIN_S)
        assert whole(transport)
        assert not kept_by(transport)
    closed.set()
    for _ in range(2):
        await left.acquire()
    server.close()


async def test_two_hundred_at_random_leave_the_pool_whole() -> None:
    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(chance.random() * 0.003)
        await exchange.head()
        for _ in range(4):
            await asyncio.sleep(chance.random() * 0.002)
            await exchange.text("a")
        await exchange.hold()

    chance = random.Random(11)  # noqa: S311 - no secret
    n_seen, lates = 0, []
    async with CompletionServer(script) as server, connected(server.url) as transport:
        await give_up(asyncio.create_task(ask(transport)))
        files, tasks = open_files(), len(asyncio.all_tasks())
        for number in range(200):
            before = len(server.requests)
            task = asyncio.create_task(ask(transport))
            await asyncio.sleep(chance.random() * 0.012)
            start = await give_up(task, 1 + number % 3)
            for request in server.requests[before:]:
                await asyncio.wait_for(request.closed.wait(), 5)
                assert request.closed_at is not None
                n_seen += 1
                if request.closed_at - start >= CLOSED_WITHIN_S:
                    lates.append(request.closed_at - start)
        assert n_seen > 100
        assert not lates
        assert whole(transport)
        server._scripts = (reply("ok"),)
        assert b"ok" in await ask(transport)
        assert len(kept_by(transport)) == 1
        await asyncio.sleep(0.05)  # lets the server's side close too
        assert len(asyncio.all_tasks()) <= tasks + 2  # the server's own, for the connection that is kept
        assert open_files() <= files + 2


async def test_closing_in_the_middle_of_everything_closes_every_socket() -> None:
    async with CompletionServer(reply("ok"), event_then_nothing) as server:
        async with connected(server.url) as transport:
            await ask(transport)
            tasks = [asyncio.create_task(ask(transport)) for _ in range(3)]
            await server.request(3)
            transport.warm()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for request in server.requests[1:]:
            await asyncio.wait_for(request.closed.wait(), 5)


async def test_a_name_service_that_hangs_holds_nobody_and_piles_nothing_up() -> None:
    def look_up(_: str) -> list[str]:
        answered.wait()
        return ["127.0.0.1"]

    answered = threading.Event()
    names = Names(look_up)
    before = threading.active_count()
    for _ in range(5):
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await names.resolve("slow.example")
        assert time.monotonic() - start < CLOSED_WITHIN_S
    assert threading.active_count() == before + 1
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "name slow.example"]
    assert thread.daemon
    waiting = asyncio.create_task(names.resolve("slow.example"))
    await asyncio.sleep(0)
    answered.set()
    assert await waiting == ["127.0.0.1"]
    assert await names.resolve("::1") == ["::1"]


def test_a_name_service_that_hangs_does_not_keep_the_process_alive() -> None:
    program = """
import asyncio, threading
from monkeycode_lsp.engines.remote.http.names import Names

async def main():
    try:
        await asyncio.wait_for(Names(lambda _: threading.Event().wait()).resolve("slow.example"), 0.1)
    except TimeoutError:
        print("gave up")

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert ended.stdout.split() == [b"gave", b"up"]


async def test_closing_does_not_wait_for_a_name() -> None:
    answered = threading.Event()
    names = Names(lambda _: [str(answered.wait())])
    waiting = asyncio.create_task(names.resolve("slow.example"))
    await asyncio.sleep(0.01)
    names.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    answered.set()


@pytest.mark.parametrize("name", ["no-such-name.invalid", "a" * 70 + ".example", "a..b"])
async def test_a_name_that_is_not_known_is_an_error_like_any_other(name: str) -> None:
    with pytest.raises(OSError, match=r".*"):
        await Names().resolve(name)
