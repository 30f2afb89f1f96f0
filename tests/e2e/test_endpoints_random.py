"""Two endpoints that change at random behind the real server, while an editor types, asks and cancels in four documents."""

import asyncio
import random

import pytest

from tests import servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

CANCELLED = -32800
N_STEPS = 300
QUICK = {"debounce": {"mode": "off"}, "cache": {"enabled": False, "showings": 0}}
MOST_IDLE = 16
"""Connections that an endpoint may be left with."""


async def reset(exchange):
    exchange.reset()


async def half(exchange):
    await exchange.head()
    await exchange.text("a")
    exchange.close()


async def stalls(exchange):
    await exchange.head()
    await exchange.text("a")
    await exchange.hold()


async def slow(exchange):
    await asyncio.sleep(0.3)
    await servers.reply("sl", "ow")(exchange)


MOODS = {
    "reply": servers.reply("o", "k"),
    "503": servers.status(503, {"error": "busy"}),
    "429": servers.status(429, {"error": "slow down"}, retry_after="1"),
    "500": servers.status(500, {"error": "oops"}),
    "too long": servers.status(400, {"error": {"message": "This model's maximum context length is 4096 tokens."}}),
    "reset": reset,
    "hold": servers.hold,
    "stalls": stalls,
    "half": half,
    "garbage": servers.stream(b"data: {nothing\n\n", b"\xff\xfe\x00"),
    "page": servers.status(200, b"<html>log in</html>", "text/html"),
    "slow": slow,
}
MOST_MESSAGES = 2 * len(MOODS)
"""Each endpoint is complained of once for everything that is wrong with it."""


class Editor:
    """Types into four documents, and asks."""

    def __init__(self, lsp, uris, dice):
        self.lsp = lsp
        self.uris = uris
        self.dice = dice
        self.asked = []

    def end(self, uri):
        return self.lsp.position(uri, len(self.lsp.texts[uri]))

    def type(self):
        uri = self.dice.choice(self.uris)
        if len(self.lsp.texts[uri]) > 60:
            self.lsp.whole(uri, "x = ")
        self.lsp.change(uri, self.end(uri), self.end(uri), self.dice.choice("abc(\n"))
        self.asked.append(self.lsp.ask(uri, *self.end(uri), invoked=self.dice.random() < 0.2))

    def cancel(self):
        for asked in self.asked[-self.dice.randrange(1, 4) :]:
            for _ in range(self.dice.choice([1, 1, 2])):
                self.lsp.cancel(asked)


def idle(server):
    return all(connection._current is None for connection in server._connections)


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_two_endpoints_do_each_ask_has_one_reply_and_nothing_is_left(start, seed):
    dice = random.Random(seed)  # noqa: S311 - dice, no secrets
    moods = [scenes.Says(MOODS["reply"]), scenes.Says(MOODS["reply"])]
    async with servers.CompletionServer(moods[0]) as first, servers.CompletionServer(moods[1]) as second:
        both = [{"url": server.url, "model": scenes.MODEL, "api": "openai"} for server in (first, second)]
        remote = {"remote": {"endpoints": both, "timeoutMs": 2_000, "stallMs": 500, "concurrency": 3}}
        async with start(options=scenes.merged(QUICK, remote)) as scene:
            editor = Editor(scene.lsp, [scene.put("x = ‸")[0] for _ in range(4)], dice)
            for _ in range(N_STEPS):
                kind = dice.random()
                if kind < 0.2:
                    dice.choice(moods).script = MOODS[dice.choice(["reply", *MOODS])]
                elif kind < 0.35:
                    editor.cancel()
                else:
                    editor.type()
                await asyncio.sleep(dice.choice([0, 0, 0.005, 0.02, 0.05, 0.1]))
            replies = await asyncio.wait_for(asyncio.gather(*editor.asked), 30)
            assert {reply["error"]["code"] for reply in replies if "error" in reply} <= {CANCELLED}

            for mood in moods:
                mood.script = MOODS["reply"]
            shown, _ = await scene.answered(*scene.put("last = ‸"), within_s=10)
            assert shown.text == "ok"

            ids = [reply["id"] for reply in scene.lsp.all_replies]
            assert len(ids) == len(set(ids))
            assert {asked.id for asked in editor.asked} <= set(ids)
            assert len(scene.lsp.shown_messages) <= MOST_MESSAGES
            assert len(scene.lsp.shown_messages) == len(set(scene.lsp.shown_messages))
            async with asyncio.timeout(10):
                while not (idle(first) and idle(second)):  # noqa: ASYNC110 - a server that was given up notices it a moment later
                    await asyncio.sleep(0.05)
            assert max(len(server._connections) for server in (first, second)) <= MOST_IDLE
            assert b"Traceback" not in scene.lsp.stderr
