"""Server-sent events out of raw bytes, however the network cuts them.  Pure.

Only LF, CRLF and CR end a line: U+2028 and its like are ordinary letters of a JSON string.  Data stays
bytes, so that a character can never be cut: whole events are decoded by whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

MAX_EVENT_BYTES = 1_048_576
"""No honest event of a completion comes near; what is longer would only fill our memory."""

BOM = b"\xef\xbb\xbf"
_NOISE = frozenset({b"", b"id", b"retry"})
"""Fields that we do not need; a comment is one without a name."""


class EventTooLongError(ValueError):
    """One line or event is longer than we are willing to hold."""


class LostEventError(ValueError):
    """A line that no stream has holds an object, or the rest of one: an event was damaged on its way."""


class EventParser:
    """Feed it bytes, get the data of the events that they complete.

    The mutable state is the unfinished line, the unfinished event's data lines and whether it is an error,
    whether the last byte was a CR whose LF may still come, and what kind of lines there were; it changes in
    `feed` and `end` only.  What a server marks as an error by a field's or an event's name comes as `{"error": …}`, like the others.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.is_strange = False
        """There were lines that no stream has."""
        self._max = max_event_bytes
        self._line: list[bytes] = []
        self._n_line = 0
        self._data: list[bytes] = []
        self._n_data = 0
        self._is_error = False
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Data of each event that `piece` completes, in order.  Events without data are skipped."""
        for line in self._lines(piece):
            if line.startswith(b"{"):
                yield line  # a bare object: some servers drop the field's name, above all for errors
            elif line:
                self._field(line)
            else:
                yield from self._event()

    def end(self) -> Iterator[bytes]:
        """The event that only lacks its closing blank line: many servers forget it after the last one."""
        last = b"".join(self._line) if self._begun else b"".join(self._line).removeprefix(BOM)
        self._line, self._n_line = [], 0
        if last.startswith(b"{"):
            yield last
        elif last:
            self._field(last)
        yield from self._event()

    def _lines(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = piece.split(b"\n")
        rest = lines.pop()
        if lines and self._line:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line, self._n_line = [], 0
        if rest:
            self._line.append(rest)
            self._n_line += len(rest)
            if self._n_line > self._max:
                raise EventTooLongError
        if lines and not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(BOM)
        return lines

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name != b"data":
            if name in (b"event", b"error"):
                self._is_error = self._is_error or name == b"error" or value == b"error"
            elif name not in _NOISE:
                self._strange(line)
            if name != b"error":
                return
        elif value.startswith(b"data:"):
            value = value[5:]  # servers whose framework puts the field's name before what has it already
        self._n_data += len(value)
        if self._n_data > self._max:
            raise EventTooLongError
        self._data.append(value)

    def _strange(self, line: bytes) -> None:
        self.is_strange = True
        if b"{" in line or b"}" in line:
            raise LostEventError

    def _event(self) -> Iterator[bytes]:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        is_error = self._is_error
        self._data, self._n_data, self._is_error = [], 0, False
        if data.strip():
            yield _as_error(data) if is_error else data


def _as_error(data: bytes) -> bytes:
    try:
        said = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        said = data.decode("utf-8", "replace")
    if said is None or (isinstance(said, dict) and said.get("error") is not None):
        return data  # no error after all, or it has its usual form
    return msgspec.json.encode({"error": said if isinstance(said, str) else msgspec.Raw(data)})
