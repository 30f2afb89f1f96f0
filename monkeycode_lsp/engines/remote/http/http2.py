"""Several requests at once over one connection: HTTP/2, by the state machine of `h2` over a wire of our own.

The HTTP library's own HTTP/2 never resets the stream of a request that was given up, so the server
computes on, and both sides soon disagree about how many streams are open.  Here giving up is one step
without a wait: the stream is reset, and the connection serves on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from time import monotonic

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from h2.errors import ErrorCodes

from monkeycode_lsp.engines.remote.http import faults
from monkeycode_lsp.engines.remote.http.failures import GoneError, SparedError, UnheardError
from monkeycode_lsp.engines.remote.http.http1 import IDLE_S
from monkeycode_lsp.engines.remote.http.turns import Turn
from monkeycode_lsp.engines.remote.http.wires import Wire

_WINDOW = 1_048_576
"""Bytes of one answer that the server may send before we have read any."""
_SETTINGS = {
    h2.settings.SettingCodes.ENABLE_PUSH: 0,
    h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW,
    h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
}
_PIECE = 65_536
QUIET_S = 1.0
"""After how long a silence of the server a stream that is given up casts doubt on its connection."""
_FRAME_HEAD, _DATA, _HEADERS, _GOAWAY = 9, 0, 1, 7
_MAX_IDLE_FRAMES = 10_000
"""Frames in a row that bring nothing of an answer: a server that sends more only keeps us busy."""

Headers = list[tuple[bytes, bytes]]


class Stream:
    """One request and its answer: what `http1.Exchange` is, by another way.

    The mutable state is what has arrived; it changes in its session's reader, `aiter_stream` and `aclose`.
    """

    def __init__(self, session: Session, number: int) -> None:
        self.number = number
        self.status = 0
        """0: the head is not there yet."""
        self.headers: Headers = []
        self.extensions = {"network_stream": session.wire}
        self.over = False
        self.error: Exception | None = None
        self.data: deque[tuple[bytes, int]] = deque()
        """Pieces, and what each counts in flow control."""
        self._session = session
        self._news = asyncio.Event()

    async def aiter_stream(self) -> AsyncGenerator[bytes, None]:
        """The body, as it arrives."""
        while True:
            while self.data:
                piece, n_counted = self.data.popleft()
                self._session.taken(self, n_counted)
                if piece:
                    yield piece
            if self.over:
                if self.error is not None:
                    raise self.error
                return
            await self.news()

    async def head(self) -> None:
        """Wait for the status."""
        while not self.status:
            if self.error is not None:
                raise self.error
            if self.over:
                raise faults.RemoteProtocolError
            await self.news()

    async def news(self) -> None:
        """Wait until something has changed."""
        self._news.clear()
        await self._news.wait()

    def wake(self) -> None:
        """Something has changed."""
        self._news.set()

    def end(self, error: Exception | None = None) -> None:
        """Nothing more will come."""
        if not self.over:
            self.over, self.error = True, error
        self.wake()

    async def aclose(self) -> None:
        """Give up what has not come yet."""
        self._session.drop(self)


class Session:
    """One connection.

    The mutable state is `h2`'s, the streams that are open, and whether the connection is good for more
    of them; it changes in the reader's task, `ask`, `taken` and `drop`, never across a wait.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.used_at = monotonic()
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
        self._h2.local_settings = h2.settings.Settings(client=True, initial_values=_SETTINGS)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(16 * _WINDOW)
        self._streams: dict[int, Stream] = {}
        self._unread = b""
        self._n_idle = 0
        """Frames since the last one that brought something."""
        self._leaving = False
        """The server takes no more requests here."""
        self._doubted_at = 0.0
        """Nothing but a sign of life after this makes the connection good again."""
        self._settled = asyncio.Event()
        self._served = False
        self._flush()
        self._reader = asyncio.create_task(self._read())

    @property
    def over(self) -> bool:
        return self.wire.over

    @property
    def idle(self) -> bool:
        return not self._streams

    @property
    def doubtful(self) -> bool:
        """Whether the server may have closed it as idle; see `http1`."""
        return self.idle and (self._served or monotonic() - self.used_at > IDLE_S)

    @property
    def is_shut(self) -> bool:
        """Whether the server lets no stream begin here, as long as it says nothing else."""
        return not self.over and not self._h2.remote_settings.max_concurrent_streams

    @property
    def has_room(self) -> bool:
        """Whether one more request may begin here."""
        trusted = self.wire.heard_at > self._doubted_at
        n_streams = self._h2.open_outbound_streams
        return trusted and not self.over and not self._leaving and n_streams < self._h2.remote_settings.max_concurrent_streams

    async def settled(self) -> None:
        """Wait until the server has said how many streams it takes."""
        await self._settled.wait()

    async def ask(self, head: Headers, body: bytes | None) -> Stream:
        """The answer, once its head is there.  Whoever is cancelled leaves a stream that is reset."""
        number = self._h2.get_next_available_stream_id()
        stream = self._streams[number] = Stream(self, number)
        try:
            self._h2.send_headers(number, head, end_stream=not body)
            self._flush()
            if body:
                await self._send(stream, body)
            await stream.head()
        except BaseException as exc:
            self.drop(stream)
            if isinstance(exc, h2.exceptions.TooManyStreamsError | h2.exceptions.NoAvailableStreamIDError):
                raise faults.NotAvailableError from exc
            if isinstance(exc, h2.exceptions.ProtocolError):
                raise faults.LocalProtocolError from exc
            raise
        self._served = True
        return stream

    def taken(self, stream: Stream, n_counted: int) -> None:
        """So much of what the server sent has been read: it may send as much more."""
        if n_counted and not self.over:
            self._h2.acknowledge_received_data(n_counted, stream.number)
            self._flush()

    def drop(self, stream: Stream) -> None:
        """Nobody waits for this stream any more."""
        if self._streams.pop(stream.number, None) is None:
            return
        self.used_at = monotonic()
        unread, stream.data = sum(n_counted for _, n_counted in stream.data), deque()
        was_over = stream.over
        stream.end(faults.RemoteProtocolError())
        if self.over:
            return
        self.taken(stream, unread)
        with suppress(h2.exceptions.ProtocolError):  # it had ended, or never began
            self._h2.reset_stream(stream.number, ErrorCodes.CANCEL)
        if not was_over and monotonic() - self.wire.heard_at > QUIET_S:
            self._h2.ping(b"monkeyc?")  # perhaps nobody is there any more: the answer to this tells
            self._doubted_at = monotonic()
        self._flush()
        if self._leaving and not self._streams:
            self.wire.abort()

    async def aclose(self) -> None:
        """End every stream and the connection."""
        if not self.over:
            self._h2.close_connection()
            self._flush()
        self.wire.abort()
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _send(self, stream: Stream, body: bytes) -> None:
        rest = memoryview(body)
        while rest and not stream.over:
            n_allowed = min(self._h2.local_flow_control_window(stream.number), self._h2.max_outbound_frame_size, len(rest))
            if n_allowed <= 0:
                await stream.news()
                continue
            piece, rest = rest[:n_allowed], rest[n_allowed:]
            self._h2.send_data(stream.number, bytes(piece), end_stream=not rest)
            self._flush()
            await self.wire.room()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if not self.over:
            self.wire.put(data)

    # What the server sends

    async def _read(self) -> None:
        error: Exception = faults.RemoteProtocolError()
        turn = Turn()
        try:
            while data := await self.wire.read(_PIECE):
                for frame in self._frames(data):
                    self._frame(frame)
                    await turn.end()
                self._flush()
            error = self._gone()
        except faults.NetworkError as exc:
            error = self._gone(*exc.args)
        except (h2.exceptions.H2Error, ValueError, IndexError) as exc:  # what it sent is not HTTP/2
            error.__cause__ = exc
        finally:
            self.wire.abort()
            self._settled.set()
            for stream in self._streams.values():
                stream.end(error)

    def _gone(self, *why: object) -> GoneError:
        return GoneError(*why) if self.wire.heard else UnheardError(*why)

    def _frames(self, data: bytes) -> Iterable[bytes]:
        data, start = self._unread + data, 0
        while len(data) - start >= _FRAME_HEAD:
            end = start + _FRAME_HEAD + int.from_bytes(data[start : start + 3])
            if end - start > _FRAME_HEAD + self._h2.max_inbound_frame_size:
                raise ValueError
            if len(data) < end:
                break
            yield data[start:end]
            start = end
        self._unread = data[start:]

    def _frame(self, frame: bytes) -> None:
        brings = frame[3] == _HEADERS or (frame[3] == _DATA and len(frame) > _FRAME_HEAD)
        self._n_idle = 0 if brings else self._n_idle + 1
        if self._n_idle > _MAX_IDLE_FRAMES:
            raise ValueError
        if frame[3] == _GOAWAY:  # `h2` would take nothing more after it, yet the streams that it spares go on
            self._go_away(last=int.from_bytes(frame[_FRAME_HEAD : _FRAME_HEAD + 4]) & 0x7FFFFFFF)
            return
        for event in self._h2.receive_data(frame):
            self._event(event)

    def _go_away(self, last: int) -> None:
        self._leaving = True
        for stream in self._streams.values():
            if stream.number > last:
                stream.end(SparedError())
        if not self._streams:
            self.wire.abort()

    def _event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RemoteSettingsChanged):
            self._settled.set()
        if isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for waiting in self._streams.values():
                waiting.wake()
            return
        number = getattr(event, "stream_id", None)
        stream = self._streams.get(number) if isinstance(number, int) else None
        if stream is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            fields = [(bytes(name), bytes(value)) for name, value in event.headers or ()]
            stream.headers = [(name, value) for name, value in fields if not name.startswith(b":")]
            stream.status = next((int(value) for name, value in fields if name == b":status"), 0)
            stream.wake()
        elif isinstance(event, h2.events.DataReceived):
            stream.data.append((event.data or b"", event.flow_controlled_length or 0))
            stream.wake()
        elif isinstance(event, h2.events.StreamEnded):
            stream.end()
        elif isinstance(event, h2.events.StreamReset):
            stream.end(SparedError() if event.error_code == ErrorCodes.REFUSED_STREAM else faults.RemoteProtocolError())
