"""Recording from an editor, and replaying in real time with real servers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

import pytest

from monkeycode_lsp.bench.replay import realtime
from monkeycode_lsp.bench.replay.load import load
from monkeycode_lsp.bench.replay.oracle import OracleEngine
from monkeycode_lsp.bench.replay.simulate import SYSTEMS
from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace
from tests import driver
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

URI = "file:///w/a.py"
SCRIPT = "x = [1, 2]\nfor y in x:\n    print(y)\n"


def recording(file):
    return [sys.executable, "-m", "monkeycode_lsp", "replay", "--record", str(file), "--stdio"]


async def type_script(lsp, uri=URI, text=SCRIPT):
    """One key after the other; the answer of the last ask."""
    lsp.open(uri, "# é\U0001f600\n")
    asked = None
    for char in text:
        at = lsp.position(uri, len(lsp.texts[uri]))
        lsp.change(uri, at, at, char)
        asked = lsp.ask(uri, *lsp.position(uri, len(lsp.texts[uri])), invoked=True)
    return await asyncio.wait_for(asked, 30)


async def saved(file, n_keys):
    """The recording, as soon as it has so many keys."""
    async with asyncio.timeout(20):
        while not (file.exists() and file.stat().st_size and len(json.loads(file.read_bytes())["txns"]) >= n_keys):  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.05)
    return load(file)


async def monkeycode(*arguments):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "monkeycode_lsp", *map(str, arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_a_recorded_session_is_served_as_usual_and_can_be_replayed(start, tmp_path):
    file = tmp_path / "typing.json"
    async with start(command=recording(file)) as scene:
        reply = await type_script(scene.lsp)
        assert [item["insertText"] for item in reply.items_] == ["ok"]
        assert await scene.lsp.shutdown() == 0
        text = scene.lsp.texts[URI]
    trace = load(file)
    assert (trace.start, trace.language, len(trace.keys)) == ("# é\U0001f600\n", "python", len(SCRIPT))
    assert json.loads(file.read_bytes())["endContent"] == text
    report = json.loads(await monkeycode("replay", file, "--json", "-"))
    assert report["setup"]["keys"] == len(SCRIPT)
    assert report["systems"][0]["rates"]["wrongHits"] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_recording_outlives_an_editor_that_kills_its_server(start, tmp_path, how):
    file = tmp_path / "typing.json"
    async with start(command=recording(file)) as scene:
        await type_script(scene.lsp)
        if how is signal.SIGKILL:
            await saved(file, len(SCRIPT))
        scene.lsp.process.send_signal(how)
        await asyncio.wait_for(scene.lsp.process.wait(), 20)
    assert len(load(file).keys) == len(SCRIPT)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob(".*")) == []


async def test_secrets_are_not_recorded(start, tmp_path):
    file = tmp_path / "typing.json"
    async with start(command=recording(file)) as scene:
        await type_script(scene.lsp, "file:///w/.env", "KEY=secret\n" * 9)
        await type_script(scene.lsp, URI, "a = 1\n")
        await scene.lsp.shutdown()
    assert b"secret" not in file.read_bytes()
    assert len(load(file).keys) == len("a = 1\n")


async def test_an_editor_that_counts_bytes_is_understood(start, tmp_path):
    file = tmp_path / "typing.json"
    capabilities = driver.VSCODE["capabilities"] | {"general": {"positionEncodings": ["utf-8"]}}
    async with start(command=recording(file), params=driver.VSCODE | {"capabilities": capabilities}) as scene:
        scene.lsp.open(URI, "é\U0001f600 = 1\n")
        scene.lsp.change(URI, (0, 6), (0, 6), "x")
        text = scene.lsp.texts[URI]
        await scene.lsp.settled()
        await scene.lsp.shutdown()
    assert text == "é\U0001f600x = 1\n"
    assert json.loads(file.read_bytes())["endContent"] == text


async def test_a_recording_that_cannot_be_written_is_told_before_anything_is_served(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *recording(tmp_path / "none" / "typing.json"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (1, b"")
    assert "Nothing can be written to" in err.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are those of Unix")
async def test_somebody_who_records_by_hand_is_told_what_to_put_into_the_editor(tmp_path):
    file = tmp_path / "typing.json"
    file.touch()
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *recording(file), stdin=theirs, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        lines = [(await asyncio.wait_for(process.stderr.readline(), 30)).decode() for _ in range(2)]
        process.terminate()
        await asyncio.wait_for(process.communicate(), 30)
    finally:
        os.close(ours)
        os.close(theirs)
    assert lines[0] == f"{file} exists already: typing-2.json is written instead.\n"
    assert "waits for an editor" in lines[1]
    assert f"cmd = {{ 'monkeycode', 'replay', '--record', '{file}' }}" in lines[1]


async def test_real_servers_are_replayed_in_real_time(tmp_path, home):
    file = tmp_path / "code.py"
    file.write_text("def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n")
    arguments = ("--synthetic", file, "--real-time", "--keys", 40, "--speed", 5, "--latency-ms", 40, "--q", 0.6, "--seed", 2)
    report = json.loads(await monkeycode("replay", *arguments, "--json", "-"))
    ours, naive, fixed = (system["rates"] for system in report["systems"])
    assert report["setup"]["mode"] == "real time"
    assert naive["requestsPerKey"] > 0.8  # a key that follows at once takes the one before back
    assert fixed["requestsPerKey"] < 1
    assert ours["requestsPerKey"] < naive["requestsPerKey"]
    assert naive["abortedPerKey"] > 0
    assert naive["freshPerKey"] > 0
    assert ours["freshPerKey"] > 0
    assert (ours["wrongHits"], ours["failed"]) == (0, 0)
    assert set(ours["freshByOrigin"]) <= {"engine", "adopted", "typed-through", "memory", "disk", "shared"}


async def test_progress_in_real_time_is_told_from_the_first_key_on(home):
    keys = tuple(Key(n / 20, (Patch(n, 0, "x"),)) for n in range(4))
    told = []

    def backend(oracle, _typed):
        return OracleEngine(oracle, latency_s=0.02)

    await realtime.replay(
        Trace("code.py", "python", "", keys), SYSTEMS[1:], backend, q=1.0, settings={}, slice_keys=3,
        progress=lambda done, of: told.append((done, of)),
    )  # fmt: skip
    assert told == [(n, 8) for n in range(9)]


async def test_an_engine_of_ones_own_can_answer(tmp_path, home):
    file = tmp_path / "code.py"
    file.write_text("def total(values):\n    return sum(values)\n")
    arguments = ("--synthetic", file, "--real-time", "--keys", 12, "--speed", 5, "--engine", "configured", "--systems", "naive,monkeycode")
    async with scenes.servers.CompletionServer(scenes.servers.reply("ok")) as completions:
        endpoint = json.dumps([{"url": completions.url, "model": scenes.MODEL, "api": "openai"}])
        report = json.loads(await monkeycode("replay", *arguments, "--setting", f"remote.endpoints={endpoint}", "--json", "-"))
    assert report["setup"]["engine"] == "configured"
    assert report["systems"][0]["rates"]["requestsPerKey"] > 0.5
    assert len(completions.requests) > 6
