"""The index process: it ends with its server, gives way, and comes back."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys

import msgspec
import pytest

from monkeycode_lsp.index import wire
from tests.unit.index.workspaces import NEVER, is_running, window, write

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and signals are a matter of POSIX")

SERVER = """
import asyncio, pathlib, sys
from monkeycode_lsp.index.client import Index

async def main():
    index = Index(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), ignore_files=(), warn=print, heard=lambda s: print(s.state, index.pid, flush=True))
    index.start()
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def top(tmp_path):
    write(tmp_path / "work", {f"m{number}.py": f"def f{number}(): pass\n" for number in range(50)})
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cache" / "index"


async def gone(pid):
    """Wait until there is no such process."""
    async with asyncio.timeout(30):
        while is_running(pid):  # noqa: ASYNC110 - another process's child: nobody tells
            await asyncio.sleep(0.02)


@posix
@pytest.mark.parametrize("state", ["indexing", "ready"])
async def test_it_ends_when_its_server_is_killed(top, store, state):
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, str(top), str(store), stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        said, pid = "", "0"
        while said != state:
            said, pid = (await server.stdout.readline()).decode().split()
    assert is_running(int(pid))
    server.kill()
    await server.wait()
    await gone(int(pid))


async def test_it_is_gone_when_the_index_is_closed(top, store):
    async with window(top, store) as index:
        await index.ready()
        pid = index.pid
        assert is_running(pid)
    assert not is_running(pid)


@posix
async def test_one_that_waits_for_another_window_ends_as_well(top, store):
    async with window(top, store) as first:
        await first.ready()
        async with window(top, store) as second:
            await second.until(lambda: second.states)
            assert second.states[-1].state == "waiting"
            pid = second.pid
        assert not is_running(pid)


@posix
async def test_it_gives_way_and_a_terminal_cannot_interrupt_it(top, store):
    async with window(top, store) as index:
        await index.ready()
        assert os.getpriority(os.PRIO_PROCESS, index.pid) >= 15
        assert os.getpgid(index.pid) == index.pid


@posix
async def test_it_is_started_again_when_it_dies(top, store):
    async with window(top, store) as index:
        await index.ready()
        before = index.pid
        os.kill(before, signal.SIGKILL)
        await index.until(lambda: index.states[-1].state == "ready" and index.pid != before)
        write(top, {"new.py": "def new(): pass\n"})
        await index.comes(["new.py:new"], "new")
        assert index.warned == []


async def test_a_process_that_dies_again_and_again_is_given_up(top, store):
    died = [sys.executable, "-c", "import sys; sys.exit(3)"]
    async with window(top, store, command=died, pauses_s=(0.0, 0.0)) as index:
        await index.until(lambda: index.states and "again and again" in index.states[-1].why)
        assert index.status().state == "off"
        assert await index.find("f1") == []
        index.changed([top / "m1.py"])


async def test_no_such_program(top, store):
    async with window(top, store, command=[str(top / "none")]) as index:
        await index.until(lambda: index.states)
        assert index.status().state == "off"
        assert "cannot be started" in index.status().why


def test_what_is_printed_is_no_message(top, store):
    """Nothing but messages goes to standard output, and a line that is none harms nothing."""
    begin = json.dumps({"type": "begin", "folder": _base64(top), "database": _base64(store / "x.db")})
    process = subprocess.Popen(
        [sys.executable, "-c", "import os; os.write(1, b'noise\\n'); from monkeycode_lsp.index import worker; print('x'); worker.main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        process.stdin.write(begin.encode() + b"\n")
        process.stdin.flush()
        states = []
        for line in process.stdout:
            if line.startswith(b"{"):
                states.append(json.loads(line)["state"])
            if states[-1:] == ["ready"]:
                break
        process.stdin.write(b"what is this\n")
        process.stdin.flush()
        assert process.wait(30) == 0
    assert states == ["indexing", "ready"]


@posix
async def test_a_file_on_which_it_dies_twice_is_left_out(top, store, tmp_path):
    """A parser may crash; here the process kills itself when it reads that file."""
    write(top, {"m10.py": "def killer(): pass\n"})
    deadly = (
        "import os, sys, signal\n"
        "from monkeycode_lsp.index import indexer, worker\n"
        "extract = indexer.extraction.extract\n"
        "def deadly(text, language):\n"
        "    if 'killer' in text: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return extract(text, language)\n"
        "indexer.extraction.extract = deadly\n"
        "worker.main()\n"
    )
    async with window(top, store, command=[sys.executable, "-c", deadly], pauses_s=(0.0,) * 4) as index:
        await index.ready()
        assert [state.state for state in index.states].count("off") == 2
        assert sorted(await index.find(*(f"f{number}" for number in range(50)))) == sorted(f"m{n}.py:f{n}" for n in range(50) if n != 10)
        write(top, {"m10.py": "def harmless(): pass\n"})
        await index.comes(["m10.py:harmless"], "harmless")


async def test_many_changes_at_once_are_all_found(top, store):
    async with window(top, store, pace=NEVER) as index:
        await index.ready()
        index.changed([top / f"m{number}.py" for number in range(50)] * 200)
        write(top, {f"n/n{number}.py": f"def g{number}(): pass\n" for number in range(200)})
        await index.until(lambda: index.states[-1].files == 250)
        assert await index.find("g199") == ["n/n199.py:g199"]


def test_messages_are_one_line_each():
    for message in (wire.Begin(b"/a\n\xff", b"/b"), wire.Changed(("a\nb",)), wire.Rebuild(), wire.State("ready"), wire.Notice("a\nb")):
        line = msgspec.json.encode(message)
        assert b"\n" not in line
        assert msgspec.json.decode(line, type=type(message)) == message


def _base64(path):
    return base64.b64encode(os.fsencode(path)).decode()
