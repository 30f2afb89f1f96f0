"""Kind N: proxies and certificates."""

import pytest

from tests import certificates, proxies, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "environ",
    [
        {"ALL_PROXY": "socks5://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},  # encode/httpx#505, encode/httpx#1082
        {"all_proxy": "socks5h://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"},
        {"HTTP_PROXY": "::::", "ALL_PROXY": "nonsense"},
        {"NO_PROXY": "::1,[", "HTTP_PROXY": "http://user:p%40ss@127.0.0.1:9"},
    ],
)
async def test_this_machine_is_reached_directly_whatever_the_variables_say(start, environ):
    async with start(env=environ) as scene:
        for number, host in enumerate(("127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]")):
            scene.lsp.configure(scenes.endpoint(f"http://{host}:{scene.backend.port}"))
            assert (await scene.show(f"x{number} = ‸", "ok")).text == "ok"
        assert scene.lsp.shown_messages == []


async def test_a_proxy_that_cannot_be_used_is_named_without_its_password(start):
    async with start(env={"ALL_PROXY": "socks5://user:hunter2@127.0.0.1:9"}) as scene:
        scene.lsp.configure(scenes.endpoint("http://models.example:8000"))
        assert (await scene.show("x = ‸", "ok")).text is None
        (message,) = scene.lsp.shown_messages
        assert "proxy" in message.lower()
        assert "hunter2" not in message + scene.lsp.stderr.decode()


async def test_a_certificate_authority_of_the_users_own_is_trusted_as_one_file_or_as_several(start, tmp_path):
    # continuedev/continue#5115, continuedev/continue#889, huggingface/llm-vscode#78
    ours, other = certificates.Authority.make(tmp_path / "ours"), certificates.Authority.make(tmp_path / "other")
    if ours is None or other is None:
        pytest.skip("there is no openssl here to make certificates with")
    async with start(backend=servers.CompletionServer(servers.reply("ok"), tls=ours.server)) as scene:
        assert (await scene.show("x = ‸")).text is None
        (message,) = scene.lsp.shown_messages
        assert "caFile" in message
        assert scene.backend.requests == []  # nothing was sent to a server that nobody vouches for
        for ca_file in (str(ours.ca_file), [str(other.ca_file), str(ours.ca_file)]):
            scene.lsp.configure(scenes.endpoint(scene.backend.url, caFile=ca_file))
            assert (await scene.show("x = ‸")).text == "ok"
        scene.lsp.configure(scenes.endpoint(scene.backend.url, caFile=str(other.ca_file)))
        assert (await scene.show("y = ‸")).text is None


async def test_a_proxy_is_used_where_the_variables_say_so_and_its_password_stays_with_it(start):
    async with (
        servers.CompletionServer(servers.reply("ok")) as server,
        proxies.Proxy(server.port, password="Basic bWU6aHVudGVyMg==") as via,
    ):
        told = {"HTTP_PROXY": via.url.replace("//", "//me:hunter2@")}
        await _ask_through(start, told, via)


async def _ask_through(start, told, via):
    async with start(env=told) as scene:
        scene.lsp.configure(scenes.endpoint("http://models.example:8000"))
        assert (await scene.show("x = ‸")).text == "ok"
        assert set(via.asked) == {"POST http://models.example:8000/v1/completions"}
        assert "hunter2" not in scene.lsp.stderr.decode()


@pytest.mark.parametrize("value", ["/nowhere/ca.pem", "", "\t", "a:b"])
async def test_left_over_variables_for_certificates_do_no_harm(start, tmp_path, value):
    ours = certificates.Authority.make(tmp_path / "ours")
    if ours is None:
        pytest.skip("there is no openssl here to make certificates with")
    backend = servers.CompletionServer(servers.reply("ok"), tls=ours.server)
    async with start(backend=backend, env={"SSL_CERT_FILE": value, "SSL_CERT_DIR": value}) as scene:
        scene.lsp.configure(scenes.endpoint(scene.backend.url, caFile=str(ours.ca_file)))
        assert (await scene.show("x = ‸")).text == "ok"


async def test_a_server_that_asks_who_we_are_is_shown_our_certificate(start, tmp_path):
    ours = certificates.Authority.make(tmp_path / "ours")
    if ours is None:
        pytest.skip("there is no openssl here to make certificates with")
    mine, locked = ours.issue("mine"), ours.issue("locked", password="hunter2")
    strict = ours.issue("strict").context(clients_of=ours.ca_file)
    async with start(backend=servers.CompletionServer(servers.reply("ok"), tls=strict)) as scene:
        known = {"caFile": str(ours.ca_file), "clientCert": str(mine.cert), "clientKey": str(mine.key)}
        scene.lsp.configure(scenes.endpoint(scene.backend.url, **known))
        assert (await scene.show("x = ‸")).text == "ok"
        scene.lsp.configure(scenes.endpoint(scene.backend.url, **{**known, "clientKey": str(locked.key), "clientCert": str(locked.cert)}))
        assert (await scene.show("y = ‸")).text is None
        assert "clientKey" in scene.lsp.shown_messages[-1]
