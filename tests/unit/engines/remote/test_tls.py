"""Kind N: whom we trust, who we say we are, and what is said when that fails."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import tls
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.errors import EngineError, EngineUnavailableError, StreamBrokenError
from tests.certificates import Authority
from tests.servers import CompletionServer


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.make(tmp_path / "authority")
    if made is None:
        pytest.skip("there is no openssl here to make certificates with")
    return made


async def asked(context: ssl.SSLContext, trust: tls.Trust, *, host: str = "127.0.0.1", environ: dict[str, str] | None = None) -> int:
    """The status that a server with this context answers; nothing reaches it where it is not trusted."""
    async with CompletionServer(tls=context) as server:
        transport = Transport(address.parse(f"https://{host}:{server.port}"), {}, trust=trust, environ=environ or {})
        try:
            reply = await transport.send("/v1/completions", b"{}")
            await reply.body()
            await reply.aclose()
        except EngineError:
            assert not server.requests
            raise
        finally:
            await transport.aclose()
        return reply.status


async def refused(context: ssl.SSLContext, trust: tls.Trust, **how: Any) -> str:
    with pytest.raises(EngineUnavailableError) as caught:
        await asked(context, trust, **how)
    return str(caught.value)


async def test_the_users_own_authority_is_trusted_for_every_name_of_the_certificate(authority: Authority) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert await asked(authority.server, tls.Trust((str(authority.ca_file),)), host=host) == 200


async def test_a_name_with_a_dot_at_its_end_is_the_same_name(authority: Authority) -> None:
    assert await asked(authority.server, tls.Trust((str(authority.ca_file),)), host="localhost.") == 200


async def test_an_unknown_authority_is_refused_with_the_setting(authority: Authority) -> None:
    message = await refused(authority.server, tls.Trust())
    assert "not trusted" in message
    assert "caFile" in message


async def test_an_expired_certificate_is_called_expired(authority: Authority) -> None:
    old = authority.issue("old", days=-1).context()
    message = await refused(old, tls.Trust((str(authority.ca_file),)))
    assert "expired" in message
    assert "date of this machine" in message


async def test_a_certificate_for_another_name_is_told_apart(authority: Authority) -> None:
    other = authority.issue("other", names="DNS:models.example").context()
    for host in ("127.0.0.1", "localhost"):
        message = await refused(other, tls.Trust((str(authority.ca_file),)), host=host)
        assert "another name" in message
        assert "`url`" in message


async def test_a_self_signed_certificate_is_refused_and_can_be_trusted_by_naming_it(authority: Authority) -> None:
    alone = authority.self_signed("alone")
    message = await refused(alone.context(), tls.Trust())
    assert "signed it itself" in message
    assert "caFile" in message
    assert await asked(alone.context(), tls.Trust((str(alone.cert),))) == 200


async def test_plain_http_behind_https_is_named() -> None:
    async with CompletionServer() as server:
        transport = Transport(address.parse(f"https://127.0.0.1:{server.port}"), {}, environ={})
        with pytest.raises(EngineUnavailableError, match="begin with http"):
            await transport.send("/v1/models")
        await transport.aclose()


@contextmanager
def asking_who(context: ssl.SSLContext) -> Iterator[str]:
    """A server that says why it ends a handshake, as most do and asyncio's does not."""

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with plain, suppress(OSError), context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as secured:
                try:
                    secured.do_handshake()
                except ssl.SSLError:  # read what was sent in the meantime: closing with that unread would lose the reason
                    secured.shutdown(socket.SHUT_WR)
                    while socket.socket.recv(secured, 65_536):
                        pass
                    continue
                secured.recv(65_536)
                secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                secured.recv(1)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


async def test_a_server_that_asks_who_we_are_is_told(authority: Authority) -> None:
    mine, stranger = authority.issue("mine"), authority.self_signed("stranger")
    both = mine.cert.with_name("both.pem")
    both.write_bytes(mine.cert.read_bytes() + mine.key.read_bytes())
    ca_files = (str(authority.ca_file),)
    with asking_who(authority.issue("strict").context(clients_of=authority.ca_file)) as url:

        async def asked(*client: Path) -> int:
            transport = Transport(address.parse(url), {}, trust=tls.Trust(ca_files, *map(str, client)), environ={})
            try:
                return (await transport.send("/v1/models")).status
            finally:
                await transport.aclose()

        assert await asked(mine.cert, mine.key) == 200
        assert await asked(both) == 200
        with pytest.raises(EngineUnavailableError, match="Set `clientCert`"):
            await asked()
        with pytest.raises(EngineUnavailableError, match="does not take your certificate"):
            await asked(stranger.cert, stranger.key)


async def test_a_server_that_ends_the_connection_without_a_word_may_want_a_certificate(authority: Authority) -> None:
    silent = authority.issue("silent").context(clients_of=authority.ca_file)
    with pytest.raises(StreamBrokenError, match="clientCert"):
        await asked(silent, tls.Trust((str(authority.ca_file),)))


def context(trust: tls.Trust, environ: dict[str, str] | None = None) -> ssl.SSLContext:
    return tls.context(trust, environ or {}, alpn=("http/1.1",))


def wrong(trust: tls.Trust) -> str:
    with pytest.raises(EngineUnavailableError) as caught:
        context(trust)
    return str(caught.value)


def test_certificates_that_cannot_be_used_are_named_with_their_setting(authority: Authority, tmp_path: Path) -> None:
    mine, other = authority.issue("mine"), authority.issue("other")
    no_pem = tmp_path / "no.pem"
    no_pem.write_text("hello")
    for ca_file in (str(no_pem), str(tmp_path), str(tmp_path / "missing.pem"), "~nobody-of-that-name/ca.pem", "a\0b", ""):
        assert "caFile" in wrong(tls.Trust((ca_file,)))
    for cert, key in (
        (no_pem, mine.key),
        (mine.cert, other.key),
        (mine.cert, tmp_path / "missing.key"),
        (mine.cert, "a\0b"),
        ("", mine.key),
    ):
        assert "clientCert" in wrong(tls.Trust((), str(cert), str(key)))


def test_a_locked_key_is_said_to_be_locked(authority: Authority) -> None:
    locked = authority.issue("locked", password="hunter2")
    message = wrong(tls.Trust((), str(locked.cert), str(locked.key)))
    assert "password" in message
    assert "clientKey" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("odd", ["", " ", "/nowhere/at/all.pem", "{folder}", "{folder}/no.pem", "\0", "~", "a:b"])
async def test_odd_values_of_the_common_variables_do_no_harm(
    authority: Authority, tmp_path: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no.pem").write_text("hello")
    value = odd.format(folder=tmp_path)
    environ = {"SSL_CERT_FILE": value, "SSL_CERT_DIR": value}
    for name in environ if "\0" not in value else ():
        monkeypatch.setenv(name, value)  # where the libraries would look by themselves
    assert await asked(authority.server, tls.Trust((str(authority.ca_file),)), environ=environ) == 200
    assert "not trusted" in await refused(authority.server, tls.Trust(), environ=environ)


async def test_the_common_variable_names_an_authority_too(authority: Authority) -> None:
    assert await asked(authority.server, tls.Trust(), environ={"SSL_CERT_FILE": str(authority.ca_file)}) == 200


def test_a_certificate_is_always_checked() -> None:
    made = context(tls.Trust())
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.check_hostname
    assert made.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_settings_are_taken_in_either_form() -> None:
    assert tls.trust(config.Endpoint(ca_file="a.pem")) == tls.Trust(("a.pem",))
    assert tls.trust(config.Endpoint(ca_file=("a.pem", "", "b.pem"))).ca_files == ("a.pem", "b.pem")
    assert tls.trust(config.Endpoint()) == tls.Trust()
