"""A hub on the loopback interface: redirects to a store of files, announces hashes, and fails as it is told."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class HubServer:
    """Serves `content` for every file.  The tests set the attributes below before they ask."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.announces = True
        self.announced_sha256 = ""
        self.redirects = True
        self.store_url = ""
        self.ranges = True
        self.tells_length = True
        self.range_shift = 0
        """Added to where a range was asked to begin."""
        self.statuses: list[int] = []
        """Answered first, one a request."""
        self.retry_after = ""
        self.cuts: list[int] = []
        """Bytes after which the next transfers are cut, one a transfer."""
        self.hold_after: int | None = None
        """Bytes after which a transfer waits for `release`."""
        self.hold_head = False
        self.release = threading.Event()
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def transfers(self) -> list[dict[str, str]]:
        """Headers of the requests that asked for the bytes."""
        return [headers for path, headers in self.asked if path.startswith("/store/")]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                hub.asked.append((self.path, dict(self.headers)))
                self.close_connection = True
                with contextlib.suppress(ConnectionError):  # the client went away, as some tests want
                    hub.answer(self)

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if self.hold_head:
            self.release.wait()
            return
        if self.statuses:
            self._status(handler, self.statuses.pop(0))
        elif handler.path.startswith("/store/"):
            self._store(handler, announce=False)
        elif self.redirects:
            handler.send_response(302)
            handler.send_header("Location", f"{self.store_url or self.url}/store/file")
            self._announce(handler)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        else:
            self._store(handler, announce=True)

    def _announce(self, handler: BaseHTTPRequestHandler) -> None:
        if self.announces:
            handler.send_header("X-Linked-ETag", f'"{self.announced_sha256 or hashlib.sha256(self.content).hexdigest()}"')
            handler.send_header("X-Linked-Size", str(len(self.content)))

    def _status(self, handler: BaseHTTPRequestHandler, status: int) -> None:
        handler.send_response(status)
        if self.retry_after:
            handler.send_header("Retry-After", self.retry_after)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _store(self, handler: BaseHTTPRequestHandler, *, announce: bool) -> None:
        total, start = len(self.content), 0
        wanted = re.match(r"bytes=(\d+)-", handler.headers.get("Range", "")) if self.ranges else None
        if wanted:
            start = max(0, int(wanted.group(1)) + self.range_shift)
            if start >= total:
                handler.send_response(416)
                handler.send_header("Content-Range", f"bytes */{total}")
                handler.send_header("Content-Length", "0")
                handler.end_headers()
                return
        handler.send_response(206 if wanted else 200)
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if announce:
            self._announce(handler)
        if self.tells_length:
            handler.send_header("Content-Length", str(total - start))
        handler.end_headers()
        end = start + self.cuts.pop(0) if self.cuts else total
        if self.hold_after is not None:
            handler.wfile.write(self.content[start : start + self.hold_after])
            handler.wfile.flush()
            self.release.wait()
            start += self.hold_after
        handler.wfile.write(self.content[start:end])
