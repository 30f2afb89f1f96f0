"""One request after another over one connection: HTTP/1.1, by the state machine of `h11` over a wire of our own.

A connection serves again only if the server has said what it was asked for and not a byte more: what
lies there beyond the end of an answer would be taken for the answer to the next request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import monotonic

import h11

from monkeycode_lsp.engines.remote.http import faults
from monkeycode_lsp.engines.remote.http.failures import GoneError, SparedError, UnheardError
from monkeycode_lsp.engines.remote.http.wires import Wire

_PIECE = 16_384
_MAX_HEAD = 102_400
"""Bytes of a head, or of one line between chunks."""
_MAX_HINTS = 32
"""Answers before the answer (103 and its like); no honest server sends more than a few."""
IDLE_S = 1.0
"""A connection that has lain longer than this may have been closed by the server as idle, though we have not heard of it yet."""

Headers = list[tuple[bytes, bytes]]


class Connection:
    """One connection.

    The mutable state is `h11`'s, whether a request is under way, whether one ever was, and when the last
    one ended; it changes in `claim`, `ask` and `settle`.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.used_at = monotonic()
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        self.busy = False
        self._served = False

    @property
    def idle(self) -> bool:
        """Whether it is good for a request."""
        return not self.busy and self.wire.quiet

    @property
    def doubtful(self) -> bool:
        """Whether the server may have closed it as idle, so that a request which gets no answer need not have reached anybody."""
        return self._served or monotonic() - self.used_at > IDLE_S

    def claim(self) -> None:
        """Keep it for the request that comes next."""
        self.busy = True

    async def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes | None) -> Response:
        """The answer, once its head is there.  Whoever is cancelled leaves a connection that is closed."""
        if self.wire.over and not self.wire.heard:  # else it may have said why
            raise SparedError
        try:
            data = self._written(method, target, headers, body)
            if not self.wire.over:
                self.wire.put(data)
            return Response(self, await self._head())
        except BaseException:
            self.wire.abort()
            raise

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        """What comes next of an answer."""
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as exc:
                raise faults.RemoteProtocolError from exc
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # a sentinel is a type of its own that does not narrow
            self._h11.receive_data(await self._read())

    def settle(self) -> None:
        """The answer is over, or nobody wants the rest: keep the connection if it can serve again, else close it."""
        if not self.busy:
            return
        is_over = self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE
        if is_over and not self._h11.trailing_data[0] and self.wire.quiet and self.wire.sent:
            self._h11.start_next_cycle()
            self.busy, self._served, self.used_at = False, True, monotonic()
        else:
            self.wire.abort()

    def _written(self, method: bytes, target: bytes, headers: Headers, body: bytes | None) -> bytes:
        events: list[h11.Event] = [h11.Data(data=body)] if body else []
        try:
            events.insert(0, h11.Request(method=method, target=target, headers=headers))
            return b"".join(self._h11.send(event) or b"" for event in (*events, h11.EndOfMessage()))
        except h11.LocalProtocolError:  # its text may hold a header's value
            raise faults.LocalProtocolError from None

    async def _head(self) -> h11.Response:
        for _ in range(_MAX_HINTS):
            event = await self.event()
            if isinstance(event, h11.Response):
                return event
        raise faults.RemoteProtocolError

    async def _read(self) -> bytes:
        is_unanswered = self._h11.their_state in {h11.IDLE, h11.SEND_RESPONSE} and not self._h11.trailing_data[0]
        try:
            data = await self.wire.read(_PIECE)
        except faults.ReadError as exc:
            if is_unanswered:
                raise self._gone(*exc.args) from exc
            raise
        if not data and is_unanswered:
            raise self._gone()
        return data

    def _gone(self, *why: object) -> GoneError:
        return GoneError(*why) if self.wire.heard else UnheardError(*why)


class Response:
    """One answer whose head has come; see `reply.Response`.  Its state is its connection's."""

    def __init__(self, connection: Connection, head: h11.Response) -> None:
        self.status = head.status_code
        self.headers: Headers = list(head.headers)
        self.extensions = {"network_stream": connection.wire}
        self._connection: Connection | None = connection

    async def aiter_stream(self) -> AsyncGenerator[bytes, None]:
        """The body, as it arrives."""
        while self._connection is not None:
            event = await self._connection.event()
            if not isinstance(event, h11.Data):
                return
            yield bytes(event.data)

    async def aclose(self) -> None:
        """Give up what has not come yet."""
        connection, self._connection = self._connection, None  # which may serve another request from here on
        if connection is not None:
            connection.settle()
