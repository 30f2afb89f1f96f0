"""Kind H: cancellation, staleness, floods."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests import servers

pytestmark = pytest.mark.e2e

CLOSED_S = 0.2
"""How long a connection whose answer nobody wants may live."""
CANCELLED = -32800


def slowly(text, seconds):
    async def script(exchange):
        await exchange.head()
        await asyncio.sleep(seconds)
        if not exchange.request.closed.is_set():
            await exchange.text(text, "stop")
            await exchange.send(servers.DONE)
            await exchange.end()

    return script


async def type_and_ask(scene, place, text, *, gap_s):
    """Type `text` letter by letter, asking after each; the asks and the times when they were sent."""
    uri, line, column = place
    asked = []
    now = asyncio.get_running_loop().time
    for n, letter in enumerate(text):
        scene.lsp.change(uri, (line, column + n), (line, column + n), letter)
        asked.append((scene.lsp.ask(uri, line, column + n + 1), now()))
        await asyncio.sleep(gap_s)
    return asked


@pytest.mark.parametrize("mode", ["adaptive", "off"])
async def test_a_burst_of_keys_leaves_one_generation(start, mode):
    # continuedev/continue#2935, leona/helix-gpt#53
    slow = slowly("ok()", 2.0)
    async with start(options={"debounce": {"mode": mode}}) as scene:
        place = scene.put("x = 1\n‸")
        assert (await scene.show("y = ‸", slow)).text == "ok()"  # now it is known that the engine is slow
        text = "abcdefghijklmnopqrstuvwxyz_abc"
        asked = await type_and_ask(scene, place, text, gap_s=0.03)
        replies = await asyncio.wait_for(asyncio.gather(*(future for future, _ in asked)), 10)
        assert [reply["result"] for reply in replies[:-1]] == [None] * (len(text) - 1)
        assert replies[-1].items_[0]["insertText"] == "ok()"
        requests = scene.backend.requests[1:]
        assert len(requests) <= (8 if mode == "adaptive" else len(text))
        for request in requests[:-1]:
            unwanted = next(at for _, at in asked if at > request.at)  # when the next ask was sent
            assert request.closed_at is not None
            assert request.closed_at - unwanted < CLOSED_S
        assert requests[-1].json["prompt"].startswith(f"<|fim_prefix|>x = 1\n{text}<")


async def before_the_first_byte(exchange):
    await exchange.hold()


async def in_the_middle(exchange):
    await exchange.head()
    await exchange.text("ret")
    await exchange.hold()


async def of_one_piece(exchange):
    await exchange.head(content_type="application/json", length=1_000)
    await exchange.hold()


@pytest.mark.parametrize("script", [before_the_first_byte, in_the_middle, of_one_piece])
async def test_what_nobody_wants_any_more_is_disconnected(start, script):
    # vllm-project/vllm#9428, vllm-project/vllm#54947, sgl-project/mini-sglang#15, ikawrakow/ik_llama.cpp#1020
    async with start(script, options={"cache": {"enabled": False}}) as scene:
        for how in ("cancel", "close", "newer"):
            scene.says.script = script
            uri, line, column = scene.put("def f():\n    ‸\n")
            n_before = len(scene.backend.requests)
            asked = scene.lsp.ask(uri, line, column)
            request = await asyncio.wait_for(scene.backend.request(n_before), 10)
            await asyncio.sleep(0.3)
            at = asyncio.get_running_loop().time()
            if how == "cancel":
                scene.lsp.cancel(asked)
            elif how == "close":
                scene.lsp.close_document(uri)
            else:
                scene.lsp.change(uri, (line, column), (line, column), "x")
                scene.says.script = servers.reply(" = 1")
                newer = scene.lsp.ask(uri, line, column + 1)
            await asyncio.wait_for(request.closed.wait(), 5)
            assert request.closed_at - at < CLOSED_S, how
            reply = await asyncio.wait_for(asked, 5)
            if how == "cancel":
                assert reply["error"]["code"] == CANCELLED
            elif how == "close":
                assert not reply.items_
            else:
                assert reply["result"] is None
                assert (await newer).items_[0]["insertText"] == " = 1"


async def test_a_cancel_is_answered_at_once(start):
    async with start(servers.hold) as scene:
        uri, line, column = scene.put("x = ‸")
        asked = scene.lsp.ask(uri, line, column)
        await asyncio.wait_for(scene.backend.request(0), 10)
        at = asyncio.get_running_loop().time()
        scene.lsp.cancel(asked)
        assert (await asked)["error"]["code"] == CANCELLED
        assert asyncio.get_running_loop().time() - at < CLOSED_S


async def test_cancelling_and_asking_again_for_the_same_place_goes_on_with_the_same_generation(start):
    """What VS Code does when it opens its own list after 750 ms."""

    async def script(exchange):
        await exchange.head()
        await exchange.text("ret")
        await exchange.hold()
        await exchange.text("urn a", "stop")
        await exchange.send(servers.DONE)
        await exchange.end()

    async with start(script) as scene:
        uri, line, column = scene.put("def f(a):\n    ‸\n")
        first = scene.lsp.ask(uri, line, column)
        await asyncio.wait_for(scene.backend.request(0), 10)
        scene.lsp.cancel(first)
        second = scene.lsp.ask(uri, line, column)
        assert (await first)["error"]["code"] == CANCELLED
        scene.backend.release()
        assert (await second).items_[0]["insertText"] == "return a"
        assert len(scene.backend.requests) == 1


@pytest.mark.parametrize("again", [False, True], ids=["typed on", "typed on and asked"])
async def test_an_answer_for_older_text_is_not_inserted_into_newer(start, again):
    # neovim/neovim#36529, neovim/neovim#41434, milanglacier/minuet-ai.nvim#149
    async def script(exchange):
        await exchange.hold()
        await servers.reply("ar()")(exchange)

    async with start(script) as scene:
        uri, line, column = scene.put("foob‸")
        old = scene.lsp.ask(uri, line, column)
        await asyncio.wait_for(scene.backend.request(0), 10)
        scene.lsp.change(uri, (0, 4), (0, 4), "a")
        new = scene.lsp.ask(uri, 0, 5) if again else None
        await scene.lsp.settled()
        scene.backend.release()
        assert (await old)["result"] is None
        if new is not None:
            (item,) = (await new).items_
            assert scene.lsp.apply(uri, item) in {"foobar()", "foobaar()"}  # `ar()` may be the answer for `fooba`, too
            assert item["range"]["start"] == {"line": 0, "character": 5}


async def test_a_generation_is_adopted_when_the_user_types_what_it_is_saying(start):
    async def script(exchange):
        await exchange.head()
        await exchange.text("a")
        await exchange.hold()
        await exchange.text("r()", "stop")
        await exchange.send(servers.DONE)
        await exchange.end()

    async with start(script) as scene:
        uri, line, column = scene.put("foob‸")
        old = scene.lsp.ask(uri, line, column)
        await asyncio.wait_for(scene.backend.request(0), 10)
        await asyncio.sleep(0.2)  # the first letter has arrived by then; nothing tells us
        scene.lsp.change(uri, (0, 4), (0, 4), "a")
        new = scene.lsp.ask(uri, 0, 5)
        assert (await old)["result"] is None
        scene.backend.release()
        (item,) = (await new).items_
        assert (item["insertText"], item["range"]["start"]["character"]) == ("r()", 5)
        assert len(scene.backend.requests) == 1


@pytest.mark.parametrize("edit", ["the line", "everything", "whole text"])
async def test_an_answer_for_a_line_that_is_gone_is_not_shown(start, edit):
    # neovim/neovim#35971
    async def script(exchange):
        await exchange.hold()
        await servers.reply("1")(exchange)

    async with start(script) as scene:
        uri, line, column = scene.put("a = 1\nb = 2\nc = ‸")
        asked = scene.lsp.ask(uri, line, column)
        await asyncio.wait_for(scene.backend.request(0), 10)
        if edit == "whole text":
            scene.lsp.whole(uri, "")
        else:
            scene.lsp.change(uri, (1, 5) if edit == "the line" else (0, 0), (2, 4), "")
        await scene.lsp.settled()
        scene.backend.release()
        assert not (await asked).items_


async def test_asks_of_different_documents_do_not_supersede_one_another(start):
    async def script(exchange):
        await exchange.hold()
        await servers.reply(exchange.request.json["prompt"][len("<|fim_prefix|>")])(exchange)

    async with start(script) as scene:
        asked = [scene.lsp.ask(*scene.put(f"{name} = ‸")) for name in "abc"]
        for number in range(3):
            await asyncio.wait_for(scene.backend.request(number), 10)
        scene.backend.release()
        assert [(await future).items_[0]["insertText"] for future in asked] == ["a", "b", "c"]


async def test_an_answer_that_never_comes_is_given_up_at_the_deadline(start):
    async with start(servers.hold, options={"completion": {"deadlineMs": 400}}) as scene:
        at = asyncio.get_running_loop().time()
        shown = await scene.show("x = ‸", servers.hold)
        assert shown.text is None
        assert 0.35 < asyncio.get_running_loop().time() - at < 1.5
        assert scene.lsp.shown_messages == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_a_session_of_many_asks_leaves_nothing_behind(start):
    # TabbyML/vim-tabby#36
    async with start() as scene:
        process = Path(f"/proc/{scene.lsp.process.pid}")

        def size():
            fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            return len(list((process / "fd").iterdir())), int(fields["Threads"]), int(fields["VmRSS"].split()[0])

        documents = [scene.put(f"d{n} = ‸")[0] for n in range(7)]

        async def flood(n_asks):
            waiting = []
            for n in range(n_asks):
                uri = documents[n % len(documents)]
                text = scene.lsp.texts[uri]
                scene.lsp.change(uri, (0, len(text)), (0, len(text)), "y" if len(text) < 40 else " ")
                if len(text) >= 40:
                    scene.lsp.whole(uri, text[:5])
                asked = scene.lsp.ask(uri, 0, len(scene.lsp.texts[uri]))
                if n % 2:
                    scene.lsp.cancel(asked)
                waiting.append(asked)
                if n % 50 == 49:
                    await asyncio.wait(waiting[-50:], timeout=30)
            replies = await asyncio.wait_for(asyncio.gather(*waiting), 60)
            assert all(("error" in reply) or ("result" in reply) for reply in replies)
            assert {reply["error"]["code"] for reply in replies if "error" in reply} <= {CANCELLED}

        await flood(300)
        await asyncio.sleep(0.5)
        warm = size()
        await flood(2_000)
        await asyncio.sleep(0.5)
        cold = size()
        ids = [reply["id"] for reply in scene.lsp.all_replies]
        assert len(ids) == len(set(ids))
        assert cold[0] <= warm[0] + 3
        assert cold[1] <= warm[1] + 1
        assert cold[2] <= warm[2] + 16_384  # kB
        assert scene.lsp.shown_messages == []
        await scene.alive()
