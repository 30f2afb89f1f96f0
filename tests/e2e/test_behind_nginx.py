"""The recipe for nginx, run by a real nginx in front of two servers: what it must let pass, and what it must not hold."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

import monkeycode_lsp.engines.remote
from monkeycode_lsp import config
from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines import choose
from tests import servers
from tests.certificates import Authority
from tests.servers import DONE, CompletionServer

_PROGRAM = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
RECIPES = Path(monkeycode_lsp.engines.remote.__file__).with_name("RECIPES.md")
ASKED = Prompt(segments=(Plain("a = "),), prefix="a = ", suffix="", fim=False)
PATIENCE_S = 20

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(_PROGRAM is None, reason="nginx is not installed"),
]


def recipe(port, backends, folder):
    """The lines that the document shows, with addresses and files of this test."""
    (lines,) = re.findall(r"<!-- recipe:nginx -->\n```nginx\n(.*?)```", RECIPES.read_text(encoding="utf-8"), flags=re.DOTALL)
    addresses = iter(backends)
    lines, n_servers = re.subn(r"server 10\.0\.0\.\d+:8000", lambda _: f"server 127.0.0.1:{next(addresses).port}", lines)
    lines, n_files = re.subn(r"/etc/nginx/completions\.(pem|key)", rf"{folder}/server.\1", lines)
    lines, n_ports = re.subn(r"listen 443", f"listen 127.0.0.1:{port}", lines)
    assert (n_servers, n_files, n_ports) == (len(backends), 2, 1)
    temporary = "".join(f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"daemon off;\nmaster_process off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{lines}}}\n"


@asynccontextmanager
async def nginx(folder: Path, *backends: CompletionServer) -> AsyncIterator[config.Endpoint]:
    """A running one; the settings that reach it."""
    authority = Authority.make(folder)
    if authority is None:
        pytest.skip("openssl is not installed")
    port = servers.unused_port()
    (folder / "nginx.conf").write_text(recipe(port, backends, folder), encoding="utf-8")
    assert _PROGRAM is not None
    process = await asyncio.create_subprocess_exec(_PROGRAM, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr")
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await listens(port):
                assert process.returncode is None, "nginx does not take the recipe"
                await asyncio.sleep(0.02)
        yield config.Endpoint(url=f"https://127.0.0.1:{port}", api="openai", model="m", ca_file=str(authority.ca_file))
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)


async def listens(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


class Scene:
    """Two servers that say what `says` says, nginx before them, and an engine that knows nginx only."""

    def __init__(self, engine, backends):
        self.engine = engine
        self.backends = backends

    async def text(self):
        async with asyncio.timeout(PATIENCE_S), aclosing(self.engine.stream(ASKED)) as stream:
            return "".join([chunk.text async for chunk in stream])

    @property
    def n_requests(self):
        return [len(backend.requests) for backend in self.backends]


@pytest_asyncio.fixture
async def start(tmp_path):
    @asynccontextmanager
    async def started(*scripts):
        async with (
            CompletionServer(*scripts) as first,
            CompletionServer(*scripts) as second,
            nginx(tmp_path / "nginx", first, second) as endpoint,
        ):
            settings = msgspec.structs.replace(config.Config(), engine="remote", remote=config.Remote(endpoints=(endpoint,)))
            engine = choose.engine(settings, lambda error: None)
            try:
                yield Scene(engine, (first, second))
            finally:
                await engine.aclose()

    return started


async def test_a_token_is_there_before_the_next_one_is_said(start):
    goes_on = asyncio.Event()

    async def script(exchange):
        await exchange.head()
        await exchange.text("1")
        await goes_on.wait()
        await exchange.text("2", "stop")
        await exchange.send(DONE)
        await exchange.end()

    async with start(script) as scene, asyncio.timeout(PATIENCE_S), aclosing(scene.engine.stream(ASKED)) as stream:
        assert (await anext(stream)).text == "1"
        goes_on.set()
        assert "".join([chunk.text async for chunk in stream]) == "2"


@pytest.mark.parametrize("said", [False, True], ids=["before the first token", "after it"])
async def test_a_cancel_closes_the_connection_to_the_server(start, said):
    async def script(exchange):
        if said:
            await exchange.head()
            await exchange.text("1")
        await exchange.hold()

    async with start(script) as scene:
        stream = scene.engine.stream(ASKED)
        first = asyncio.ensure_future(anext(stream))
        arrived = [asyncio.ensure_future(backend.request(0)) for backend in scene.backends]
        (got,), waiting = await asyncio.wait(arrived, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
        for task in waiting:
            task.cancel()
        if said:
            await asyncio.wait_for(first, PATIENCE_S)
        first.cancel()
        await asyncio.wait({first})
        await stream.aclose()
        await asyncio.wait_for(got.result().closed.wait(), PATIENCE_S)


async def test_a_server_that_is_busy_is_spared(start):
    async def script(exchange):
        if not busy.done():
            busy.set_result(exchange.server)
            await exchange.hold()
        await servers.reply("ok")(exchange)

    busy = asyncio.get_running_loop().create_future()
    async with start(script) as scene:
        waiting = asyncio.ensure_future(scene.text())
        await asyncio.wait_for(asyncio.shield(busy), PATIENCE_S)
        assert [await scene.text() for _ in range(4)] == ["ok"] * 4
        assert sorted(scene.n_requests) == [1, 4]
        busy.result().release()
        assert await waiting == "ok"


async def test_connections_to_the_servers_are_kept(start):
    async with start(servers.reply("ok")) as scene:
        assert [await scene.text() for _ in range(8)] == ["ok"] * 8
        assert sum(scene.n_requests) == 8
        assert [backend.n_connections for backend in scene.backends] == [1, 1]
        assert {request.headers.get("connection", "") for backend in scene.backends for request in backend.requests} == {""}


async def test_an_ask_goes_to_the_other_server_where_one_is_gone(start, tmp_path):
    async with CompletionServer(servers.reply("ok")) as alive:
        dead = CompletionServer()
        dead.port = servers.unused_port()
        async with nginx(tmp_path / "half", dead, alive) as endpoint:
            settings = msgspec.structs.replace(config.Config(), engine="remote", remote=config.Remote(endpoints=(endpoint,)))
            engine = choose.engine(settings, lambda error: None)
            try:
                assert [await Scene(engine, (alive,)).text() for _ in range(4)] == ["ok"] * 4
            finally:
                await engine.aclose()
