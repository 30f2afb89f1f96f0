"""The two ways to an endpoint: through servers of ours with an editor each, and straight by the same HTTP client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench import overhead
from monkeycode_lsp.bench.backend_process import MARK
from monkeycode_lsp.bench.load_report import Told
from monkeycode_lsp.client import Client, ClientError
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Snapshot
from monkeycode_lsp.engines.remote import address, calls
from monkeycode_lsp.engines.remote.dialects.base import Call, Dialect, Identity
from monkeycode_lsp.engines.remote.http import headers, keys
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.engines.remote.stream.sse import EventParser
from monkeycode_lsp.engines.remote.terms import Terms
from monkeycode_lsp.errors import EngineError, EngineUnavailableError

DOCUMENT_BYTES = 14_000
ANSWER_S = 30.0
DEADLINE_S = config.Completion().deadline_ms / 1e3
"""By then our servers reply with what there is."""
_NEARLY = 0.98
_AT_ONCE = 4
"""Servers that start at the same time."""
_DOCUMENTS = 6
"""Of each editor at the start, so that opening one is no part of an ask; more are opened if they are needed."""
_LINES_A_PLACE = 4
_OK = 200
_TRIES = 4
_MAX_TOKENS = 32
"""A line, so that both ways ask for as much though ours stops a stream as soon as it has enough."""


class Way(Protocol):
    """Whatever brings asks to the endpoint."""

    async def ask(self, who: int, number: int) -> Told:
        """Ask at the place of that number, which is new, for the editor `who`."""
        ...


def line(number: int) -> str:
    """What stands before the cursor, with the number of the ask in it."""
    return f"{MARK}{number} = value_{number}("


def middle(lines: Sequence[str]) -> int:
    """The line between two functions of the document at which is asked."""
    return len(lines) // 2 // _LINES_A_PLACE * _LINES_A_PLACE


class Editor:
    """An editor with a server of its own.  Asks that are under way together are in documents of their own, as an editor's are."""

    # The mutable state is the version of each document and which documents no ask is waiting in.

    def __init__(self, client: Client) -> None:
        self.client = client
        self._versions: dict[str, int] = {}
        self._free: list[str] = []
        self._text = overhead.document(DOCUMENT_BYTES)
        self._at = middle(self._text.splitlines())
        for uri in [self._open() for _ in range(_DOCUMENTS)]:
            self.give(uri)

    async def ask(self, number: int) -> Told:
        """One new line, and what could follow it."""
        uri = self.take()
        _, reply, began = self.send(uri, number)
        try:
            async with asyncio.timeout(ANSWER_S):
                result = await reply
        except TimeoutError:
            return Told((time.monotonic() - began) * 1e3, "silence")  # the document stays taken: its ask is still open
        except ClientError:
            self.give(uri)
            return Told((time.monotonic() - began) * 1e3, "error")
        ms = (time.monotonic() - began) * 1e3
        self.give(uri)
        return Told(ms, "text" if result and result["items"] else "late" if ms > _NEARLY * DEADLINE_S * 1e3 else "empty")

    async def ask_and_cancel(self, number: int, after_s: float, cancelled: Callable[[], None] = lambda: None) -> None:
        """One new line, and a user who types on.  `cancelled` is called as the cancel is written."""
        uri = self.take()
        request, reply, _ = self.send(uri, number)
        await asyncio.sleep(after_s)
        cancelled()
        self.client.notify("$/cancelRequest", {"id": request})
        with suppress(ClientError, TimeoutError):  # an error is the right answer to a cancelled request
            async with asyncio.timeout(ANSWER_S):
                await reply
        self.give(uri)

    def send(self, uri: str, number: int) -> tuple[int, asyncio.Future[Any], float]:
        """The request's id, its reply, and when it was written."""
        self._versions[uri] += 1
        self.client.insert(uri, self._versions[uri], self._at, 0, line(number) + "\n")
        began = time.monotonic()
        return *self.client.ask(uri, self._at, len(line(number))), began

    async def warm_up(self, numbers: Iterator[int]) -> None:
        """Connect, import, and be asked once in every document, as the documents of people who type have been."""
        await asyncio.gather(*(self.ask(next(numbers)) for _ in range(_DOCUMENTS)))

    def take(self) -> str:
        """A document in which no ask is under way."""
        return self._free.pop() if self._free else self._open()

    def give(self, uri: str) -> None:
        """No ask is under way there any more."""
        self._free.append(uri)

    def _open(self) -> str:
        uri = f"file:///w/load_{len(self._versions)}.py"
        self.client.open(uri, "python", self._text)
        self._versions[uri] = 0
        return uri


class Editors:
    """See `Way`: several editors."""

    def __init__(self, editors: Sequence[Editor]) -> None:
        self.all = editors

    async def ask(self, who: int, number: int) -> Told:
        """See `Way.ask`."""
        return await self.all[who].ask(number)

    @classmethod
    @asynccontextmanager
    async def running(cls, n: int, endpoints: Sequence[config.Endpoint], **more: Mapping[str, Any]) -> AsyncIterator[Editors]:
        """Started a few at a time, each with `endpoints` and `more` as its settings."""
        options = overhead.options("") | {
            "remote": {"endpoints": msgspec.to_builtins(tuple(endpoints))},
            "completion": {"maxTokens": _MAX_TOKENS},
            **more,
        }
        system = overhead.systems("")[overhead.OURS]._replace(options=options)
        turn = asyncio.Semaphore(_AT_ONCE)
        async with AsyncExitStack() as stack:

            async def start() -> Editor:
                async with turn:
                    client, _ = await stack.enter_async_context(overhead.running(system))
                    return Editor(client)

            yield cls(await asyncio.gather(*(start() for _ in range(n))))


class Straight:
    """See `Way`: the calls that our servers would make, without our servers."""

    # The mutable state is what is known of the server: who it is, what it refuses, how long it takes; it changes as it is asked.

    def __init__(
        self, settings: config.Endpoint, environ: Mapping[str, str], *, patience_s: float = ANSWER_S, greeting_s: float = ANSWER_S
    ) -> None:
        """`patience_s`: how long an ask waits for its answer; `greeting_s`: the first one."""
        self._patience_s = patience_s
        self._greeting_s = greeting_s
        self.usual_s = 0.0
        """What the answer to `greet` took."""
        self._address = address.parse(settings.url)
        key = keys.given(settings, environ, _ignore)
        self._transport = Transport(self._address, headers.build(settings, key, self._address.credentials), environ=environ)
        self._terms = Terms(settings, self._address, _ignore)
        self._model = settings.model
        self._known: tuple[Dialect, Identity] | None = None

    @property
    def base(self) -> str:
        """The address as it may be shown."""
        return self._address.base

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def ask(self, who: int, number: int) -> Told:  # noqa: ARG002 - one client for all
        """See `Way.ask`."""
        dialect, path, body, _ = await self._call(number)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._patience_s):
                status, said = await self._send(path, body)
        except TimeoutError:
            return Told((time.monotonic() - began) * 1e3, "late")
        except EngineError:
            return Told((time.monotonic() - began) * 1e3, "error")
        ms = (time.monotonic() - began) * 1e3
        return Told(ms, "error" if status != _OK else "text" if _has_text(dialect, said) else "empty")

    async def greet(self) -> str:
        """Find out what is spoken there and what is refused, and be answered once; the name of the API.  Raises an `EngineError`."""
        try:
            async with asyncio.timeout(self._greeting_s):
                name = await self._try()
        except TimeoutError:
            raise EngineUnavailableError(
                f"The server at {self.base} did not complete a line within {self._greeting_s:g} seconds: it is too slow to be measured.",
                remedy="`monkeycode doctor` says how fast it is.",
            ) from None
        if not name:
            raise EngineUnavailableError(
                f"The server at {self.base} does not complete code for us.", remedy="`monkeycode doctor` says why."
            )
        return name

    async def _try(self) -> str:
        """The name of the API, once a call has been answered; empty: none is."""
        for _ in range(_TRIES):
            dialect, path, body, call = await self._call(0)
            began = time.monotonic()
            status, said = await self._send(path, body)
            self.usual_s = time.monotonic() - began
            if status == _OK:
                return dialect.name
            if not self._terms.learn(call, status, said):
                break
        return ""

    async def _call(self, number: int) -> tuple[Dialect, str, bytes, Call]:
        if self._known is None:
            dialect = await self._terms.settle(self._fetch)
            identity = await dialect.identify(self._fetch, self._model)
            self._terms.identified(inserts=identity.inserts)
            self._known = dialect, identity
        dialect, identity = self._known
        dialect = self._terms.dialect or dialect
        lines = overhead.document(DOCUMENT_BYTES).splitlines(keepends=True)
        at = middle(lines)
        lines.insert(at, line(number) + "\n")
        snapshot = Snapshot("file:///w/load.py", "python", 1, lines, at, len(line(number)))
        rendered = prompt.render(windows.around(snapshot, config.Context()), (), identity.family, max_tokens=_MAX_TOKENS)
        call = calls.build(rendered, identity.model, may_insert=self._terms.may_insert, marks=dialect.marks).call
        return dialect, dialect.path(call), dialect.body(call, self._terms.without), call

    async def _fetch(self, path: str, body: bytes | None) -> bytes | None:
        status, said = await self._send(path, body)
        return said if status == _OK else None

    async def _send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        reply = await self._transport.send(path, body)
        try:
            return reply.status, await reply.body()
        finally:
            with suppress(EngineError):
                await reply.aclose()


def _has_text(dialect: Dialect, said: bytes) -> bool:
    parser = EventParser()
    events = said.splitlines() if dialect.lines else (*parser.feed(said), *parser.end())
    found = False
    for event in events:
        with suppress(msgspec.DecodeError):  # the last event is a word
            found = found or bool(dialect.read(event).text)
    return found


def _ignore(_words: str) -> None:
    """Our servers tell it."""
