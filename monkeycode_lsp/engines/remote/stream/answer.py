"""The bytes of one answer → chunks.  Pure: it is handed bytes and the news that the connection was closed.

An answer is whole only if the server said so: a finish reason, `[DONE]`, or one document from beginning to end.
Everything else ends in an error.
What comes after the finish reason can only add figures: it changes no text, and no fault in it undoes the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import msgspec

from monkeycode_lsp.domain import Chunk, Finish, Usage
from monkeycode_lsp.engines.remote import refusal
from monkeycode_lsp.engines.remote.dialects.base import Dialect, Piece
from monkeycode_lsp.engines.remote.stream.sse import BOM, MAX_EVENT_BYTES, EventParser, EventTooLongError, LostEventError
from monkeycode_lsp.engines.remote.stream.stopping import StopStrings
from monkeycode_lsp.errors import EngineError, EngineRefusedError, StreamBrokenError

logger = logging.getLogger(__name__)

MAX_ANSWER = 262_144
"""Characters; no limit of tokens that can be set comes near."""

MAX_SILENT_BYTES = 4 * MAX_EVENT_BYTES
"""Bytes in a row that hold no text: hours of signs of life, but only a moment of a stream that swells when it is unpacked."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes raise that are no event of the dialect's; the last one if brackets are nested thousands deep."""


class Answer:
    """One answer while it arrives.

    The mutable state is the parser's, what kind of body it is, and what has been seen so far; it
    changes in `feed`, `close` and `conclude` only.
    """

    def __init__(
        self,
        dialect: Dialect,
        where: refusal.Where,
        *,
        stops: Iterable[str],
        restore: Callable[[str], str],
        sent: tuple[str, ...] = (),
    ) -> None:
        """`sent`: the user's own text, which a server may repeat when it complains."""
        self.n_events = 0
        self.n_text = 0
        """Characters of text, those held back included."""
        self.done = False
        """Nothing of what still comes is of interest."""
        self.is_silent = True
        """Not a byte has come."""
        self.refused: bytes | None = None
        """The error object that came in place of an answer, before any text."""
        self.cut = False
        """Done because of a stop string on our side: the server does not know it yet."""
        self._n_silent = 0
        """Bytes since the last text."""
        self._dialect = dialect
        self._where = where
        self._stops = StopStrings(stops)
        self._restore = restore
        self._sent = sent
        self._parser = EventParser()
        self._head: bytes | None = b""
        self._document: bytearray | None = None
        self._is_completion = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._n_tokens = 0
        self._logprob: float | None = None
        """Of the tokens whose text was not given on yet."""

    @property
    def whole(self) -> bool:
        """Whether the server has said that the answer is complete; usage may still come."""
        return self.done or self._finish is not None

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that `data` completes.  Raises an `EngineError`."""
        if self.done:
            return
        self.is_silent = self.is_silent and not data
        self._n_silent += len(data)
        if self._n_silent > MAX_SILENT_BYTES:
            raise self._broken("sends much and says nothing")
        if self._head is not None:
            data = self._sniff(self._head + data)
        if self._document is None:
            yield from self._events(data)
            return
        self._document += data
        if len(self._document) > MAX_EVENT_BYTES:
            raise self._broken("sent more than a completion can hold")

    def close(self) -> Iterator[Chunk]:
        """The connection was closed in good order: the last chunk, or an error if the answer is not whole."""
        if self.done:
            return
        if self._document is not None:
            yield from self._whole_document(bytes(self._document))
            return
        yield from self._events(self._head or b"", is_end=True)
        if self.done:
            return
        if self._finish is None:
            raise self._none() or self._broken("closed the connection before its answer was complete")
        yield self.conclude()

    def conclude(self) -> Chunk:
        """The last chunk of a whole answer."""
        self.done = True
        text = "" if self.cut else self._stops.rest()
        if self._finish is Finish.LENGTH and not self.n_text:
            raise self._empty()
        return Chunk(self._restore(text), finish=self._finish or Finish.STOP, usage=self._usage)

    def _sniff(self, head: bytes) -> bytes:
        """Streams begin with a field's name or a colon, documents with a bracket: that tells more than their type does."""
        data = head.removeprefix(BOM).lstrip()
        if not data or BOM.startswith(data):
            self._head = data  # it is not certain yet
            return b""
        self._head = None
        if data.startswith(b"<"):
            raise refusal.strange(self._where, page=True)
        if data.startswith(b"[") or (data.startswith(b"{") and not self._dialect.lines):
            self._document = bytearray()
        return data

    def _events(self, data: bytes, *, is_end: bool = False) -> Iterator[Chunk]:
        try:
            for event in self._parser.feed(data):
                yield from self._event(event)
            if is_end:
                for event in self._parser.end():
                    yield from self._event(event)
        except EventTooLongError:
            raise self._broken("sent a line without end") from None
        except LostEventError:
            if not self.whole:
                raise self._none() or self._unreadable(data) from None

    def _event(self, data: bytes) -> Iterator[Chunk]:
        if self.done or data == b"null":
            return
        if data.strip() == b"[DONE]":
            none = None if self.whole else self._none()
            if none is not None:
                raise none
            yield self.conclude()
            return
        self.n_events += 1
        try:
            piece = self._read(data)
        except _UNREADABLE:
            if self.whole:
                return
            if data[:16].lstrip(b' "[').lower().startswith(b"error"):
                raise refusal.by_error_object(self._where, msgspec.json.encode(data.decode("utf-8", "replace")), sent=self._sent) from None
            raise self._unreadable(data) from None
        if piece.answer:
            yield from self._piece(piece)

    def _read(self, data: bytes) -> Piece:
        if not data.isascii():
            data.decode()  # fields of other names are skipped unread, and a damaged name is another name
        return self._dialect.read(data)

    def _piece(self, piece: Piece) -> Iterator[Chunk]:
        self._usage = piece.usage or self._usage
        if self._finish is None:
            if piece.error is not None:
                self.refused = None if self.n_text else piece.error
                raise refusal.by_error_object(self._where, piece.error, sent=self._sent)
            self._is_completion = True
            self._n_tokens += piece.n_tokens
            if piece.logprob is not None:
                self._logprob = (self._logprob or 0.0) + piece.logprob
            if piece.text and (chunk := self._said(piece)) is not None:
                yield chunk
            if piece.broken and not self.cut:
                raise self._broken("gave up in the middle of its answer")
            self._finish = Finish.STOP if self.cut else piece.finish
        if self.cut or piece.last:
            yield self.conclude()

    def _said(self, piece: Piece) -> Chunk | None:
        self.n_text += len(piece.text)
        self._n_silent = 0
        if self.n_text > MAX_ANSWER:
            raise self._broken("does not stop")
        text, self.cut = self._stops.feed(piece.text)
        if not text:
            return None
        chunk = Chunk(self._restore(text), logprob=self._logprob, n_tokens=self._n_tokens, usage=self._usage)
        self._n_tokens, self._logprob = 0, None
        return chunk

    def _whole_document(self, document: bytes) -> Iterator[Chunk]:
        """A server that does not stream."""
        try:
            piece = self._read(document)
        except _UNREADABLE:
            yield from self._one_a_line(document)
            return
        if not piece.answer:
            raise refusal.strange(self._where)
        yield from self._piece(piece)
        if not self.done:
            yield self.conclude()

    def _one_a_line(self, document: bytes) -> Iterator[Chunk]:
        """Bare objects: most often the first one is an error."""
        if b"\n" in document.strip():
            yield from self._events(document, is_end=True)
        if not self.whole:
            raise refusal.strange(self._where) from None
        if not self.done:
            yield self.conclude()

    def _empty(self) -> EngineError:
        if self._usage is not None and self._usage.generated:
            return EngineRefusedError(
                f"The model at {self._where.base} used up its whole answer without saying anything: it seems to think first.",
                remedy="Choose a code model that does not, or switch its thinking off on the server.",
            )
        return refusal.overflowed_silently(self._where)

    def _none(self) -> EngineError | None:
        """The error if what came is no completion at all."""
        if self._is_completion or not (self.n_events or self._parser.is_strange):
            return None
        return refusal.strange(self._where)

    def _unreadable(self, data: bytes) -> StreamBrokenError:
        logger.debug("a piece of %d bytes from %s cannot be read", len(data), self._where.base)
        return self._broken("sent a piece that cannot be read")

    def _broken(self, what: str) -> StreamBrokenError:
        return StreamBrokenError(f"The server at {self._where.base} {what}.")
