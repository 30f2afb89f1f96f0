"""The bytes of one answer → chunks.  Pure: it is handed bytes and the news that the connection was closed.

An answer is whole only if the server said so: a finish reason, or `[DONE]`.  Everything else ends in an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import msgspec

from monkeycode_lsp.domain import Chunk, Finish, Usage
from monkeycode_lsp.engines.remote import refusal
from monkeycode_lsp.engines.remote.dialects.base import Dialect, Piece
from monkeycode_lsp.engines.remote.sse import MAX_EVENT_BYTES, EventParser, EventTooLongError
from monkeycode_lsp.engines.remote.stopping import StopStrings
from monkeycode_lsp.errors import StreamBrokenError

logger = logging.getLogger(__name__)

MAX_ANSWER = 262_144
"""Characters; no limit of tokens that can be set comes near."""


class Answer:
    """One answer while it arrives.

    The mutable state is the parser's, what kind of body it is, and what has been seen so far; it
    changes in `feed`, `close` and `conclude` only.
    """

    def __init__(self, dialect: Dialect, where: refusal.Where, *, stops: Iterable[str], restore: Callable[[str], str]) -> None:
        self.n_events = 0
        self.n_bytes = 0
        self.n_text = 0
        """Characters of text, those held back included."""
        self.done = False
        """Nothing of what still comes is of interest."""
        self.cut = False
        """Done because of a stop string on our side: the server does not know it yet."""
        self._dialect = dialect
        self._where = where
        self._stops = StopStrings(stops)
        self._restore = restore
        self._parser = EventParser()
        self._document: bytearray | None = None
        self._sniffed = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None

    @property
    def whole(self) -> bool:
        """Whether the server has said that the answer is complete; usage may still come."""
        return self.done or self._finish is not None

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that `data` completes.  Raises an `EngineError`."""
        self.n_bytes += len(data)
        if self.done:
            return
        if not self._sniffed:
            data = self._sniff(data)
        if self._document is not None:
            self._document += data
            if len(self._document) > MAX_EVENT_BYTES:
                raise self._broken("sent more than a completion can hold")
            return
        try:
            for event in self._parser.feed(data):
                yield from self._event(event)
        except EventTooLongError:
            raise self._broken("sent a line without end") from None

    def close(self) -> Iterator[Chunk]:
        """The connection was closed in good order: the last chunk, or an error if the answer is not whole."""
        if self.done:
            return
        if self._document is not None:
            yield from self._whole_document(bytes(self._document))
            return
        for event in self._parser.end():
            yield from self._event(event)
        if self.done:
            return
        if self._finish is None and self.n_bytes and not self.n_events:
            raise refusal.strange(self._where)
        if self._finish is None:
            raise self._broken("closed the connection before its answer was complete")
        yield self.conclude()

    def conclude(self) -> Chunk:
        """The last chunk of a whole answer."""
        self.done = True
        text = "" if self.cut else self._stops.rest()
        self.n_text += len(text)
        if self._finish is Finish.LENGTH and not self.n_text:
            raise refusal.overflowed_silently(self._where)
        return Chunk(self._restore(text), finish=self._finish or Finish.STOP, usage=self._usage)

    def _sniff(self, data: bytes) -> bytes:
        """Streams begin with a field's name or a colon, documents with a bracket: that tells more than their type does."""
        data = data.lstrip()
        if data:
            self._sniffed = True
            if data[:1] in (b"[<" if self._dialect.lines else b"{[<"):
                self._document = bytearray()
        return data

    def _event(self, data: bytes) -> Iterator[Chunk]:
        if self.done:
            return
        self.n_events += 1
        if data.strip() == b"[DONE]":
            yield self.conclude()
            return
        try:
            piece = self._dialect.read(data)
        except msgspec.DecodeError:
            logger.debug("an event of %d bytes from %s cannot be read", len(data), self._where.base)
            raise self._broken("sent a piece that cannot be read") from None
        if piece.answer:
            yield from self._piece(piece)

    def _piece(self, piece: Piece) -> Iterator[Chunk]:
        if piece.error is not None:
            raise refusal.by_error_object(self._where, piece.error)
        self._usage = piece.usage or self._usage
        if piece.text:
            self.n_text += len(piece.text)
            if self.n_text > MAX_ANSWER:
                raise self._broken("does not stop")
            text, self.cut = self._stops.feed(piece.text)
            if text:
                yield Chunk(self._restore(text), logprob=piece.logprob, n_tokens=piece.n_tokens, usage=self._usage)
        if self.cut:
            self._finish = Finish.STOP
            yield self.conclude()
            return
        if piece.broken:
            raise self._broken("gave up in the middle of its answer")
        self._finish = piece.finish or self._finish
        if piece.last:
            yield self.conclude()

    def _whole_document(self, document: bytes) -> Iterator[Chunk]:
        """A server that does not stream."""
        if document.startswith(b"<"):
            raise refusal.strange(self._where, page=True)
        try:
            piece = self._dialect.read(document)
        except msgspec.DecodeError:
            raise refusal.strange(self._where) from None
        if not piece.answer:
            raise refusal.strange(self._where)
        yield from self._piece(piece)
        if not self.done:
            yield self.conclude()

    def _broken(self, what: str) -> StreamBrokenError:
        return StreamBrokenError(f"The server at {self._where.base} {what}.")
