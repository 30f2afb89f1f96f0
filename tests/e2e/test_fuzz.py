"""Whatever comes in: the server lives, every request id gets exactly one reply, and no traceback leaves it."""

import copy
import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.transport import Frames
from tests import driver

COMMAND = [
    sys.executable,
    "-m",
    "monkeycode_lsp",
    "serve",
    "--stdio",
    "--engine",
    "scripted",
    "--setting",
    "debounce.mode=off",
    "--setting",
    "scripted.delayMs=2",
]
URIS = ["file:///w/a.py", "file:///w/b.py", "untitled:Untitled-1", "vscode-notebook-cell:/w/n.ipynb#W0", "", "://", "file:///w/\ud800"]
NOTEBOOK = "file:///w/n.ipynb"
JUNK = [
    None, True, False, 0, -1, 1.5, 2**31, 2**63, -(2**63), 10**40, 1e308, "", "x", "x" * 5_000, "\ud800", "\0", "é😀測", [], {}, [[]], [None],
    {"": None}, {"line": -1, "character": -1}, {"start": {}, "end": {}},
]  # fmt: skip
KNOWN_ERRORS = {-32700, -32600, -32601, -32602, -32603, -32002, -32800}


def position(dice):
    return {"line": dice.choice([0, 1, 2, 99, -1, 2**31, 2**40]), "character": dice.choice([0, 1, 5, 99, -1, 2**32])}


def text(dice):
    return "".join(
        dice.choice(["a", " ", "\n", "\r", "\r\n", "é", "😀", "\u2028", "\x0c", "\ud800", "(", ")", "x = "])
        for _ in range(dice.randrange(30))
    )


def params_of(dice, method):
    """Well-formed parameters, before any mutation."""
    uri = dice.choice(URIS)
    document = {"uri": uri, "version": dice.randrange(100), "languageId": dice.choice(["python", "markdown"]), "text": text(dice)}
    change = dice.choice([{"text": text(dice)}, {"text": text(dice), "range": {"start": position(dice), "end": position(dice)}}])
    changes = [change] * dice.randrange(4)
    cell = {"kind": dice.choice([1, 2]), "document": dice.choice(URIS)}
    structure = {
        "array": {"start": dice.randrange(3), "deleteCount": dice.randrange(3), "cells": [cell]},
        "didOpen": [document],
        "didClose": [{"uri": uri}],
    }
    here = {"textDocument": {"uri": uri}, "position": position(dice)}
    return {
        "initialize": driver.VSCODE,
        "initialized": {},
        "textDocument/didOpen": {"textDocument": document},
        "textDocument/didChange": {"textDocument": {"uri": uri, "version": 3}, "contentChanges": changes},
        "textDocument/didClose": {"textDocument": {"uri": uri}},
        "textDocument/didSave": {"textDocument": {"uri": uri}},
        "textDocument/inlineCompletion": here | {"context": {"triggerKind": dice.choice([1, 2])}},
        "textDocument/completion": here | {"context": {"triggerKind": dice.choice([1, 2, 3])}},
        "textDocument/hover": here,
        "workspace/executeCommand": {"command": dice.choice(["monkeycode.why", "monkeycode.accepted", "x"]), "arguments": [dice.choice(JUNK)]},
        "workspace/didChangeConfiguration": {"settings": {"monkeycode": {"completion": {"maxTokens": dice.choice(JUNK)}, "enabled": True}}},
        "workspace/didChangeWorkspaceFolders": {"event": {"added": [{"uri": uri, "name": "n"}], "removed": [{"uri": "file:///w", "name": "w"}]}},
        "workspace/didChangeWatchedFiles": {"changes": [{"uri": uri, "type": 1}]},
        "notebookDocument/didOpen": {
            "notebookDocument": {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": [cell, cell]},
            "cellTextDocuments": [document],
        },
        "notebookDocument/didChange": {
            "notebookDocument": {"uri": NOTEBOOK, "version": 2},
            "change": {"cells": {"structure": structure, "textContent": [{"document": {"uri": uri, "version": 2}, "changes": changes}]}},
        },
        "notebookDocument/didClose": {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": uri}]},
        "window/workDoneProgress/cancel": {"token": dice.choice(["t", 1])},
        "$/cancelRequest": {"id": dice.randrange(3_000)},
        "$/setTrace": {"value": "verbose"},
        "$/progress": {"token": 1, "value": {}},
        "no/such/method": [1],
        "$/unknown": {},
    }[method]  # fmt: skip


REQUESTS = ["textDocument/inlineCompletion", "textDocument/completion", "textDocument/hover", "workspace/executeCommand", "no/such/method",
            "$/unknown", "initialize", "textDocument/didOpen", "$/cancelRequest", "initialized"]  # fmt: skip
NOTIFICATIONS = ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave", "textDocument/inlineCompletion",
                 "workspace/didChangeConfiguration", "workspace/didChangeWorkspaceFolders", "workspace/didChangeWatchedFiles",
                 "notebookDocument/didOpen", "notebookDocument/didChange", "notebookDocument/didClose", "window/workDoneProgress/cancel",
                 "$/cancelRequest", "$/setTrace", "$/progress", "no/such/method", "$/unknown", "initialized", "initialize"]  # fmt: skip


def mutated(dice, value):
    """A copy with one place changed, wherever it is."""
    value = copy.deepcopy(value)
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(value)
    if not places:
        return dice.choice(JUNK)
    node, key = dice.choice(places)
    if dice.random() < 0.3:
        del node[key]
    else:
        node[key] = copy.deepcopy(dice.choice(JUNK))
    return value


def frame(body):
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def odd_frames(dice):
    """Bytes that are no proper message, and after which the stream goes on properly."""
    valid = json.dumps({"jsonrpc": "2.0", "method": "$/unknown"}).encode()
    return dice.choice(
        [
            frame(b""), frame(b"{"), frame(b"\xff\xfe\x00"), frame(b"null"), frame(b"[]"), frame(b"3"), frame(b'"x"'), frame(b"{}"),
            frame(b"[" * 100_000), frame(b'{"a":' * 20_000), frame(b"\xef\xbb\xbf{}"), frame(b'{"jsonrpc":"2.0","method":3}'),
            frame(b'{"jsonrpc":"1.0","method":"x"}'), frame(b'{"jsonrpc":"2.0","result":1}'), frame(b'{"jsonrpc":"2.0","id":"x","error":7}'),
            frame(b'{"jsonrpc":"2.0","id":1.5,"method":"textDocument/hover"}'), frame(b'{"jsonrpc":"2.0","id":null,"method":"textDocument/hover"}'),
            frame(b'{"jsonrpc":"2.0","id":[1],"method":"textDocument/hover"}'), frame(b'{"jsonrpc":"2.0","id":NaN,"method":"x","params":Infinity}'),
            frame(b'[{"jsonrpc":"2.0","id":1,"method":"textDocument/hover"},{"jsonrpc":"2.0","id":2,"method":"x"}]'),
            frame(b'{"jsonrpc":"2.0","method":"\xc3\x28"}'), frame(valid + b"x"), frame(valid * 2),
            b"content-length: %d\r\ncontent-type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(valid) + valid,
            b"Content-Length:%d\nX-Odd: 1\r\n\r\n" % len(valid) + valid,
            b"Content-Length: -5\r\n\r\n", b"Content-Length: abc\r\n\r\n", b"Content-Length: \r\n\r\n", b"\r\n\r\n", b"garbage", b"\x00" * 50,
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"Content-Length: %d\r\n\r\n" % (len(valid) - 7) + valid,
        ]
    )  # fmt: skip


class Fuzz:
    """Sends messages and keeps count of the replies that are due."""

    def __init__(self, lsp, seed):
        self.lsp = lsp
        self.dice = random.Random(seed)  # noqa: S311 - dice, no secrets
        self.due = Counter()
        self.outbox = bytearray()
        self.number = 0
        self.ids = []

    def request(self, method, params, **more):
        self.number += 1
        msg_id = self.dice.choice([self.number, self.number, str(self.number), -self.number, f"é😀{self.number}", self.number % 7])
        self.due[json.dumps(msg_id)] += 1
        self.ids.append(msg_id)
        self.put(frame(json.dumps({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params} | more).encode()))

    def notification(self, method, params):
        self.put(frame(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()))

    def put(self, data):
        """Send in pieces that have nothing to do with the frames."""
        self.outbox += data
        if self.dice.random() < 0.3:
            cut = self.dice.randrange(len(self.outbox) + 1)
            self.lsp.send_raw(bytes(self.outbox[:cut]))
            del self.outbox[:cut]

    def flush(self):
        self.lsp.send_raw(bytes(self.outbox))
        self.outbox.clear()

    def any_message(self):
        dice = self.dice
        kind = dice.random()
        if kind < 0.15:
            self.put(odd_frames(dice))
            return
        if kind > 0.9 and self.ids:
            self.notification("$/cancelRequest", {"id": dice.choice(self.ids[-3:])})
            return
        method = dice.choice(REQUESTS if kind < 0.6 else NOTIFICATIONS)
        params = params_of(dice, method)
        for _ in range(dice.choice([0, 0, 1, 1, 2, 5])):
            params = mutated(dice, params)
        if kind < 0.6:
            self.request(method, params, **({"surprise": dice.choice(JUNK)} if dice.random() < 0.1 else {}))
        else:
            self.notification(method, params)

    async def settle(self):
        """Until every reply that is due has come; then nothing but those has."""
        self.flush()

        def replied():
            return Counter(json.dumps(reply["id"]) for reply in self.lsp.all_replies if reply["id"] is not None)

        await self.lsp.until(lambda: sum((self.due - replied()).values()) == 0, timeout=60)
        extra = replied() - self.due
        assert not extra, extra


def rss_kb(pid):
    status = Path(f"/proc/{pid}/status")
    return int(dict(line.split(":", 1) for line in status.read_text().splitlines())["VmRSS"].split()[0]) if status.exists() else 0


@pytest.mark.e2e
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_request_gets_one_reply_whatever_comes_in(home, seed):
    async with driver.server(home, initialize=False, command=COMMAND) as lsp:
        fuzz = Fuzz(lsp, seed)
        for _ in range(100):  # before `initialize` nothing but that is answered with a result
            method = fuzz.dice.choice([method for method in REQUESTS if method != "initialize"])
            fuzz.request(method, params_of(fuzz.dice, method))
            fuzz.notification("textDocument/didOpen", params_of(fuzz.dice, "textDocument/didOpen"))
        await fuzz.settle()
        assert {reply["error"]["code"] for reply in lsp.all_replies} == {-32002}

        fuzz.due['"start"'] += 1
        lsp.request("initialize", driver.VSCODE, "start")
        lsp.notify("initialized", {})
        for _ in range(400):
            fuzz.any_message()
        await fuzz.settle()
        warm = rss_kb(lsp.process.pid)
        for _ in range(2_000):
            fuzz.any_message()
        await fuzz.settle()
        assert rss_kb(lsp.process.pid) < warm + 40_000

        # It still does its work.
        lsp.notify("workspace/didChangeConfiguration", {"settings": {"monkeycode": {"enabled": True}}})
        fuzz.due['"alive"'] += 1
        lsp.open("file:///w/alive.py", "alive = ")
        reply = await lsp.ask("file:///w/alive.py", 0, 8, id_="alive")
        assert reply.items_[0]["insertText"] == "hello from monkeycode"

        fuzz.due['"shutdown"'] += 1
        await lsp.request("shutdown", None, "shutdown")
        n_before = len(lsp.all_replies)
        for _ in range(100):  # after `shutdown` everything is refused
            method = fuzz.dice.choice(REQUESTS)
            fuzz.request(method, params_of(fuzz.dice, method))
        await fuzz.settle()
        assert {reply["error"]["code"] for reply in lsp.all_replies[n_before:]} == {-32600}
        lsp.notify("exit", None)
        assert await lsp.process.wait() == 0

        for reply in lsp.all_replies:
            assert ("result" in reply) != ("error" in reply)
            if "error" in reply:
                assert reply["error"]["code"] in KNOWN_ERRORS
                assert "data" not in reply["error"]
                assert "Traceback" not in str(reply)
                assert 'File "' not in str(reply)
        for message in lsp.shown_messages:
            assert "Traceback" not in message


@pytest.mark.e2e
async def test_a_frame_beyond_every_measure_is_not_held_in_memory(home):
    async with driver.server(home, command=COMMAND) as lsp:
        await lsp.settled()
        before = rss_kb(lsp.process.pid)
        length = 300 * 1024 * 1024
        lsp.send_raw(b"Content-Length: %d\r\n\r\n" % length)
        for _ in range(length >> 20):
            lsp.send_raw(b" " * (1 << 20))
            await lsp.process.stdin.drain()
        await lsp.settled()
        assert rss_kb(lsp.process.pid) < before + 40_000


@pytest.mark.e2e
async def test_input_without_any_header_is_not_held_in_memory(home):
    async with driver.server(home, command=COMMAND) as lsp:
        await lsp.settled()
        before = rss_kb(lsp.process.pid)
        for _ in range(50):
            lsp.send_raw(b"x" * (1 << 20))
            await lsp.process.stdin.drain()
        lsp.send_raw(b"\r\n\r\n")
        await lsp.settled()
        assert rss_kb(lsp.process.pid) < before + 20_000


# The frames alone

BODIES = st.lists(st.binary(max_size=60), max_size=8)
GARBAGE = st.binary(max_size=40).filter(lambda data: b"\n" not in data and b"\r" not in data and b":" not in data)


def fed(data, cuts):
    frames, bodies, start = Frames(), [], 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        bodies += frames.feed(data[start:cut])
        start = cut
    return bodies


@given(BODIES, st.lists(st.integers(0, 600), max_size=20))
def test_every_way_to_cut_a_stream_gives_the_same_frames(bodies, cuts):
    assert fed(b"".join(map(frame, bodies)), cuts) == bodies


@given(BODIES, st.lists(st.integers(0, 900), max_size=20), st.data())
def test_garbage_between_frames_costs_no_frame(bodies, cuts, data):
    stream = b"".join(data.draw(GARBAGE) + frame(body) for body in bodies)
    assert fed(stream, cuts) == bodies


@given(st.lists(st.binary(max_size=300), max_size=10))
def test_no_bytes_break_the_frames(pieces):
    frames = Frames()
    for piece in pieces:
        frames.feed(piece)


@pytest.mark.parametrize(
    "header", [b"content-length: 2\r\n\r\n", b"Content-Type: a\r\nContent-Length:2 \r\n\r\n", b"CONTENT-LENGTH :  2\r\nX: 1\r\n\r\n"]
)
def test_headers_of_every_form_are_read(header):
    assert fed(header + b"{}", []) == [b"{}"]
