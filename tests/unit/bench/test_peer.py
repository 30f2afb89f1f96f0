"""The overhead benchmark beside a peer: its settings, its table, and what is no such peer."""

from __future__ import annotations

import sys
import tomllib

import pytest

from monkeycode_lsp.bench import overhead, tabby
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.errors import MonkeyCodeError

PEER = """#!{python}
import json, os, pathlib, sys, tomllib, urllib.request

def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None

def ask(position):
    path = pathlib.Path(os.environ["HOME"], ".tabby-client", "agent", "config.toml")
    url = tomllib.loads(path.read_text())["server"]["endpoint"] + "/v1/completions"
    body = json.dumps({{"language": "python", "segments": {{"prefix": "x"}}}}, separators=(",", ":")).encode()
    with urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(url, body) as reply:
        return json.load(reply)["choices"][0]["text"]

while (message := read()) and message["method"] != "exit":
    if "id" in message:
        result = {{"capabilities": {{}}}}
        if message["method"] == "textDocument/completion":
            result = {{"isIncomplete": True, "items": [{{"label": ask(message["params"]["position"])}}]}}
        said = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(said) + said)
        sys.stdout.buffer.flush()
"""


@pytest.fixture
def peer(tmp_path):
    """A program that talks as the peer does."""
    program = tmp_path / "tabby-agent"
    program.write_text(PEER.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def spread(p50, p99):
    return Spread(100, p50, p50, p99)


def test_its_settings_keep_it_on_this_machine_and_without_a_wait(tmp_path):
    environ = tabby.prepare(tmp_path, "http://127.0.0.1:1")
    settings = tomllib.loads((tmp_path / ".tabby-client" / "agent" / "config.toml").read_text(encoding="utf-8"))
    assert environ["HOME"] == environ["USERPROFILE"] == str(tmp_path)
    assert settings["server"]["endpoint"] == "http://127.0.0.1:1"
    assert settings["completion"]["debounce"] == {"mode": "fixed", "interval": 0}
    assert settings["anonymousUsageTracking"]["disable"] is True


def test_ratios_are_ours_to_the_floor_and_to_the_peer_if_there_is_one():
    asks = {overhead.OURS: spread(2.0, 9.0), overhead.FLOOR: spread(2.0, 3.0)}
    without = {ratio.name: (ratio.value, ratio.ok) for ratio in overhead.ratios(asks)}
    assert without == {"ask / floor, p50": (1.0, True), "ask / floor, p99": (3.0, False)}
    beside = {ratio.name: (ratio.value, ratio.ok) for ratio in overhead.ratios(asks | {tabby.NAME: spread(8.0, 9.0)})}
    assert beside == without | {"ask / tabby-agent, p50": (0.25, True), "ask / tabby-agent, p99": (1.0, None)}


async def test_it_stands_in_the_same_table(peer):
    report = await overhead.run(rounds=1, n_asks=2, peer=peer)
    assert set(report.ask_ms) == {overhead.FLOOR, overhead.OURS, tabby.NAME}
    assert report.ask_ms[tabby.NAME].n == 2
    assert len(report.ratios) == 4


async def test_another_program_is_told_apart():
    with pytest.raises(MonkeyCodeError, match="does not complete code as tabby-agent does"):
        await overhead.run(rounds=1, n_asks=1, peer=sys.executable)
