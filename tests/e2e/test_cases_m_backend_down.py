"""Kind M: the backend is down, refuses or is slow."""

import asyncio
import gzip
import itertools

import pytest

from tests import servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

QUICK_S = 0.5


async def test_a_dead_backend_is_quiet_quick_and_used_as_soon_as_it_is_back(start):
    # ggml-org/llama.vscode#83, huggingface/llm.nvim#79
    port = servers.unused_port()
    async with start() as scene:
        scene.lsp.configure(scenes.endpoint(f"http://127.0.0.1:{port}"))
        uri, line, column = scene.put("x = ‸")
        for _ in range(20):
            at = asyncio.get_running_loop().time()
            assert (await scene.ask(uri, line, column)).text is None
            assert asyncio.get_running_loop().time() - at < QUICK_S
        assert len(scene.lsp.shown_messages) == 1
        async with servers.CompletionServer(servers.reply("ok"), port=port):
            await scene.answered(uri, line, column)
        assert len(scene.lsp.shown_messages) == 1


async def test_the_key_is_sent_exactly(start):
    # ggml-org/llama.vscode#53, twinnydotdev/twinny#67
    async def guarded(exchange):
        if exchange.request.headers.get("authorization") == "Bearer K1":
            await servers.reply("ok")(exchange)
        else:
            await exchange.respond(401, {"error": {"message": "Unauthorized"}})

    keys = [{"apiKey": key} for key in ("K1", "K1\n", " K1 ", "K1\r\n")]
    async with start(guarded, env={"TEAM_KEY": "K1\r\n"}) as scene:
        for n, setting in enumerate([*keys, {"apiKeyEnv": "TEAM_KEY"}, {"headers": {"Authorization": "Bearer K1"}}]):
            scene.lsp.configure(scenes.endpoint(scene.backend.url, **setting))
            shown = await scene.show(f"x{n} = ‸", guarded)
            assert shown.text == "ok", setting
        assert scene.lsp.shown_messages == []


async def test_a_wrong_key_is_told_once(start):
    async with start(servers.status(401, {"error": "no"})) as scene:
        for _ in range(5):
            assert (await scene.show("x = ‸", servers.status(401, {"error": "no"}))).text is None
        assert len(scene.lsp.shown_messages) == 1
        assert "apiKey" in scene.lsp.shown_messages[0]


async def test_a_server_that_is_still_loading_is_waited_for_quietly(start):
    # ggml-org/llama.cpp#9056
    loading = servers.status(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    async with start(loading) as scene:
        shown = await scene.show("x = ‸", loading)
        end = asyncio.get_running_loop().time() + 3
        while asyncio.get_running_loop().time() < end:
            at = asyncio.get_running_loop().time()
            assert (await scene.ask(shown.uri, 0, 4)).text is None
            assert asyncio.get_running_loop().time() - at < QUICK_S
            await asyncio.sleep(0.05)
        assert len(scene.backend.requests) < 20
        scene.says.script = servers.reply("ok")
        _, took_s = await scene.answered(shown.uri, 0, 4)
        assert took_s < 2
        assert scene.lsp.shown_messages == []


async def test_a_slow_first_token_is_waited_for_when_asked_by_hand(start):
    # langgenius/dify#15371, unslothai/unsloth#10911: HTTP clients give up after 5 seconds by default
    async def slow(exchange):
        await exchange.head()
        await asyncio.sleep(5.5)
        await exchange.text("ok", "stop")
        await exchange.send(servers.DONE)
        await exchange.end()

    async with start(slow, options={"completion": {"deadlineMs": 20_000}, "remote": {"timeoutMs": 20_000}}) as scene:
        assert (await scene.show("x = ‸", slow, invoked=True)).text == "ok"
        assert scene.lsp.shown_messages == []


async def test_an_address_that_swallows_everything_fails_at_the_connect_limit(start):
    with servers.BlackHole() as url:
        async with start(options={"completion": {"deadlineMs": 20_000}}) as scene:
            scene.lsp.configure(scenes.endpoint(url))
            at = asyncio.get_running_loop().time()
            assert (await scene.show("x = ‸", "1", invoked=True)).text is None
            assert asyncio.get_running_loop().time() - at < 4
            (message,) = scene.lsp.shown_messages
            assert "cannot be reached" in message


async def headers_then_fin(exchange):
    await exchange.head()
    exchange.close()


async def fin(exchange):
    exchange.close()


async def rst(exchange):
    exchange.reset()


async def headers_then_half_closed(exchange):
    await exchange.head(chunked=False)
    exchange.half_close()
    await exchange.hold()


async def text_then_cut_in_a_piece(exchange):
    await exchange.head()
    await exchange.text("ret")
    await exchange.raw(b"ff\r\ndata: {")
    exchange.close()


async def no_http(exchange):
    await exchange.raw(b"SSH-2.0-x\r\n")
    exchange.close()


@pytest.mark.parametrize("script", [headers_then_fin, fin, rst, headers_then_half_closed, text_then_cut_in_a_piece, no_http])
async def test_connections_that_break_do_no_harm(start, script):
    # ggml-org/llama.vim#61
    async with start(script) as scene:
        assert (await scene.show("x = ‸", script)).text is None
        scene.says.script = servers.reply("ok")
        await scene.answered(*scene.put("y = ‸"))
        assert len(scene.lsp.shown_messages) <= 1


REFUSALS = {
    "wants a key": (servers.status(401, {"error": {"message": "Unauthorized"}}), "apiKey", 4),
    "forbids": (servers.status(403, "Forbidden", "text/plain"), "apiKey", 4),
    "has no such route": (servers.status(404, {"detail": "Not Found"}), "`url`", 8),
    "has no such model": (servers.status(404, {"object": "error", "message": "The model `qwen2.5-coder` does not exist."}), "`model`", 8),
    "refuses the method": (servers.status(405, {"detail": "Method Not Allowed"}), "`url`", 8),
    "refuses for reasons of its own": (servers.status(400, {"error": {"message": "no"}}), "refused", 20),
    "has a fault": (servers.status(500, "Internal Server Error", "text/plain"), "fault", 20),
    "is behind a dead gateway": (servers.status(502, "<html>Bad Gateway</html>", "text/html"), "HTTP 502", 20),
    "is behind a slow gateway": (servers.status(504), "HTTP 504", 20),
    "has moved": (servers.status(301, Location="http://127.0.0.1:1/v1/completions"), "redirects are not followed", 20),
    "wants a login first": (
        servers.status(302, "<html>", "text/html", Location="http://127.0.0.1:1/login"),
        "redirects are not followed",
        20,
    ),
    "shows a login page": (servers.status(200, "<!doctype html><p>Log in</p>", "text/html"), "login page", 20),
    "says so in a stream": (servers.stream(servers.event({"error": {"message": "no", "code": 401}})), "apiKey", 20),
    "speaks to people": (servers.status(200, "It works!", "text/plain"), "instead of a completion", 20),
}
"""What the server says; a word that the user is told; the most requests that 20 asks may cost."""


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_server_that_refuses_is_told_once_is_not_stormed_and_used_again_when_it_is_mended(start, name):
    script, word, most = REFUSALS[name]
    async with start(script) as scene:
        for n in range(20):
            at = asyncio.get_running_loop().time()
            assert (await scene.show(f"x{n} = ‸", script)).text is None
            assert asyncio.get_running_loop().time() - at < 2 * QUICK_S
        assert len(scene.backend.requests) <= most
        (message,) = scene.lsp.shown_messages
        assert word in message
        assert "127.0.0.1" in message
        scene.says.script = servers.reply("ok")
        await scene.answered(*scene.put("y = ‸"))
        assert scene.lsp.shown_messages == [message]


@pytest.mark.parametrize("more", [{}, {"Retry_After": "0.4"}])
@pytest.mark.parametrize("code", [429, 503])
async def test_a_busy_server_is_asked_quietly_and_not_before_it_wants_to_be(start, code, more):
    busy = servers.status(code, {"error": {"message": "slow down"}}, **more)
    async with start(busy, options={"completion": {"deadlineMs": 500}}) as scene:
        uri, line, column = scene.put("x = ‸")
        for n in range(8):
            scene.lsp.change(uri, (line, column + n), (line, column + n), "f")
            assert (await scene.ask(uri, line, column + n + 1)).text is None
        at = [request.at for request in scene.backend.requests]
        assert len(at) <= 3 * 8  # a first try and two quiet ones
        if more:
            assert min((b - a for a, b in itertools.pairwise(at)), default=1) > 0.39
        scene.says.script = servers.reply("ok")
        await scene.answered(*scene.put("y = ‸"))
        assert scene.lsp.shown_messages == []


async def test_a_server_that_starts_anew_costs_nothing(start):
    async with start() as scene:
        async with servers.CompletionServer(servers.reply("1")) as first:
            scene.lsp.configure(scenes.endpoint(first.url))
            assert (await scene.show("x = ‸")).text == "1"
        async with servers.CompletionServer(servers.reply("2"), port=first.port):
            assert (await scene.show("y = ‸")).text == "2"
        assert scene.lsp.shown_messages == []


async def test_a_compressed_answer_that_nobody_asked_for_is_read(start):
    async def compressed(exchange):
        body = gzip.compress(servers.event(servers.choice("ok", "stop")) + servers.DONE)
        await exchange.head(length=len(body), Content_Encoding="gzip")
        await exchange.send(body)

    async with start(compressed) as scene:
        assert (await scene.show("x = ‸", compressed)).text == "ok"


@pytest.mark.parametrize("fate", ["fin", "rst"])
async def test_a_connection_that_is_refused_once_is_tried_again_silently(start, fate):
    backend = servers.CompletionServer(servers.reply("ok"), first_connections=[fate])
    async with start(backend=backend) as scene:
        await scene.answered(*scene.put("y = ‸"))
        assert len(scene.lsp.shown_messages) <= 1


async def test_a_kept_connection_that_the_server_closes_is_replaced_silently(start):
    async with start() as scene:
        assert (await scene.show("x = ‸", "1")).text == "1"
        scene.backend.drop_idle()
        assert (await scene.show("y = ‸", "2")).text == "2"
        assert scene.lsp.shown_messages == []


async def test_an_address_that_cannot_be_one_is_told_once(start):
    urls = ["", "nonsense", "http://", "ftp://127.0.0.1/", "http://127.0.0.1:99999", "http://exa mple", "http://[::1", "127.0.0.1:1"]
    async with start(options={"engine": "remote"}) as scene:
        for n, url in enumerate(urls):
            scene.lsp.configure(scenes.endpoint(url))
            uri, line, column = scene.put(f"x{n} = ‸")
            for _ in range(3):
                assert (await scene.ask(uri, line, column)).text is None, url
            assert len(scene.lsp.shown_messages) == n + 1, url
            scene.lsp.configure(scenes.endpoint(scene.backend.url))
            assert (await scene.ask(uri, line, column)).text == "ok"
