"""Kind Q and N: keys, and the headers of every request."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pathlib import Path

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.http import failures, faults, headers, keys
from monkeycode_lsp.errors import EngineUnavailableError
from tests.servers import CompletionServer
from tests.unit.engines.remote import asking

SECRET = "sk-0123456789"

KEYRING = """
import threading
from keyring import errors
ENTRIES = {}
FAULTS = []
OPEN = threading.Event()
OPEN.set()
def get_password(service, user):
    OPEN.wait()
    if FAULTS:
        raise FAULTS[0]
    return ENTRIES.get((service, user))
"""
ERRORS = """
class KeyringError(Exception): pass
class NoKeyringError(KeyringError, RuntimeError): pass
class KeyringLocked(KeyringError): pass
"""


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A package of that name, as far as we use it."""
    (tmp_path / "keyring").mkdir()
    (tmp_path / "keyring/__init__.py").write_text(KEYRING)
    (tmp_path / "keyring/errors.py").write_text(ERRORS)
    for name in ("keyring", "keyring.errors"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    import keyring  # noqa: PLC0415 - the one made above

    return keyring


def test_a_key_loses_the_white_space_of_copying() -> None:
    told: list[str] = []
    assert keys.given(config.Endpoint(api_key=" K1\r\n"), {}, told.append) == "K1"
    assert keys.given(config.Endpoint(api_key_env=" KEY "), {"KEY": "K2\n"}, told.append) == "K2"
    assert not told
    assert not keys.given(config.Endpoint(api_key_env="KEY"), {}, told.append)
    assert "KEY" in told[0]


async def test_the_keyring_is_asked_for_service_and_user(keyring) -> None:
    keyring.ENTRIES["my/team", "me"] = f" {SECRET}\n"
    assert await keys.from_keyring("my/team / me") == SECRET
    async with CompletionServer() as server, asking.engine(server.url, api="openai", api_keyring="my/team/me") as engine:
        assert await asking.answer(engine) == "ok"
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_a_key_that_is_written_or_in_a_variable_comes_before_the_keyring(keyring) -> None:
    keyring.OPEN.clear()  # it would hang if it were asked
    how = {"api": "openai", "api_key_env": "KEY", "api_keyring": "a/b"}
    async with CompletionServer() as server, asking.engine(server.url, environ={"KEY": "K"}, **how) as engine:
        assert await asking.answer(engine) == "ok"
        assert server.requests[0].headers["authorization"] == "Bearer K"


@pytest.mark.parametrize("entry", ["x", "/x", "x/", " / ", "/"])
async def test_an_entry_that_is_none_is_refused_with_its_form(entry: str) -> None:
    with pytest.raises(EngineUnavailableError, match="service/user"):
        await keys.from_keyring(entry)


async def test_the_keyrings_troubles_have_words_of_their_own(keyring) -> None:
    async def said() -> str:
        with pytest.raises(EngineUnavailableError) as caught:
            await keys.from_keyring("a/b")
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        return str(caught.value)

    assert "no entry a/b" in await said()
    keyring.ENTRIES["a", "b"] = " \n"
    assert "no entry a/b" in await said()
    keyring.FAULTS[:] = [keyring.errors.NoKeyringError(SECRET)]
    assert "no keyring that can be used" in await said()
    for fault in (keyring.errors.KeyringLocked(SECRET), OSError(SECRET), RuntimeError(SECRET)):
        keyring.FAULTS[:] = [fault]
        assert "locked or out of order" in await said()


async def test_a_keyring_that_asks_the_user_is_waited_for_once_and_used_when_it_is_open(keyring) -> None:
    keyring.ENTRIES["a", "b"] = SECRET
    keyring.OPEN.clear()
    before = threading.active_count()
    for _ in range(5):
        with pytest.raises(EngineUnavailableError, match="does not answer"):
            await keys.from_keyring("a/b", within_s=0.05)
    assert threading.active_count() == before + 1
    (asking_thread,) = [thread for thread in threading.enumerate() if thread.name == "keyring a/b"]
    assert asking_thread.daemon
    keyring.OPEN.set()
    asking_thread.join()
    assert await keys.from_keyring("a/b") == SECRET


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setitem(sys.modules, "keyring.errors", None)
    with pytest.raises(EngineUnavailableError, match="pip install keyring"):
        await keys.from_keyring("a/b")


def test_the_users_own_headers_win_and_cannot_break_a_request() -> None:
    told = {"Authorization": "Token x\r\nEvil: 1", "X-Team": "a", "Content-Length": "3", " transfer-encoding": "chunked", "TE": "x"}
    built = headers.build(config.Endpoint(headers=told), "K1", None)
    assert built["authorization"] == "Token x Evil: 1"
    assert built["x-team"] == "a"
    assert not {"content-length", "transfer-encoding", "te", "Content-Length"} & set(built)


@pytest.mark.parametrize(
    "endpoint",
    [
        {"headers": {"bad name": "x"}},
        {"headers": {"x": "a\0b"}},
        {"headers": {"": "x"}},
        {"headers": {"na\nme": "x"}},
        {"api_key": SECRET + "\x01"},
        {"headers": {"x-key": SECRET + "\x7f"}},
    ],
)
async def test_headers_that_cannot_be_written_are_named_and_never_shown(endpoint, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    async with CompletionServer() as server, asking.engine(server.url, api="openai", **endpoint) as engine:
        with pytest.raises(EngineUnavailableError, match="`headers`") as caught:
            await asking.answer(engine)
        assert not server.requests
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_what_a_library_says_about_a_request_is_not_repeated() -> None:
    with pytest.raises(EngineUnavailableError) as caught, failures.translated("http://h"):
        raise faults.LocalProtocolError(f"Illegal header value {SECRET!r}")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


async def test_odd_but_lawful_values_are_sent_byte_for_byte() -> None:
    async with (
        CompletionServer() as server,
        asking.engine(server.url, api="openai", headers={"X-Name": "Jürgen ✓", "Host": "a.b"}) as engine,
    ):
        assert await asking.answer(engine) == "ok"
        got = server.requests[0].headers
        assert got["x-name"].encode("latin-1").decode() == "Jürgen ✓"
        assert got["host"] == "a.b"
