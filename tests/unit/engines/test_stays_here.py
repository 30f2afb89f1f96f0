"""What must not leave this machine: which engines say that they are on it, and that no other one ever gets such a prompt."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
import pytest

from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.failover import Failover
from monkeycode_lsp.engines.remote import address, facts
from monkeycode_lsp.engines.remote.http.names import Names
from monkeycode_lsp.engines.remote.http.network import Network, Route
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.engines.scripted import ScriptedEngine
from monkeycode_lsp.errors import StaysHereError
from tests.proxies import Proxy
from tests.servers import CompletionServer, reply
from tests.unit.engines.remote import asking, members
from tests.unit.engines.remote.members import FakeServer

HERE = Prompt(segments=(Plain("a"),), prefix="a", suffix="", stays_here=True)


async def said(engine, prompt):
    async with aclosing(engine.stream(prompt)) as chunks:
        return "".join([chunk.text async for chunk in chunks])


async def test_a_server_on_loopback_is_here_and_gets_such_a_prompt():
    async with CompletionServer(reply("ok")) as server, asking.engine(server.url) as engine:
        assert (await engine.ready()).is_here
        assert await said(engine, asking.fim(stays_here=True)) == "ok"


async def test_what_answers_through_a_proxy_is_not_here():
    async with CompletionServer(reply("ok")) as server, Proxy(server.port) as via:
        engine = asking.engine("http://models.example", environ={"HTTP_PROXY": via.url}, api="openai")
        async with engine as remote:
            assert not (await remote.ready()).is_here
            with pytest.raises(StaysHereError, match="on this machine"):
                await said(remote, asking.fim(stays_here=True))
            assert server.requests == []
            assert await said(remote, asking.fim()) == "ok"


@pytest.mark.parametrize("model", ["gpt-oss:120b-cloud", "glm-4.6:cloud", "Qwen3-Coder:480B-CLOUD"])
async def test_a_model_that_a_server_of_this_machine_only_hands_the_text_to_is_not_here(model):
    assert facts.is_passed_on(model)
    async with CompletionServer(reply("ok")) as server, asking.engine(server.url, model=model) as engine:
        assert not (await engine.ready()).is_here
        with pytest.raises(StaysHereError):
            await said(engine, asking.plain(stays_here=True))
        assert server.requests == []


async def test_a_name_is_here_if_it_leads_here():
    async with CompletionServer(reply("ok")) as server:
        network = Network(Route("box.example", server.port), within_s=5, names=Names(lambda _: ["127.0.0.1"]))
        assert not network.is_here
        wire = await network.open()
        assert (wire.is_here, network.is_here) == (True, True)
        wire.abort()
        network.close()


async def test_every_request_looks_at_where_its_connection_ends():
    async with CompletionServer(reply("ok")) as server:
        transport = Transport(address.parse(server.url), {}, environ={})
        await (await transport.send("/v1/models", stays_here=True)).body()
        for connection in transport._connections:
            connection.wire.is_here = False
        assert (await (await transport.send("/v1/models", stays_here=True)).body()) is not None  # over a new one
        assert [connection.wire.is_here for connection in transport._connections] == [False, True]
        await transport.aclose()


def server(name, *, here):
    made = FakeServer(name)
    made.model = msgspec.structs.replace(made.model, is_here=here)
    return made


async def test_of_a_pool_only_members_on_this_machine_get_it_even_if_they_fail():
    near, far = server("near", here=True), server("far", here=False)
    engine = members.engine(far, near)
    try:
        model = await engine.ready()
        for member in engine.members:  # both are known before anything is asked
            await engine._pool()._roster.refresh(member)
        model = await engine.ready()
        assert not model.is_here
        prompt = msgspec.structs.replace(HERE, model=model.fingerprint)
        for _ in range(5):
            assert await said(engine, prompt) == "near!"
        near.error = StaysHereError("it is gone")
        with pytest.raises(StaysHereError):
            await said(engine, prompt)
        assert far.n_asked == 0
    finally:
        await engine.aclose()


async def test_a_pool_without_a_member_on_this_machine_refuses():
    far = [server(name, here=False) for name in "ab"]
    engine = members.engine(*far)
    try:
        model = await engine.ready()
        with pytest.raises(StaysHereError, match=r"remote\.endpoints"):
            await said(engine, msgspec.structs.replace(HERE, model=model.fingerprint))
        assert [one.n_asked for one in far] == [0, 0]
    finally:
        await engine.aclose()


async def test_a_pool_is_here_if_all_of_its_members_are():
    engine = members.engine(server("a", here=True), server("b", here=True))
    try:
        assert (await engine.ready()).is_here
    finally:
        await engine.aclose()


class Elsewhere(ScriptedEngine):
    """Endpoints that are there, and must not see the text."""

    n_looks = 0

    async def stream(self, prompt):
        if prompt.stays_here:
            raise StaysHereError("none of them is on it")
        async for chunk in super().stream(prompt):
            yield chunk

    async def reachable(self):
        self.n_looks += 1
        return False

    async def aclose(self):
        """Nothing runs."""


async def test_a_refusal_for_privacy_does_not_mean_that_the_endpoints_are_gone():
    first = Elsewhere(["x"])
    engine = Failover(first, lambda: ScriptedEngine(["y"]), notify=print)
    model = await engine.ready()
    with pytest.raises(StaysHereError):
        await said(engine, msgspec.structs.replace(HERE, model=model.fingerprint))
    assert engine._looking is None
    assert first.n_looks == 0
    await engine.aclose()
