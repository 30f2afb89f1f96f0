"""A team's cache: what one colleague's server was answered, another's shows without asking."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from contextlib import asynccontextmanager

import pytest

from tests import driver, redis_server, servers
from tests.e2e import scene as scenes
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.e2e, redis_server.needed]

ORIGIN = "https://forge.example/team/project.git"
WITHIN_S = 60
"""For what takes seconds at most: a machine can be busy, and the shared cache is not waited for."""


@pytest.fixture
def redis(tmp_path):
    with RedisServer(tmp_path / "redis", password="hunter2") as running:
        yield running


class Colleague(scenes.Scene):
    """Whose documents lie in a project."""

    def __init__(self, lsp, backend, says, project):
        super().__init__(lsp, backend, says)
        self._project = project

    def uri(self, name="document{}.py"):
        return super().uri(name).replace("file:///w", self._project)


@asynccontextmanager
async def colleague(folder, backend, says, url, *, origin=ORIGIN, env=None):
    """A server with a home, a cache and a clone of its own."""
    project = folder / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
    workspace = {"rootUri": project.as_uri(), "workspaceFolders": [{"uri": project.as_uri(), "name": "project"}]}
    cache = {"cache": {"sharedUrl": url, "directory": str(folder / "cache")}}
    options = scenes.merged(scenes.endpoint(backend.url), cache)
    async with driver.server(folder / "home", options=options, params=driver.VSCODE | workspace, env=env) as lsp:
        yield Colleague(lsp, backend, says, project.as_uri())


@asynccontextmanager
async def team(tmp_path, url, **other):
    """Two colleagues with one endpoint; `other` is for the second one."""
    says = scenes.Says()
    async with (
        servers.CompletionServer(says) as backend,
        colleague(tmp_path / "alice", backend, says, url) as alice,
        colleague(tmp_path / "bob", backend, says, url, **other) as bob,
    ):
        yield alice, bob


async def shared(alice, bob, numbers):
    """Something new that Alice was shown is shown to Bob, without a call; tries until it is."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            n = next(numbers)
            assert (await alice.show(f"total_{n} = ‸", f"sum(items_{n})")).text == f"sum(items_{n})"
            await asyncio.sleep(0.05)  # nothing tells a client that the other's suggestion has arrived
            shown = await bob.show(f"total_{n} = ‸", f"other({n})")
            if not shown.requests:
                assert shown.text == f"sum(items_{n})"
                return shown
            assert shown.text == f"other({n})"


async def test_a_colleague_is_shown_what_another_was_answered(tmp_path, redis):
    async with team(tmp_path, redis.url) as (alice, bob):
        shown = await shared(alice, bob, itertools.count())
        (outcome,) = await bob.lsp.why()
        assert outcome["origin"] == "shared"
        redis.kill()  # from now on it is Bob's own
        again = await bob.ask(shown.uri, 0, len(bob.lsp.texts[shown.uri]))
        assert (again.text, again.requests) == (shown.text, [])
        assert alice.lsp.shown_messages == bob.lsp.shown_messages == []


async def test_no_source_text_lies_in_its_keys(tmp_path, redis):
    async with team(tmp_path, redis.url) as (alice, bob):
        await shared(alice, bob, itertools.count())
        found = redis.run("KEYS", "*")
        assert b"monkeycode:1:" in found
        assert b"total" not in found


async def test_another_project_is_not_served_it(tmp_path, redis):
    async with team(tmp_path, redis.url, origin="https://forge.example/other/project.git") as (alice, bob):
        for n in range(10):
            assert (await alice.show(f"total_{n} = ‸", "a")).text == "a"
            shown = await bob.show(f"total_{n} = ‸", "b")
            assert (shown.text, len(shown.requests)) == ("b", 1)
        assert int(redis.run("DBSIZE")[1:]) > 0


async def test_killed_and_restarted_while_somebody_types_it_costs_one_message_at_most(tmp_path, redis):
    numbers = itertools.count()
    async with team(tmp_path, redis.url) as (alice, bob):
        await shared(alice, bob, numbers)
        alice.says.script = servers.reply("ok")
        uri, line, column = alice.put("name = ‸")

        async def type_keys(n_keys):
            """Every key is followed by an ask, and every ask is answered from the backend."""
            nonlocal column
            for _ in range(n_keys):
                alice.lsp.change(uri, (line, column), (line, column), "x")
                column += 1
                shown = await alice.ask(uri, line, column)
                assert (shown.text, len(shown.requests)) == ("ok", 1)

        await type_keys(10)
        redis.kill()
        await type_keys(40)
        redis.start()
        await type_keys(10)
        await shared(alice, bob, numbers)
        for scene in (alice, bob):
            assert len(scene.lsp.shown_messages) <= 1, scene.lsp.shown_messages
            assert "hunter2" not in json.dumps(scene.lsp.notifications) + scene.lsp.stderr.decode(errors="replace")
        assert len(alice.lsp.shown_messages) == 1
        assert f"127.0.0.1:{redis.port}" in alice.lsp.shown_messages[0]


async def test_a_cache_that_hangs_delays_nobody(tmp_path, redis):
    async with team(tmp_path, redis.url) as (alice, bob):
        await shared(alice, bob, itertools.count())
        redis.hang()
        for n in range(30):
            at = asyncio.get_running_loop().time()
            assert (await alice.show(f"hang_{n} = ‸", "ok")).text == "ok"
            assert asyncio.get_running_loop().time() - at < 5
        assert len(alice.lsp.shown_messages) <= 1
        redis.go_on()


NOBODY_ANSWERS = """
import os, socket, time

known, opened = socket.getaddrinfo, os.open

def looked_up(host, *more, **how):
    if str(host).endswith("cache.example"):
        time.sleep(60)
    return known(host, *more, **how)

def open_(path, *more, **how):
    if str(path).endswith("config"):
        time.sleep(60)
    return opened(path, *more, **how)

socket.getaddrinfo, os.open = looked_up, open_
"""


async def test_a_name_and_a_drive_that_do_not_answer_delay_neither_a_suggestion_nor_the_end(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NOBODY_ANSWERS)
    says = scenes.Says()
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    async with (
        servers.CompletionServer(says) as backend,
        colleague(tmp_path / "alice", backend, says, "redis://cache.example", env={"PYTHONPATH": path}) as alice,
    ):
        for n in range(10):
            assert (await alice.show(f"total_{n} = ‸", "ok")).text == "ok"
        await alice.lsp.call("shutdown", None)
        alice.lsp.notify("exit", None)
        assert await asyncio.wait_for(alice.lsp.process.wait(), 20) == 0
        assert alice.lsp.shown_messages == []


async def test_a_cache_that_is_not_there_is_told_once(tmp_path):
    url = f"redis://:hunter2@127.0.0.1:{servers.unused_port()}/0"
    async with team(tmp_path, url) as (alice, _):
        numbers = itertools.count()
        async with asyncio.timeout(60):
            while not alice.lsp.shown_messages:  # it is tried again now and then, while there are asks
                assert (await alice.show(f"total_{next(numbers)} = ‸", "ok")).text == "ok"
        for _ in range(10):
            assert (await alice.show(f"total_{next(numbers)} = ‸", "ok")).text == "ok"
        assert len(alice.lsp.shown_messages) == 1
        assert "hunter2" not in alice.lsp.shown_messages[0]
