"""A response: its head, and its body as it arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from monkeycode_lsp.engines.remote.http import head
from monkeycode_lsp.engines.remote.http.failures import translated
from monkeycode_lsp.engines.remote.http.turns import Turn
from monkeycode_lsp.engines.remote.http.unpacking import Unpacking
from monkeycode_lsp.errors import StreamBrokenError

MAX_BODY_BYTES = 1_048_576
_REFUSALS = 400
"""This status and those above it say no."""


class Response(Protocol):
    """What either version of HTTP gives once the head of a response has come."""

    status: int
    headers: list[tuple[bytes, bytes]]
    extensions: Any
    """`network_stream`: the wire."""

    def aiter_stream(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives."""
        ...

    async def aclose(self) -> None:
        """Give up what has not come yet."""
        ...


class Reply:
    """A response whose head has come.  Close it: that closes the connection, or resets the stream, if the body is not over."""

    def __init__(self, response: Response, base: str) -> None:
        self._headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        self.status = response.status
        self.retry_after = self._headers.get(b"retry-after", "")
        self._response = response
        self._base = base

    @property
    def head(self) -> head.Head:
        """What stands around the answer."""
        wire = self._response.extensions["network_stream"]
        tls = wire.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        return head.read(self.status, self._headers.get(b"date", ""), sockname=wire.get_extra_info("sockname"), certificate=certificate)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, unpacked where it was compressed."""
        coding = ", ".join(value.decode("latin-1") for name, value in self._response.headers if name.lower() == b"content-encoding")
        unpacking = Unpacking(self._base, coding) if coding else None
        turn = Turn()
        with translated(self._base):
            async with aclosing(self._response.aiter_stream()) as pieces:
                async for piece in pieces:
                    for unpacked in (piece,) if unpacking is None else unpacking.feed(piece):
                        if unpacked:
                            yield unpacked
                        await turn.end()
        if unpacking is not None:
            unpacking.end()

    async def body(self) -> bytes:
        """The whole body, as far as we are willing to hold it; of a refusal, as far as it came."""
        body = bytearray()
        try:
            async with aclosing(self.pieces()) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > MAX_BODY_BYTES:
                        break
        except StreamBrokenError:  # servers that will not read all of a request often break off after they have said why
            if self.status < _REFUSALS:
                raise
        return bytes(body)

    async def aclose(self) -> None:
        """See the class."""
        await self._response.aclose()
