"""One socket to a server, on asyncio's own transports.

Closing is done in the step that asks for it: a cancel, however often it comes, finds no place in between.
"""

from __future__ import annotations

import asyncio
import ssl
from time import monotonic
from typing import Any

from monkeycode_lsp.engines.remote.http import faults

_MUCH = 1_048_576
"""Bytes that may lie here unread before the sender is made to wait."""


class Wire(asyncio.Protocol):
    """One socket, encrypted already where it should be.

    The mutable state is where it leads, which who opens it knows, what has arrived and is not yet read, whether the connection is over, and who
    waits; it changes in asyncio's callbacks, `read`, `room`, `secure` and `abort`.
    """

    def __init__(self) -> None:
        self.over = False
        """Nothing more will arrive."""
        self.heard = False
        """Whether anything has arrived, since it is encrypted where it is."""
        self.heard_at = monotonic()
        """When something last arrived."""
        self.is_here = False
        """Whether the other end is the server itself, on this machine."""
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._error: Exception | None = None
        self._paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    @property
    def quiet(self) -> bool:
        """Whether the connection stands and nothing lies here unread: whoever has asked nothing must have been told nothing."""
        return not self.over and not self._buffer

    @property
    def sent(self) -> bool:
        """Whether everything that was handed over is on its way."""
        return self._transport is None or not self._transport.get_write_buffer_size()

    async def read(self, max_bytes: int) -> bytes:
        """What has arrived; empty at the end."""
        while not self._buffer:
            if self._error is not None:
                raise faults.ReadError(self._error)
            if self.over:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        if self._transport is not None and not self.over and len(self._buffer) < _MUCH:
            self._transport.resume_reading()
        return data

    def put(self, data: bytes) -> None:
        """Hand `data` over without waiting for room."""
        if self.over or self._transport is None:
            raise faults.WriteError
        if data:
            self._transport.write(data)

    async def room(self) -> None:
        """Wait until most of what was handed over is on its way."""
        while self._paused and not self.over:
            self._writer = self._writer or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._writer)

    async def secure(self, context: ssl.SSLContext, host: str, within_s: float) -> None:
        """Encrypt from here on.  Raises `OSError`, among them every error of TLS, or `ValueError` for a host that can be none."""
        if self._transport is None or not self.quiet:  # what was said in the clear must not pass for what comes encrypted
            raise ConnectionResetError
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(self._transport, self, context, server_hostname=host, ssl_handshake_timeout=within_s)
        except BaseException:
            self.abort()
            raise
        if secured is None:
            self.abort()
            raise ConnectionResetError
        self._transport, self.heard = secured, False

    def abort(self) -> None:
        """Close the socket now.  Nothing is flushed: whoever still waited for an answer wants it no more."""
        if self._transport is not None:
            self._transport.abort()
        self._ended(ConnectionAbortedError())

    def get_extra_info(self, info: str) -> Any:
        """What asyncio knows of the connection."""
        return None if self._transport is None else self._transport.get_extra_info(info)

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """There is a connection."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Something arrived."""
        self.heard, self.heard_at = True, monotonic()
        self._buffer += data
        if len(self._buffer) > _MUCH and self._transport is not None:
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """The other side is done; so are we."""
        self._ended(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._ended(exc)

    def pause_writing(self) -> None:
        """Too much waits to be sent."""
        self._paused = True

    def resume_writing(self) -> None:
        """There is room again."""
        self._paused = False
        _wake(self._writer)
        self._writer = None

    def _ended(self, error: Exception | None) -> None:
        if not self.over:
            self.over, self._error = True, error
            _wake(self._reader)
            _wake(self._writer)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
