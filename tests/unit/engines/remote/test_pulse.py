"""A server that takes asks and says nothing: slow, or hanging?"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from monkeycode_lsp.engines.remote.pulse import LOOK_S, SILENT_S, Pulse
from monkeycode_lsp.errors import EngineBusyError, EngineFaultError, EngineRefusedError, EngineUnavailableError, StreamBrokenError
from tests.servers import CompletionServer, hold, reply
from tests.unit.engines.remote import asking
from tests.unit.virtual import now, on_virtual_time


class Server:
    """Whose page tells what it is told to tell."""

    def __init__(self, *said):
        self.said = list(said)
        self.n_looks = 0
        self.told = []

    async def look(self):
        self.n_looks += 1
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if said == "hangs":
            await asyncio.sleep(3600)
        if isinstance(said, Exception):
            raise said


async def given_up(pulse, after_s):
    pulse.asked()
    await asyncio.sleep(after_s)
    pulse.given_up()
    await asyncio.sleep(LOOK_S + 0.1)


@on_virtual_time
async def test_asks_that_are_given_up_soon_are_no_reason_to_look():
    server = Server("hangs")
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    await given_up(pulse, SILENT_S / 2)
    pulse.check()
    assert server.n_looks == 0


@on_virtual_time
async def test_one_that_says_nothing_to_several_asks_and_nothing_else_hangs():
    server = Server("hangs")
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    for _ in range(4):
        pulse.asked()
        await asyncio.sleep(SILENT_S / 3)
        pulse.given_up()
    await asyncio.sleep(LOOK_S + 0.1)
    with pytest.raises(EngineUnavailableError, match="does not answer any more"):
        pulse.check()
    await pulse.aclose()


@on_virtual_time
async def test_one_that_is_heard_in_between_is_only_slow():
    server = Server("hangs")
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    for _ in range(4):
        pulse.asked()
        await asyncio.sleep(SILENT_S / 3)
        pulse.given_up()
        pulse.heard()
    assert server.n_looks == 0


@pytest.mark.parametrize("said", [None, EngineBusyError("loading"), EngineRefusedError("key"), EngineFaultError("500")])
@on_virtual_time
async def test_one_whose_page_answers_is_only_slow(said):
    server = Server(said)
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    await given_up(pulse, SILENT_S + 0.1)
    pulse.check()
    assert server.n_looks == 1


@on_virtual_time
async def test_one_that_is_up_and_answers_nothing_for_long_is_told_once_until_it_has_answered():
    server = Server(None)
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    for n_told in (1, 2):
        for _ in range(8):
            await given_up(pulse, SILENT_S + 0.1)
        assert len(server.told) == n_told
        assert "has answered nothing for" in server.told[-1]
        pulse.answered()


@pytest.mark.parametrize("said", ["hangs", EngineUnavailableError("gone"), StreamBrokenError("broken")])
@on_virtual_time
async def test_one_that_comes_back_is_found_out_by_whoever_asks(said):
    server = Server(said, said, None)
    pulse = Pulse("http://h", server.look, notify=server.told.append, clock=now)
    await given_up(pulse, SILENT_S + 0.1)
    for n_looks in (2, 3):
        for _ in range(3):  # a look at a time
            with pytest.raises(EngineUnavailableError):
                pulse.check()
        await asyncio.sleep(LOOK_S + 0.1)
        assert server.n_looks == n_looks
    pulse.check()
    await pulse.aclose()


async def until_it_fails(engine):
    async with asyncio.timeout(10):
        while True:
            await engine.ready()
            await asyncio.sleep(0.1)


async def is_ready(engine):
    with suppress(EngineUnavailableError):
        await engine.ready()
        return True
    return False


async def test_asks_to_a_server_that_hangs_fail_at_once_after_a_while_and_the_user_hears_why():
    async def health(exchange):
        await exchange.hold()
        await exchange.respond(200, {})

    async with (
        CompletionServer(reply("one"), hold, hold, reply("two"), routes={"/health": health}) as server,
        asking.engine(server.url, api="openai") as engine,
    ):
        assert await asking.answer(engine) == "one"
        for _ in range(2):
            with suppress(TimeoutError):
                await asyncio.wait_for(asking.answer(engine), SILENT_S / 2 + 0.2)
        with pytest.raises(EngineUnavailableError, match="does not answer any more"):
            await until_it_fails(engine)
        server.release()
        async with asyncio.timeout(10):
            while not await is_ready(engine):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.1)
        assert await asking.answer(engine) == "two"
