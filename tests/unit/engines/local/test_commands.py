"""`monkeycode engine status | stop | log` with a process that runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.host import control

LINGERS = Local(linger_seconds=600)


async def monkeycode(*arguments):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "monkeycode_lsp", "engine", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    out, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode(), errors.decode()


async def test_where_nothing_runs_that_is_said_and_no_error():
    assert await monkeycode("status") == (0, "No engine process runs.\n", "")
    assert await monkeycode("status", "--json") == (0, "[]\n", "")
    assert await monkeycode("stop", "--all") == (0, "No engine process runs.\n", "")
    code, out, _ = await monkeycode("log")
    assert (code, "has written a log" in out) == (0, True)


async def test_the_status_is_told_to_people_and_to_programs(engine, prompt, say, model):
    asked = engine(settings=LINGERS)
    await say(asked, prompt())
    pid = asked._tenant.running.link.pid
    code, out, _ = await monkeycode("status", "--json")
    [told] = json.loads(out)
    assert code == 0
    assert (told["pid"], told["engine"], told["model"], told["path"]) == (pid, "native", model.name, str(model))
    assert told["name"] == "stub Q0"
    assert (told["answers"], told["windows"], told["running"], told["totals"]["generated"]) == (True, 1, 0, 3)
    assert told["memoryBytes"] is None or told["memoryBytes"] > 1_000_000
    _, out, _ = await monkeycode("status")
    head, row, _, done, counts, meaning = (line.split() for line in out.splitlines())
    assert head == ["pid", "engine", "up", "memory", "windows", "asks", "model"]
    assert (row[:2], row[-3:]) == ([str(pid), "native"], ["1", "0", model.name])
    assert (done, counts[0], counts[3]) == (["pid", "reused", "read", "written", "drafts"], str(pid), "3")
    assert {f"{word}" for word in done[1:]} <= set(meaning)


async def test_the_log_shows_the_last_lines_and_says_where_they_are_from(engine, prompt, say, home):
    asked = engine(settings=LINGERS, prints=100)
    await say(asked, prompt())
    code, out, errors = await monkeycode("log", "-n", "1")
    assert code == 0
    assert str(home / "state") in errors
    assert out.splitlines()[-1].endswith("Python prints too")


async def test_stop_ends_the_process_and_says_so(engine, prompt, say, empty):
    asked = engine(settings=LINGERS)
    await say(asked, prompt())
    pid = asked._tenant.running.link.pid
    assert await monkeycode("stop") == (0, f"The native engine process {pid} (model.gguf) has left.\n", "")
    assert not control.is_running(pid)
    await empty()


async def test_of_several_processes_one_must_be_named(engine, prompt, say, empty):
    one, other = engine(settings=LINGERS, pause_s=0.001), engine(settings=LINGERS)
    await say(one, prompt())
    await say(other, prompt())
    first, second = (asked._tenant.running.link.pid for asked in (one, other))
    code, _, errors = await monkeycode("stop")
    assert code != 0
    assert str(first) in errors
    assert str(second) in errors
    code, out, _ = await monkeycode("stop", str(first))
    assert (code, str(first) in out) == (0, True)
    assert control.is_running(second)
    code, _, errors = await monkeycode("stop", str(first))
    assert (code != 0, str(first) in errors) == (True, True)
    os.kill(second, signal.SIGSTOP)
    code, out, _ = await monkeycode("stop", "--all")
    assert (code, "was ended" in out) == (0, True)
    assert not control.is_running(second)
    await empty()
