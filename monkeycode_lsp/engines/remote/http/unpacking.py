"""Compressed bodies, unpacked as they arrive: what a server has flushed comes through at once.

We ask for none; some servers and proxies compress all the same.  What is unpacked is handed on in
small pieces, so that a reader who has seen enough can stop a body that swells without end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError

_PIECE = 16_384
_GZIP = 0x1F
_SLICE = 64
"""Bytes of input at a time where the library cannot limit its output."""


class Unpacker(Protocol):
    """One body in one coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` unpacks to.  Raises an error of its library for garbage."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the body may end here."""
        ...


class Unpacking:
    """The codings of one body, outermost first.  The mutable state is the unpackers'."""

    def __init__(self, base: str, codings: str) -> None:
        """Raises an `EngineError` for a coding that we cannot unpack."""
        names = [name.strip().lower().removeprefix("x-") for name in codings.split(",")]
        self._base = base
        self._unpackers = [_make(base, name) for name in reversed(names) if name not in {"", "identity"}]
        self._empty = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bytes that `data` unpacks to, in small pieces; some are empty, where much was read for nothing.  Raises `StreamBrokenError`."""
        self._empty = self._empty and not data
        try:
            yield from self._through(data, 0)
        except Exception as exc:  # each library has errors of its own, and any of them means garbage
            raise StreamBrokenError(f"The server at {self._base} sent a compressed answer that cannot be unpacked.") from exc

    def end(self) -> None:
        """The body is over.  Raises `StreamBrokenError` if it was cut off."""
        if not self._empty and not all(unpacker.whole for unpacker in self._unpackers):
            raise StreamBrokenError(f"The server at {self._base} sent a compressed answer that is cut off.")

    def _through(self, data: bytes, level: int) -> Iterator[bytes]:
        if level == len(self._unpackers):
            yield data
            return
        for piece in self._unpackers[level].feed(data):
            yield from self._through(piece, level + 1)


def _make(base: str, name: str) -> Unpacker:
    makers: dict[str, Callable[[], Unpacker]] = {"gzip": _Zlib, "deflate": _Zlib, "br": _Brotli, "zstd": _Zstd}
    if name not in makers:
        raise StreamBrokenError(f"The server at {base} compresses its answers in a way that we do not know.")
    try:
        return makers[name]()
    except ImportError:
        package = {"br": "brotli", "zstd": "zstandard"}[name]
        raise EngineUnavailableError(
            f"The server at {base} compresses its answers, and the Python package `{package}` that unpacks them is not installed.",
            remedy=f"Install it (`pip install {package}`), or switch compression off at the server or the proxy before it.",
        ) from None


class _Zlib:
    """Gzip, zlib, and the bare deflate that some servers send under its name.  The mutable state is the library's."""

    def __init__(self) -> None:
        self._library = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is
        self._started = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._started and data:
            self._started = True
            if data[0] & 0x0F != zlib.DEFLATED and data[0] != _GZIP:  # neither of the two heads
                self._library = zlib.decompressobj(wbits=-15)
        full = False
        while data or full:
            if self._library.eof:  # one member after another
                self._library = zlib.decompressobj(wbits=47)
            piece = self._library.decompress(data, _PIECE)
            yield piece
            full = len(piece) == _PIECE and not self._library.eof
            data = self._library.unconsumed_tail or self._library.unused_data

    @property
    def whole(self) -> bool:
        return self._library.eof


class _Brotli:
    """The mutable state is the library's."""

    def __init__(self) -> None:
        import brotli  # noqa: PLC0415 - optional, and seldom needed

        self._library = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._library.process(data, output_buffer_limit=_PIECE)
        while not self._library.can_accept_more_data():
            yield self._library.process(b"", output_buffer_limit=_PIECE)

    @property
    def whole(self) -> bool:
        return bool(self._library.is_finished())


class _Zstd:
    """The mutable state is the library's."""

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 - optional, and seldom needed

        self._new = zstandard.ZstdDecompressor(max_window_size=8 * 1_048_576).decompressobj
        self._library = self._new()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _SLICE):
            part = data[start : start + _SLICE]
            while part:
                if self._library.eof:  # one frame after another
                    self._library = self._new()
                yield self._library.decompress(part)
                part = self._library.unused_data

    @property
    def whole(self) -> bool:
        return bool(self._library.eof)
