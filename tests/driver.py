"""A raw-bytes LSP client with a text mirror of its own, for driving the real server over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")

VSCODE = {
    "processId": None,
    "clientInfo": {"name": "Visual Studio Code", "version": "1.139.1"},
    "rootUri": "file:///w",
    "workspaceFolders": [{"uri": "file:///w", "name": "w"}],
    "capabilities": {
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {"inlineCompletion": {"dynamicRegistration": False}, "completion": {"completionItem": {"snippetSupport": True}}},
        "workspace": {"configuration": False},
        "window": {"workDoneProgress": True},
    },
}


UNKNOWN = object()
"""As an answer: the client does not know the method."""


class ClosedError(Exception):
    """The server's output ended."""


class ImpureOutputError(Exception):
    """Something that is no frame came out of the server's standard output."""


class Reply(dict):
    """A response; `items` are its inline or menu items."""

    @property
    def items_(self):
        result = self.get("result")
        return [] if result is None else result["items"]


class Lsp:
    """One server process."""

    def __init__(self, process):
        self.process = process
        self.replies: dict[object, asyncio.Future] = {}
        self.all_replies: list[dict] = []
        self.notifications: list[dict] = []
        self.requests: list[dict] = []
        self.answers = {}
        self.stderr = bytearray()
        self.impure: ImpureOutputError | None = None
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.encoding = "utf-16"
        self._next = 0
        self._changed = asyncio.Condition()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    # Wire

    def send_raw(self, data: bytes):
        self.process.stdin.write(data)

    def send(self, message):
        body = json.dumps(message).encode()
        self.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method, params, id_=None):
        """Send now; await the returned future for the reply."""
        if id_ is None:
            self._next += 1
            id_ = self._next
        future = asyncio.get_running_loop().create_future()
        future.id = id_
        self.replies[id_] = future
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return future

    async def call(self, method, params, timeout=30):
        return await asyncio.wait_for(self.request(method, params), timeout)

    async def _read(self):
        ended: Exception = ClosedError()
        try:
            while True:
                await self._took(await self._frame())
        except asyncio.IncompleteReadError as exc:
            if exc.partial:
                ended = self.impure = ImpureOutputError(exc.partial)
        except ConnectionError:
            pass
        except ImpureOutputError as exc:
            ended = self.impure = exc
            self.process.stdin.close()
        for future in self.replies.values():
            if not future.done():
                future.set_exception(ended)
                future.exception()

    async def _frame(self):
        """One message.  Takes nothing but frames as this server writes them: strict on purpose."""
        header = await self.process.stdout.readuntil(b"\r\n\r\n")
        if not (match := _HEADER.fullmatch(header)):
            raise ImpureOutputError(header)
        body = await self.process.stdout.readexactly(int(match[1]))
        try:
            return json.loads(body.decode("utf-8"))
        except ValueError as exc:
            raise ImpureOutputError(body) from exc

    async def _took(self, message):
        async with self._changed:
            if "method" in message and "id" in message:
                self.requests.append(message)
                answer = self.answers.get(message["method"])
                if answer is UNKNOWN:
                    reply = {"error": {"code": -32601, "message": "no such method"}}
                else:
                    reply = {"result": answer(message.get("params")) if callable(answer) else answer}
                self.send({"jsonrpc": "2.0", "id": message["id"]} | reply)
            elif "method" in message:
                self.notifications.append(message)
            else:
                self.all_replies.append(message)
                future = self.replies.get(message.get("id"))
                if future is not None and not future.done():
                    future.set_result(Reply(message))
            self._changed.notify_all()

    async def _read_stderr(self):
        while data := await self.process.stderr.read(4096):
            self.stderr += data

    async def until(self, condition, timeout=20):
        """Wait until the messages so far fulfil `condition`."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), timeout)

    @property
    def shown_messages(self):
        return [note["params"]["message"] for note in self.notifications if note["method"] == "window/showMessage"]

    # Life

    async def initialize(self, params=None, options=None):
        params = json.loads(json.dumps(params or VSCODE))
        if options is not None:
            params["initializationOptions"] = options
        reply = await self.call("initialize", params)
        self.encoding = reply["result"]["capabilities"].get("positionEncoding", "utf-16")
        self.notify("initialized", {})
        return reply["result"]

    async def shutdown(self):
        """The polite end; returns the exit code."""
        await self.call("shutdown", None)
        self.notify("exit", None)
        return await asyncio.wait_for(self.process.wait(), 20)

    async def close(self):
        if self.process.returncode is None:
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), 10)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        for task in self._tasks:
            await asyncio.wait_for(task, 10)
        if self.impure is not None:
            raise self.impure

    def cancel(self, asked):
        """`$/cancelRequest` for a future of `request`."""
        self.notify("$/cancelRequest", {"id": asked.id})

    def configure(self, settings):
        """`workspace/didChangeConfiguration` with a pushed tree."""
        self.notify("workspace/didChangeConfiguration", {"settings": {"monkeycode": settings}})

    async def settled(self):
        """Everything sent so far has been dispatched."""
        await self.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [0]})

    async def why(self, n=1):
        """The newest outcomes, newest last."""
        return (await self.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [n]}))["result"]

    # Documents

    def open(self, uri, text, language="python"):
        self.texts[uri], self.versions[uri] = text, 0
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": 0, "text": text}})

    def change(self, uri, start, end, text):
        """One incremental edit; positions are (line, units)."""
        self.changes(uri, [(start, end, text)])

    def changes(self, uri, edits):
        """Edits of one notification; each is made in the text that the one before it left.  `(None, None, text)` is the whole text.

        They may come from a generator, which sees the text as it is by then.
        """
        events = []
        for start, end, text in edits:
            if start is None:
                self.texts[uri] = text
                events.append({"text": text})
                continue
            old = self.texts[uri]
            self.texts[uri] = old[: self.offset(uri, *start)] + text + old[self.offset(uri, *end) :]
            at = {name: {"line": line, "character": units} for name, (line, units) in (("start", start), ("end", end))}
            events.append({"range": at, "text": text})
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": events})

    def whole(self, uri, text):
        """Full-text synchronisation of one document."""
        self.changes(uri, [(None, None, text)])

    def close_document(self, uri):
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def offset(self, uri, line, units):
        text, at = self.texts[uri], 0
        for _ in range(line):
            while at < len(text) and text[at] not in "\r\n":
                at += 1
            at += 2 if text[at : at + 2] == "\r\n" else 1
        while units > 0 and at < len(text) and text[at] not in "\r\n":
            units -= self.units(text[at])
            at += 1
        return at

    def units(self, char):
        if self.encoding == "utf-8":
            return len(char.encode())
        return 2 if self.encoding == "utf-16" and ord(char) > 0xFFFF else 1

    def position(self, uri, offset):
        """(line, units) of an offset in the mirror."""
        text, line, start, at = self.texts[uri], 0, 0, 0
        while at < offset:
            if text[at : at + 2] == "\r\n":
                at += 2
            elif text[at] in "\r\n":
                at += 1
            else:
                at += 1
                continue
            if at <= offset:
                line, start = line + 1, at
        return line, sum(self.units(char) for char in text[start:offset])

    def ask(self, uri, line, units, *, invoked=False, selected=None, id_=None):
        context = {"triggerKind": 1 if invoked else 2}
        if selected is not None:
            context["selectedCompletionInfo"] = selected
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": units}, "context": context}
        return self.request("textDocument/inlineCompletion", params, id_)

    async def complete(self, uri, line=None, units=None, *, marked=None, language="python", timeout=30, **how):
        """Ask and return the insert text of the first item, or None.  `marked` opens a document with `‸` first."""
        if marked is not None:
            offset = marked.index("‸")
            self.open(uri, marked.replace("‸", ""), language)
            line, units = self.position(uri, offset)
        reply = await asyncio.wait_for(self.ask(uri, line, units, **how), timeout)
        assert "error" not in reply, reply
        self.last = reply
        return reply.items_[0]["insertText"] if reply.items_ else None

    def menu(self, uri, line, units, context=None):
        """Ask for the completion menu."""
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": units}}
        return self.request("textDocument/completion", params | ({"context": context} if context else {}))

    def apply(self, uri, item):
        """The document after the item's range is replaced by its text."""
        text, range_ = self.texts[uri], item["range"]
        a = self.offset(uri, range_["start"]["line"], range_["start"]["character"])
        b = self.offset(uri, range_["end"]["line"], range_["end"]["character"])
        return text[:a] + item["insertText"] + text[b:]


@asynccontextmanager
async def server(home: Path, *, options=None, initialize=True, params=None, env=None, command=None, cwd=None, settings_debounce=True):
    """A running server with a home of its own."""
    environ = {
        key: value for key, value in os.environ.items() if not key.startswith(("MONKEYCODE_", "HTTP", "http", "ALL_PROXY", "all_proxy"))
    }
    environ |= {"MONKEYCODE_HOME": str(home), "PYTHONUNBUFFERED": "1"} | (env or {})
    process = await asyncio.create_subprocess_exec(
        *(command or [sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio"]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
        cwd=cwd,
        limit=2**26,
    )
    client = Lsp(process)
    try:
        if initialize:
            base = {"debounce": {"mode": "off"}} if settings_debounce else {}
            await client.initialize(params, base | (options or {}))
        yield client
    finally:
        await client.close()
        # Shown by pytest when the test fails.
        print(client.stderr.decode(errors="replace"), file=sys.stderr)
