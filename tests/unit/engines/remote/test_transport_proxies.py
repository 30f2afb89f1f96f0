"""Kind N: proxies from the environment."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import proxy, tls
from monkeycode_lsp.engines.remote.http.names import Names
from monkeycode_lsp.engines.remote.http.network import Network, Route
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.engines.remote.http.wires import Wire
from monkeycode_lsp.errors import EngineUnavailableError
from tests.certificates import Authority
from tests.http2_server import Http2Server
from tests.http2_server import reply as http2_reply
from tests.proxies import Proxy
from tests.servers import CompletionServer, reply, unused_port

SECRET = "hunter2"
NAMES = "DNS:models.example, IP:127.0.0.1"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.make(tmp_path / "authority")
    if made is None:
        pytest.skip("there is no openssl here to make certificates with")
    return made


async def asked(url: str, environ: Mapping[str, str], *, ca_file: Path | None = None, http2: bool = False, n: int = 1) -> list[bytes]:
    trust = tls.Trust((str(ca_file),)) if ca_file else tls.Trust()
    transport = Transport(address.parse(url), {"x": "y"}, trust=trust, http2=http2, environ=environ)
    try:
        bodies = []
        for _ in range(n):
            answer = await transport.send("/v1/completions", b"{}")
            bodies.append(await answer.body())
            await answer.aclose()
        return bodies
    finally:
        await transport.aclose()


async def refused(url: str, environ: Mapping[str, str], **how: object) -> str:
    with pytest.raises(EngineUnavailableError) as caught:
        await asked(url, environ, **how)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


async def test_a_plain_server_is_asked_through_the_proxy_that_is_told_who_we_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with CompletionServer(reply("ok")) as server, Proxy(server.port, password="Basic bWU6aHVudGVyMkA=") as via:
        environ = {"HTTP_PROXY": via.url.replace("//", f"//me:{SECRET}%40@")}
        first, second = await asked("http://models.example:81", environ, n=2)
        assert b"ok" in first
        assert first == second
        assert via.asked == ["POST http://models.example:81/v1/completions"]
        assert server.requests[0].headers["host"] == "models.example:81"
        assert server.requests[0].headers["x"] == "y"
    assert SECRET not in caplog.text


@pytest.mark.parametrize("secure", [False, True])
async def test_a_server_over_tls_is_reached_by_a_tunnel_that_the_key_never_leaves(authority: Authority, secure: bool) -> None:  # noqa: FBT001 - a case
    context = authority.issue("models", names=NAMES).context()
    proxys = authority.issue("proxy").context() if secure else None
    async with CompletionServer(reply("ok"), tls=context) as server, Proxy(server.port, password="Basic bWU6", tls=proxys) as via:
        environ = {"https_proxy": via.url.replace("//", "//me@")}
        assert b"ok" in (await asked("https://models.example", environ, ca_file=authority.ca_file, n=3))[2]
        assert via.asked == ["CONNECT models.example:443"]
        assert set(via.told[0]) == {"host", "proxy-authorization"}
        assert server.requests[0].headers["host"] == "models.example"
        assert "proxy-authorization" not in server.requests[0].headers


async def test_http_2_goes_through_a_tunnel_too(authority: Authority) -> None:
    context = authority.issue("models", names=NAMES).context()
    async with Http2Server(http2_reply(b"ok"), tls=context) as server, Proxy(server.port) as via:
        bodies = await asked("https://models.example", {"ALL_PROXY": via.url}, ca_file=authority.ca_file, http2=True, n=2)
        assert bodies == [b"ok", b"ok"]
        assert via.asked == ["CONNECT models.example:443"]


async def test_what_a_proxy_refuses_is_said_with_its_remedy(authority: Authority) -> None:
    https, http = "https://models.example", "http://models.example"
    async with Proxy(1, password="other") as via:
        told = via.url.replace("//", f"//me:{SECRET}@")
        assert "another user name or password" in await refused(https, {"HTTPS_PROXY": told})
    async with Proxy(1, answer=b"HTTP/1.1 403 Forbidden\r\n\r\n") as via:
        assert "HTTP 403" in await refused(https, {"HTTPS_PROXY": via.url})
    for answer in (b"SSH-2.0-x\r\n", b"\r\n", b"HTTP/1.1 2xx\r\n\r\n"):
        async with Proxy(1, answer=answer) as via:
            assert "does not answer as one" in await refused(https, {"HTTPS_PROXY": via.url})
    nobody = {"ALL_PROXY": f"me:{SECRET}@127.0.0.1:{unused_port()}"}
    for url in (https, http):
        message = await refused(url, nobody)
        assert "The proxy on the way" in message
        assert "NO_PROXY" in message
    async with Proxy(1, tls=authority.issue("proxy").context()) as via:
        for url in (https, http):
            assert "proxy" in await refused(url, {"ALL_PROXY": via.url})  # nobody vouches for its certificate
    async with Proxy(1) as via:
        assert "proxy" in await refused(https, {"ALL_PROXY": f"https://127.0.0.1:{via.port}"})  # it does not speak TLS


async def test_a_proxy_that_never_answers_is_given_up_in_time() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        given_up.set()

    given_up = asyncio.Event()
    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    environ = {"HTTPS_PROXY": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
    start = asyncio.get_running_loop().time()
    assert "cannot be reached" in await refused("https://models.example", environ)
    assert asyncio.get_running_loop().time() - start < 10
    await asyncio.wait_for(given_up.wait(), 5)
    server.close()


async def test_a_certificate_for_another_name_is_refused_behind_a_proxy_too(authority: Authority) -> None:
    async with CompletionServer(tls=authority.issue("here").context()) as server, Proxy(server.port) as via:
        message = await refused("https://models.example", {"ALL_PROXY": via.url}, ca_file=authority.ca_file)
        assert "another name" in message
        assert not server.requests


PROXIES = {
    "HTTP_PROXY": "http://p:1",
    "https_proxy": "q:2",
    "NO_PROXY": "intern.example, .corp:8080, 10.0.0.0/8,*.dev.example http://wild.example [fd00::1]:90,fe80::/10 dotted.example.",
}


@pytest.mark.parametrize(
    ("url", "via"),
    [
        ("http://h", proxy.Proxy("p", 1)),
        ("https://h", proxy.Proxy("q", 2)),
        ("http://intern.example", None),
        ("http://INTERN.example.", None),
        ("http://a.intern.example", None),
        ("http://notintern.example", proxy.Proxy("p", 1)),
        ("http://x.corp:8080", None),
        ("http://x.corp:81", proxy.Proxy("p", 1)),
        ("http://10.1.2.3", None),
        ("http://11.1.2.3", proxy.Proxy("p", 1)),
        ("http://x.dev.example", None),
        ("http://wild.example", None),
        ("http://dotted.example", None),
        ("http://[fd00::1]:90", None),
        ("http://[fd00::1]:91", proxy.Proxy("p", 1)),
        ("http://[fe80::2]", None),
        ("http://localhost:1", None),
        ("http://LOCALHOST", None),
        ("http://127.3.2.1", None),
        ("http://[::1]:80", None),
        ("https://a.localhost", None),
        ("http://127.1", None),
        ("http://2130706433", None),
        ("http://[::ffff:127.0.0.1]:91", None),
        ("http://ip6-localhost", None),
        ("http://localhost.localdomain.", None),
        ("http://[fe80::2%25eth0]:91", None),
        ("http://[fec0::2]", proxy.Proxy("p", 1)),
    ],
)
def test_the_proxy_follows_the_environment_but_this_machine_is_reached_directly(url: str, via: proxy.Proxy | None) -> None:
    assert proxy.choose(address.parse(url), PROXIES) == via


@pytest.mark.parametrize(
    "value", ["socks5://p:1", "::::", "http://", "ftp://p", "http://p:port", "http://[", "http://a b", "http://p\n", "//p"]
)
def test_a_proxy_that_cannot_be_used_harms_only_who_needs_it(value: str) -> None:
    environ = {"ALL_PROXY": value.replace("//", f"//me:{SECRET}@") if "//p" in value else value}
    for there in ("http://h", "https://h"):
        if value == "http://p\n":  # blanks around a value mean nothing
            assert proxy.choose(address.parse(there), {"ALL_PROXY": value}) == proxy.Proxy("p", 80)
            continue
        with pytest.raises(EngineUnavailableError, match="NO_PROXY") as caught:
            proxy.choose(address.parse(there), environ)
        assert SECRET not in str(caught.value)
    for here in ("http://localhost:1", "https://127.0.0.1"):
        assert proxy.choose(address.parse(here), environ) is None


def test_a_star_exempts_everything_and_the_special_variable_comes_before_the_general() -> None:
    somewhere = address.parse("http://h")
    assert proxy.choose(somewhere, {"ALL_PROXY": "socks5://p:1", "no_proxy": "*"}) is None
    assert proxy.choose(somewhere, {"ALL_PROXY": "socks5://p:1", "http_proxy": "'http://q'"}) == proxy.Proxy("q", 80)
    assert proxy.choose(somewhere, {"ALL_PROXY": "", "HTTP_PROXY": " "}) is None
    assert proxy.choose(address.parse("https://h"), {"HTTPS_PROXY": "HTTPS://q"}) == proxy.Proxy("q", 443, secure=True)


def test_a_proxys_password_is_not_shown_with_it() -> None:
    chosen = proxy.choose(address.parse("http://h"), {"HTTP_PROXY": f"http://me:{SECRET}@p:1"})
    assert chosen is not None
    assert chosen.authorization == "Basic bWU6aHVudGVyMg=="
    assert repr(chosen) == str(chosen) == "<proxy p:1>"


async def through(host: str, look_up: Callable[[str], list[str]]) -> list[str]:
    """What the proxy is asked for on the way to `host`, which really is this machine."""
    async with CompletionServer() as server, Proxy(server.port) as via:
        route = Route(host, server.port, via=proxy.Proxy("127.0.0.1", via.port))
        network = Network(route, within_s=5, names=Names(look_up))
        wires = [await network.open() for _ in range(2)]
        for wire in wires:
            peer = wire.get_extra_info("peername")[1]
            assert peer == (via.port if network.via else server.port)
            wire.abort()
        network.close()
        return ["proxy" if network.via else "direct"]


def unknown(host: str) -> list[str]:
    raise OSError(host)


async def test_a_name_of_this_machine_is_reached_directly_and_every_other_through_the_proxy() -> None:
    assert await through("alias.example", lambda _: ["127.0.0.1"]) == ["direct"]
    assert await through("both.example", lambda host: ["127.0.0.1", "127.1.1.1"] if host == "both.example" else []) == ["direct"]
    assert await through("elsewhere.example", lambda host: ["192.0.2.1"] if host != "127.0.0.1" else [host]) == ["proxy"]
    assert await through("half.example", lambda host: ["127.0.0.1", "192.0.2.1"] if host == "half.example" else [host]) == ["proxy"]
    assert await through("only-the-proxy-knows.example", unknown) == ["proxy"]


async def test_this_machines_own_name_is_never_given_to_a_proxy() -> None:
    async with CompletionServer(reply("ok")) as server, Proxy(server.port) as via:
        try:
            numbers = await Names().resolve(socket.gethostname())
        except OSError:
            pytest.skip("this machine does not know its own name")
        if not any(number.startswith("127.") for number in numbers):
            pytest.skip("its name leads to another interface than the one that the server is on")
        assert b"ok" in (await asked(f"http://{socket.gethostname()}:{server.port}", {"HTTP_PROXY": via.url}))[0]
        assert via.asked == []


async def test_what_a_proxy_says_beyond_its_answer_never_passes_for_the_server(authority: Authority) -> None:
    surplus = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    async with Proxy(1, answer=surplus) as via:
        assert "does not answer as one" in await refused("https://models.example", {"HTTPS_PROXY": via.url}, ca_file=authority.ca_file)


async def test_what_was_said_in_the_clear_is_not_read_as_if_it_came_encrypted() -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"evil")
        await done.wait()
        writer.close()

    done = asyncio.Event()
    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", server.sockets[0].getsockname()[1])
    assert await asyncio.wait_for(wire.read(1), 5) == b"e"
    with pytest.raises(ConnectionResetError):
        await wire.secure(ssl.create_default_context(), "h", 1)
    wire.abort()
    done.set()
    server.close()
