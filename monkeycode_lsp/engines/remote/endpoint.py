"""One server: what it is, and how one completion is asked of it.

A pool puts several of these side by side; each knows nothing of the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp import config, threads
from monkeycode_lsp.domain import Chunk, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote import address, calls, facts, proofs, refusal
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.dialects.base import Call, Identity
from monkeycode_lsp.engines.remote.http import headers, keys
from monkeycode_lsp.engines.remote.http.head import Head
from monkeycode_lsp.engines.remote.knowledge import Knowledge
from monkeycode_lsp.engines.remote.loading import Loading
from monkeycode_lsp.engines.remote.pulse import Pulse
from monkeycode_lsp.engines.remote.stream import reading
from monkeycode_lsp.engines.remote.stream.answer import Answer
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.engines.remote.stream.relay import Relay
from monkeycode_lsp.engines.remote.terms import Notify, Terms
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineFaultError,
    EngineRefusedError,
    EngineUnavailableError,
    StreamBrokenError,
)

if TYPE_CHECKING:
    from monkeycode_lsp.engines.remote.http.reply import Reply
    from monkeycode_lsp.engines.remote.http.transport import Transport

SLOW_S = 1.0
"""A failure that takes longer to find out is worth a rest at once."""

_FORMER = 8
_OK = range(200, 300)
_REFUSED = 400
_STREAMING = frozenset({"stream", "stream_options"})
_NO_SUCH_ROUTE = frozenset({404, 405, 501})
_SETTINGS_AT_FAULT = frozenset({401, 403, *_NO_SUCH_ROUTE})
"""Refusals that the next key press will get too."""


class _ReplacedError(EngineBusyError):
    """Who answers is another one now; whoever asks next finds out, so there is nothing to wait for."""


class _Begun(msgspec.Struct, frozen=True):
    """An answer whose head has come."""

    reply: Reply
    call: Call
    answer: Answer


class Endpoint:
    """One server.

    The mutable state is its transport, its identity once it is known, the window that an overflow taught us, the terms on which
    it completes, which document has which of its slots, the load that it waits for, and its rest after failures.
    """

    def __init__(
        self,
        settings: config.Endpoint,
        *,
        limits: Limits,
        http2: bool = False,
        notify: Notify,
        environ: Mapping[str, str],
        proved: proofs.Apply = proofs.apply,
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._http2 = http2
        self._environ = environ
        self.address = address.parse(settings.url)
        self._terms = Terms(settings, self.address, notify)
        self._knowledge = Knowledge(self._terms, base=self.address.base, model=settings.model, proved=proved)
        self._key = keys.given(settings, environ, notify)
        self._where = refusal.Where(
            self.address.base,
            settings.model,
            has_key=bool(self._key or settings.api_keyring or self.address.credentials),
            key_env=settings.api_key_env,
        )
        self._transport: Transport | None = None
        self._limit_tokens: int | None = None
        self._n_accepted = 0
        """Tokens of the longest prompt that it has answered: its window is not smaller."""
        self._fingerprints: list[str] = []
        """Of what it was taken for so far, the present one last: a prompt that was made for another one is not for this one."""
        self.backoff = Backoff(time.monotonic)
        self._relay = Relay()
        self._pulse = Pulse(self.address.base, self._look, notify=notify)
        self._loading = Loading()
        self._lock = asyncio.Lock()
        self._asks_plainly = True

    async def ready(self) -> Model:
        """Which model answers here.  Asks the server once, and again after it was away, for what the settings leave open."""
        self._pulse.check()
        identity = await self._identify()
        if self.backoff.left_s <= 0:
            await self._open()
            self.keep_warm()  # the server may have closed its connection meanwhile, and an ask is coming
        name, window = identity.model or self.address.base, self._limit_tokens or identity.context_tokens
        here = self._transport is not None and self._transport.is_here and not facts.is_passed_on(identity.model)
        return Model(name, identity.family, self._fingerprints[-1], window, is_here=here, tells_confidence=self._terms.tells_confidence)

    def keep_warm(self) -> None:
        """An ask is likely: see to it that a connection lies ready, in the background."""
        if self._transport is not None:
            self._transport.warm()

    def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        """The answer; see `Engine.stream`."""
        return self._relay.stream(self._generate(asked))

    async def healthy(self) -> bool:
        """Whether `/health` says that the server is ready now.  Takes no notice of rests."""
        status, _, _ = await self._exchange("/health", None)
        return status in _OK

    async def look(self, path: str) -> bytes | None:
        """What the server says at another path; None: nothing of the kind.  Takes no notice of rests."""
        try:
            said = await self._fetch(path, None)
        except (EngineUnavailableError, asyncio.CancelledError):  # it is away, or hangs until nobody waits any more
            self._knowledge.doubt()
            raise
        self._pulse.heard()
        return said

    @property
    def terms(self) -> Terms:
        """On which it completes, as far as is known."""
        return self._terms

    @property
    def api(self) -> str:
        """The word of the setting `api` for what it speaks; empty: not known yet."""
        return self._terms.dialect.name if self._terms.dialect else ""

    @property
    def marks(self) -> bool:
        """Whether prompts with a model's markers are given to it, as far as is known."""
        return self._terms.dialect is None or self._terms.dialect.marks

    @property
    def model(self) -> str:
        """The model's name at the server; empty: it has none, or is not known yet."""
        return self._knowledge.model

    async def inspect(self, path: str, body: bytes | None) -> Head:
        """What stands around an answer that is read to its end.  Takes no notice of rests."""
        try:
            async with asyncio.timeout(self._limits.first_s):
                reply = await (await self._open()).send(path, body)
                try:
                    head = reply.head
                    await reply.body()
                    return head
                finally:
                    await reply.aclose()
        except TimeoutError:
            raise self._too_late() from None

    async def aclose(self) -> None:
        """Stop every stream and close every connection."""
        await self._relay.aclose()
        await self._pulse.aclose()
        await self._loading.aclose()
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    # Who answers

    async def _identify(self) -> Identity:
        before = self._knowledge.identity
        if before is not None and self._knowledge.is_certain:
            return before
        self.backoff.check()
        start = time.monotonic()
        try:
            identity = await self._knowledge.ask(self._fetch, within_s=self._limits.first_s)
        except TimeoutError:
            error = self._too_late()
            self._failed(error, start)
            raise error from None
        except EngineError as exc:
            self._failed(exc, start)
            if isinstance(exc, EngineRefusedError):
                self.backoff.failed(exc)
            raise
        self._where = msgspec.structs.replace(self._where, model=identity.model)
        self._note_fingerprint(identity)
        if before is None or before.model != identity.model:
            self._limit_tokens, self._n_accepted = None, 0
            self._load(identity)
        return identity

    async def _look(self) -> None:
        if await self._fetch("/health", None) is None:
            await self._fetch("/v1/models", None)

    async def _fetch(self, path: str, body: bytes | None) -> bytes | None:
        status, retry_after, content = await self._exchange(path, body)
        if status in _NO_SUCH_ROUTE:
            return None
        if status not in _OK:
            raise refusal.by_status(self._where, status, content, path=path, retry_after=retry_after)
        return content

    async def _exchange(self, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        reply = await (await self._open()).send(path, body)
        try:
            return reply.status, reply.retry_after, await reply.body()
        finally:
            await reply.aclose()

    # One answer

    async def _generate(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        identity = await self._identify()
        if asked.model in self._fingerprints[:-1]:
            raise self._replaced()
        refusal.check_place(asked, identity.model)
        self._pulse.check()
        self.backoff.check()
        self._pulse.asked()
        start = time.monotonic()
        begun = False
        try:
            async with aclosing(self._ask(asked, identity)) as chunks:
                async for chunk in chunks:
                    begun = True
                    self._pulse.answered()
                    if chunk.usage is not None:
                        self._accepted(chunk.usage)
                    self.backoff.succeeded()
                    yield chunk
        except EngineError as exc:
            if isinstance(exc, ContextOverflowError):
                self._overflowed(exc)
            self._failed(exc, start)
            self._pulse.heard()
            raise
        finally:
            if not begun:
                self._pulse.given_up()
            if not begun and time.monotonic() - start > SLOW_S:  # perhaps the model is not loaded any more
                self._load(identity)

    def _overflowed(self, error: ContextOverflowError) -> None:
        if error.limit_tokens is not None and error.limit_tokens > self._n_accepted:
            self._limit_tokens = error.limit_tokens

    def _accepted(self, usage: Usage) -> None:
        self._n_accepted = max(self._n_accepted, (usage.reused or 0) + (usage.read or 0))
        if self._limit_tokens is not None and self._n_accepted > self._limit_tokens:
            self._limit_tokens = None  # what we took for its window was something else

    async def _ask(self, asked: Prompt, identity: Identity) -> AsyncGenerator[Chunk, None]:
        form: frozenset[str] | None = frozenset()
        while form is not None:
            without, form = form, None
            begun: _Begun | None = None
            try:
                async with asyncio.timeout(self._limits.first_s) as limit:
                    begun = await self._begin(asked, identity, without)
                    async with aclosing(reading.read(begun.reply, begun.answer, limit, self._limits)) as chunks:
                        async for chunk in chunks:
                            yield chunk
            except TimeoutError:
                if begun is None or not begun.answer.whole:
                    raise (
                        refusal.stalled(self._where, self._limits.stall_s)
                        if begun is not None and begun.answer.n_text
                        else self._too_late()
                    ) from None
            except (StreamBrokenError, EngineRefusedError) as exc:
                form = self._other_form(exc, begun, without) if begun is not None else None
                if form is None and (begun is None or isinstance(exc, EngineRefusedError) or not begun.answer.whole):
                    raise
            if form is None and begun is not None and not begun.answer.done:  # it is whole, only its last formalities are missing
                yield begun.answer.conclude()

    def _other_form(self, error: EngineError, begun: _Begun, without: frozenset[str]) -> frozenset[str] | None:
        """Without what it should be asked once more; None: there is no other form."""
        answer = begun.answer
        if isinstance(error, StreamBrokenError):
            # Some servers say nothing at all in place of a refusal; without a stream they say why.
            if without:
                self._asks_plainly = False  # this one does not: once is enough
            return _STREAMING if answer.is_silent and not without and self._asks_plainly else None
        learned = answer.refused is not None and self._terms.learn(begun.call, _REFUSED, answer.refused)
        return without if learned else None

    async def _begin(self, asked: Prompt, identity: Identity, without: frozenset[str]) -> _Begun:
        """The reply to the first form of the call that the server takes."""
        first: EngineError | None = None
        while True:
            dialect = await self._terms.settle(self._fetch)
            slot = self._knowledge.slots.of(asked.session)
            built = calls.build(asked, identity.model, may_insert=self._terms.may_insert, marks=dialect.marks, slot=slot)
            path = dialect.path(built.call)
            reply = await (await self._open()).send(
                path, dialect.body(built.call, self._terms.without | without), stays_here=asked.stays_here
            )
            if reply.status in _OK:
                self._terms.works(self._where, is_cut=built.is_cut)
                answer = Answer(dialect, self._where, stops=asked.stop, restore=built.restore, sent=built.call.sent)
                return _Begun(reply, built.call, answer)
            try:
                content = await reply.body()
            finally:
                await reply.aclose()
            error = refusal.by_status(self._where, reply.status, content, path=path, retry_after=reply.retry_after, sent=built.call.sent)
            first = first or error
            if not self._terms.learn(built.call, reply.status, content):
                self._terms.failed()
                raise self._doubted(built.call, reply.status, content) or self._noted(
                    reply.status, first if reply.status in _NO_SUCH_ROUTE else error
                )

    # Connections and failures

    async def _open(self) -> Transport:
        if self._transport is None:
            async with self._lock:
                if self._transport is None:
                    key = self._key or (await keys.from_keyring(self._settings.api_keyring) if self._settings.api_keyring else "")
                    self._transport = await threads.run("remote settings", lambda: self._connect(key))
        return self._transport

    def _connect(self, key: str) -> Transport:
        from monkeycode_lsp.engines.remote.http import tls  # noqa: PLC0415 - reads the list of public authorities
        from monkeycode_lsp.engines.remote.http.transport import Transport  # noqa: PLC0415 - imports the HTTP library: slow, so only when needed and on a thread

        return Transport(
            self.address,
            headers.build(self._settings, key, self.address.credentials),
            trust=tls.trust(self._settings),
            http2=self._http2,
            environ=self._environ,
        )

    def _noted(self, status: int, error: EngineError) -> EngineError:
        if status in _SETTINGS_AT_FAULT:
            self.backoff.failed(error)
        return error

    def _doubted(self, call: Call, status: int, body: bytes) -> EngineError | None:
        """What it had may be gone because another server, or another model, is there by now: the next ask finds out."""
        if status not in _NO_SUCH_ROUTE or (self._settings.model and not self._terms.is_open):
            return None
        self._knowledge.doubt()
        if refusal.about_model(status, body, sent=call.sent) and not self._settings.model:
            return self._replaced()
        return None

    def _replaced(self) -> EngineError:
        return _ReplacedError(f"The server at {self._where.base} serves another model now.")

    def _note_fingerprint(self, identity: Identity) -> None:
        family = f"{identity.family.name}/{identity.family.order}" if identity.family else ""
        fingerprint = f"remote:{self.api}:{self.address.base}:{identity.model}:{family}{headers.digest(self._settings.headers)}"
        self._fingerprints = [*(known for known in self._fingerprints[-_FORMER:] if known != fingerprint), fingerprint]

    def _failed(self, error: EngineError, start: float) -> None:
        if isinstance(error, EngineUnavailableError | StreamBrokenError) and not isinstance(error, EngineFaultError):
            self._knowledge.doubt()
        if isinstance(error, EngineUnavailableError | EngineBusyError) and not isinstance(error, _ReplacedError):
            self.backoff.failed(error, slow=time.monotonic() - start > SLOW_S)

    def _load(self, identity: Identity) -> None:
        if identity.load is not None:
            self._loading.begin(partial(self._exchange, *identity.load))

    def _too_late(self) -> EngineError:
        if self._loading.is_going_on:
            return EngineBusyError(f"The server at {self._where.base} is still loading its model.")
        return refusal.too_late(self._where, self._limits.first_s)
