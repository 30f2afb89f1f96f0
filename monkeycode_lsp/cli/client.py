"""The smallest editor: starts the server as a child over stdio, opens documents and asks for suggestions.

Positions are sent in UTF-32, so that a column counts characters.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

import monkeycode_lsp
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.transport import Frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVE = (sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio", "--log-level", "error")

_READ_BYTES = 65_536
_PATIENCE_S = 60.0
_GOODBYE_S = 10.0
_TAIL_LINES = 5
_INVOKED = 1
_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
}


class ServerGoneError(MonkeyCodeError):
    """The server ended while something was asked of it."""


class Client:
    """One running server.

    The mutable state is the replies that are waited for, what the server told its user and the tail of
    what it logged; all of it changes in the two reading tasks.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._logged: deque[str] = deque(maxlen=_TAIL_LINES)
        self.messages: list[str] = []
        """What the server told its user, oldest first."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_log())]

    @property
    def pid(self) -> int:
        return self._process.pid

    async def call(self, method: str, params: Any, *, timeout_s: float = _PATIENCE_S) -> Any:
        """The result.  Raises `MonkeyCodeError` for an error reply, a late one, and a server that ended."""
        self._number += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[self._number] = reply
        try:
            if self._tasks[0].done():
                raise self._gone()
            self._send({"id": self._number, "method": method, "params": params})
            async with asyncio.timeout(timeout_s):
                return await reply
        except TimeoutError:
            raise MonkeyCodeError(f"The server did not answer {method} within {timeout_s:g} seconds.") from None
        finally:
            self._replies.pop(self._number, None)

    def notify(self, method: str, params: Any) -> None:
        """Tell the server something."""
        self._send({"method": method, "params": params})

    async def initialize(self, settings: Mapping[str, Any]) -> None:
        """Say hello; `settings` win over the user's own."""
        client = {"name": "monkeycode", "version": monkeycode_lsp.__version__}
        params = {"processId": os.getpid(), "clientInfo": client, "rootUri": None, "capabilities": _CAPABILITIES}
        await self.call("initialize", {**params, "initializationOptions": settings})
        self.notify("initialized", {})

    def open(self, uri: str, language: str, text: str) -> None:
        """Open a document."""
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": 0, "text": text}})

    async def suggest(self, uri: str, line: int, column: int) -> str:
        """What the server suggests at a place, with the editor's explicit key; empty: nothing."""
        context = {"triggerKind": _INVOKED}
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        result = await self.call("textDocument/inlineCompletion", {**place, "context": context})
        items = result["items"] if result else []
        return str(items[0]["insertText"]) if items else ""

    async def why(self, n: int = 1) -> list[dict[str, Any]]:
        """How the last asks ended, newest last."""
        answer = await self.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [n]})
        return list(answer or [])

    async def aclose(self) -> None:
        """The polite end, and the other one if it does not suffice."""
        with contextlib.suppress(MonkeyCodeError, TimeoutError, OSError):
            async with asyncio.timeout(_GOODBYE_S):
                await self.call("shutdown", None)
                self.notify("exit", None)
                await self._process.wait()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        await asyncio.gather(*self._tasks)

    def _send(self, message: dict[str, Any]) -> None:
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        frames, stream = Frames(), self._process.stdout
        while stream is not None and (data := await stream.read(_READ_BYTES)):
            for body in frames.feed(data):
                self._take(msgspec.json.decode(body))
        await asyncio.wait([self._tasks[1]])  # its last words
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(self._gone())

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if message["method"].startswith("window/showMessage"):
                self.messages.append(str(message["params"]["message"]).removeprefix("MonkeyCode: "))
            if "id" in message:
                self._send({"id": message["id"], "result": None})
            return
        reply = self._replies.get(message.get("id", 0))
        if reply is None or reply.done():
            return
        if "error" in message:
            reply.set_exception(MonkeyCodeError(f"The server said: {message['error'].get('message', 'an error')}"))
        else:
            reply.set_result(message.get("result"))

    async def _read_log(self) -> None:
        stream, rest = self._process.stderr, b""
        while stream is not None and (data := await stream.read(_READ_BYTES)):
            *lines, rest = (rest + data).split(b"\n")
            self._logged.extend(line.decode("utf-8", errors="replace").strip() for line in lines)
        self._logged.append(rest.decode("utf-8", errors="replace").strip())

    def _gone(self) -> ServerGoneError:
        said = next((line for line in reversed(self._logged) if line), "")
        return ServerGoneError("The server ended." + (f" It said: {said}" if said else ""), remedy="See `monkeycode doctor`.")


@asynccontextmanager
async def running(settings: Mapping[str, Any], *, command: tuple[str, ...] = SERVE) -> AsyncIterator[Client]:
    """A server that has been said hello to; gone afterwards."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    client = Client(process)
    try:
        await client.initialize(settings)
        yield client
    finally:
        await client.aclose()
