"""An HTTP proxy on loopback: tunnels and forwards to one server, whatever name is asked for.

async with Proxy(server.port) as proxy:
    ...  # with HTTPS_PROXY=proxy.url
    assert proxy.asked == ["CONNECT models.example:443"]
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Self


class Proxy:
    """`answer`: what it says instead of letting anybody through; `password`: the value of `Proxy-Authorization` that it wants."""

    def __init__(self, port: int, *, answer: bytes = b"", password: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        """Method and target of each request."""
        self.told: list[dict[str, str]] = []
        """The headers of each."""
        self._port = port
        self._answer = answer
        self._password = password
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._pass(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # it is over
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(1)
        if not head.isalpha():  # a TLS greeting, for example
            return
        head += await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, target, version = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.asked.append(f"{method} {target}")
        self.told.append(headers)
        if self._answer or headers.get("proxy-authorization", "") != self._password:
            writer.write(self._answer or b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = "/" + target.split("/", 3)[3]
            server_writer.write(head.replace(first.encode(), f"{method} {path} {version}".encode(), 1))
        try:
            await asyncio.gather(_pipe(reader, server_writer), _pipe(server_reader, writer))
        finally:
            server_writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
