"""A small LSP client over the pipes of a child: for `monkeycode try`, for benchmarks, for whoever scripts the server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from monkeycode_lsp.transport import Frames

_encode = msgspec.json.encode
_decode = msgspec.json.decode

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
}


class ClientError(Exception):
    """The server answered with an error, or its output ended."""


class Client:
    """One running server.  Requests are awaited; what the server says by itself is kept in `messages`."""

    # The mutable state is the open requests and the messages seen; it changes as frames arrive.

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.messages: list[dict[str, Any]] = []
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._reader = asyncio.create_task(self._read())

    def send(self, message: Mapping[str, Any]) -> None:
        """One message as it is."""
        body = _encode({"jsonrpc": "2.0", **message})
        assert self.process.stdin is not None  # noqa: S101 - `start` made the pipe
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send now; the future holds the result.  The number serves to cancel."""
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._reader.done():
            future.set_exception(ClientError("The server has ended."))
            return number, future
        self._open[number] = future
        self.send({"id": number, "method": method, "params": params})
        return number, future

    async def call(self, method: str, params: Any) -> Any:
        """The result; raises `ClientError`."""
        return await self.request(method, params)[1]

    async def initialize(
        self, options: Mapping[str, Any], *, root_uri: str | None = None, capabilities: Mapping[str, Any] = CAPABILITIES
    ) -> Any:
        """Introduce ourselves; the server's answer."""
        params = {
            "processId": None,
            "clientInfo": {"name": "monkeycode"},
            "rootUri": root_uri,
            "capabilities": capabilities,
            "initializationOptions": options,
        }
        result = await self.call("initialize", params)
        self.notify("initialized", {})
        return result

    def open(self, uri: str, language: str, text: str) -> None:
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": 0, "text": text}})

    def insert(self, uri: str, version: int, line: int, character: int, text: str) -> None:
        at = {"line": line, "character": character}
        change = {"range": {"start": at, "end": at}, "text": text}
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})

    def ask(self, uri: str, line: int, character: int, *, invoked: bool = False) -> tuple[int, asyncio.Future[Any]]:
        """One inline-completion request."""
        params = {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": 1 if invoked else 2},
        }
        return self.request("textDocument/inlineCompletion", params)

    async def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - `start` made the pipe
        frames = Frames()
        while data := await self.process.stdout.read(65536):
            for body in frames.feed(data):
                self._took(_decode(body))
        for future in self._open.values():
            if not future.done():
                future.set_exception(ClientError("The server ended without an answer."))

    def _took(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.messages.append(message)
            if "id" in message:
                self.send({"id": message["id"], "result": None})
            return
        future = self._open.pop(message.get("id") or 0, None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(ClientError(message["error"].get("message", "error")))
        else:
            future.set_result(message.get("result"))

    async def close(self) -> None:
        """The polite end, then the firm one."""
        try:
            async with asyncio.timeout(5):
                await self.call("shutdown", None)
                self.notify("exit", None)
                await self.process.wait()
        except (TimeoutError, ClientError, ConnectionError):
            if self.process.returncode is None:
                self.process.kill()
            await self.process.wait()
        await self._reader


@asynccontextmanager
async def start(command: Sequence[str], *, env: Mapping[str, str] | None = None, stderr: int | None = None) -> AsyncIterator[Client]:
    """A running server; ended with the block."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=stderr, env=dict(env) if env is not None else None
    )
    client = Client(process)
    try:
        yield client
    finally:
        await client.close()
