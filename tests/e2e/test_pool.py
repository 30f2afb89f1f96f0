"""Several endpoints behind the real server: one dies, users cancel, and it goes on for long."""

import asyncio
import itertools
import random
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

CANCELLED = -32800
MOST_KEPT = 2 * 16
"""Connections that wait for the next ask."""
QUICK = {"debounce": {"mode": "off"}, "cache": {"enabled": False, "showings": 0}}


def endpoints(*urls, **remote):
    return {"remote": {"endpoints": [{"url": url, "model": scenes.MODEL, "api": "openai"} for url in urls], **remote}}


@asynccontextmanager
async def two(start, script, other, **remote):
    """A scene with two servers, of which the second runs on a stack of its own: closing that kills it."""
    async with servers.CompletionServer(script) as first, AsyncExitStack() as life:
        second = await life.enter_async_context(servers.CompletionServer(other))
        async with start(options=scenes.merged(QUICK, endpoints(first.url, second.url, **remote))) as scene:
            yield scene, first, second, life


def in_two_pieces(first, second):
    async def script(exchange):
        await exchange.head()
        await exchange.text(first)
        await asyncio.sleep(0.02)
        await exchange.text(second, "stop")
        await exchange.send(servers.DONE)
        await exchange.end()

    return script


def once_each(lsp):
    ids = [reply["id"] for reply in lsp.all_replies]
    return len(ids) == len(set(ids))


async def test_a_server_that_dies_costs_at_most_one_suggestion_and_is_used_again_soon_after_it_is_back(start):
    async with two(start, in_two_pieces("a", "a"), in_two_pieces("b", "b")) as (scene, _, second, life):
        places = [scene.put(f"d{n} = ‸") for n in range(6)]
        texts = [(await scene.ask(*place)).text for place in places * 2]
        assert set(texts) == {"aa", "bb"}

        async def go_on(n_asks):
            return [(await scene.ask(*place)).text for place in itertools.islice(itertools.cycle(places), n_asks)]

        n_served = len(second.requests)
        run = asyncio.create_task(go_on(60))
        await asyncio.wait_for(second.request(n_served + 3), 30)
        await life.aclose()  # in the middle of that answer
        texts = await asyncio.wait_for(run, 60)
        assert texts.count(None) <= 1
        assert set(texts[30:]) == {"aa"}
        async with servers.CompletionServer(servers.reply("bb"), port=second.port), asyncio.timeout(10):
            while (await go_on(6)).count("bb") == 0:
                pass
            assert set(await go_on(12)) == {"aa", "bb"}
        assert once_each(scene.lsp)
        assert scene.lsp.shown_messages == []


async def test_two_hundred_cancels_leave_the_pool_whole(start):
    draw = random.Random(5)  # noqa: S311 - a test's own choices

    async def some(exchange):
        match draw.randrange(4):
            case 0:
                await exchange.hold()
            case 1:
                await exchange.head()
                await exchange.hold()
            case 2:
                await exchange.head()
                await exchange.text("x")
                await exchange.hold()
            case _:
                await servers.reply("ok")(exchange)

    says = scenes.Says(some)
    # With one place each, a single place that is lost would be missed.
    async with two(start, says, says, concurrency=1) as (scene, _, _, _):
        places = [scene.put(f"d{n} = ‸") for n in range(5)]
        asks = []
        for n in range(200):
            asked = scene.lsp.ask(*places[n % len(places)])
            asks.append(asked)
            await asyncio.sleep(draw.choice([0, 0, 0.005, 0.03, 0.15]))
            for _ in range(draw.choice([1, 2])):
                scene.lsp.cancel(asked)
        replies = await asyncio.wait_for(asyncio.gather(*asks), 60)
        assert {reply["error"]["code"] for reply in replies if "error" in reply} == {CANCELLED}
        says.script = servers.reply("1")
        await asyncio.sleep(0.5)  # until then an ask for the same place adopts what was cancelled last
        for _ in range(4):
            shown = await asyncio.gather(*(scene.ask(*place) for place in places))
            assert [one.text for one in shown] == ["1"] * len(places)
        assert once_each(scene.lsp)
        assert scene.lsp.shown_messages == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_five_thousand_asks_half_of_them_cancelled_leave_nothing_behind(start):
    # TabbyML/vim-tabby#36
    async with two(start, servers.reply("ok"), servers.reply("ok")) as (scene, first, second, _):
        process = Path(f"/proc/{scene.lsp.process.pid}")

        def size():
            fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            n_connections = len(first._connections) + len(second._connections)
            assert n_connections <= MOST_KEPT
            n_files = len(list((process / "fd").iterdir())) - n_connections
            return n_files, int(fields["Threads"]), int(fields["VmRSS"].split()[0])

        documents = [scene.put(f"d{n} = ‸")[0] for n in range(7)]

        async def flood(n_asks):
            waiting = []
            for n in range(n_asks):
                uri = documents[n % len(documents)]
                column = len(scene.lsp.texts[uri])
                if column < 40:
                    scene.lsp.change(uri, (0, column), (0, column), "y")
                else:
                    scene.lsp.whole(uri, scene.lsp.texts[uri][:5])
                asked = scene.lsp.ask(uri, 0, len(scene.lsp.texts[uri]))
                if n % 2:
                    scene.lsp.cancel(asked)
                waiting.append(asked)
                if n % 14 == 13:
                    await asyncio.wait(waiting[-14:], timeout=30)
            replies = await asyncio.wait_for(asyncio.gather(*waiting), 60)
            assert {reply["error"]["code"] for reply in replies if "error" in reply} <= {CANCELLED}
            await asyncio.sleep(0.5)  # what was cancelled lives on for a moment

        await flood(1_000)
        warm = size()
        await flood(4_000)
        cold = size()
        assert once_each(scene.lsp)
        assert cold[0] <= warm[0] + 3
        assert cold[1] <= warm[1] + 1
        assert cold[2] <= warm[2] + 16_384  # kB
        assert first.requests
        assert second.requests
        assert scene.lsp.shown_messages == []
        await scene.ask(*scene.put("last = ‸"))
