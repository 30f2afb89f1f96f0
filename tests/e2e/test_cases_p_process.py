"""Kind P: the life of the process, and what comes out of it."""

import asyncio
import json
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests import driver, servers

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")]

GONE_S = 2.0

EDITOR = """
import json, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    server.stdin.flush()
send(id=1, method="initialize", params=json.loads(sys.argv[1]))
server.stdout.readline()
send(method="initialized", params={})
document = {"uri": "file:///w/a.py", "languageId": "python", "version": 0, "text": "x = "}
send(method="textDocument/didOpen", params={"textDocument": document})
if "ask" in sys.argv:
    position = {"line": 0, "character": 4}
    params = {"textDocument": {"uri": "file:///w/a.py"}, "position": position, "context": {"triggerKind": 2}}
    send(id=2, method="textDocument/inlineCompletion", params=params)
print(server.pid, flush=True)
time.sleep(600)
"""


def running(pid):
    """Whether the process is there and not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def gone(pid, within_s=GONE_S):
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not running(pid):
            return True
        await asyncio.sleep(0.02)
    return False


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "while it waits for the backend"])
async def test_the_server_goes_when_its_editor_is_killed(home, busy):
    # openlawlibrary/pygls#173, openlawlibrary/pygls#130
    async with servers.CompletionServer(servers.hold) as backend:
        options = {"debounce": {"mode": "off"}, "remote": {"endpoints": [{"url": backend.url, "model": "qwen2.5-coder", "api": "openai"}]}}
        params = json.dumps(driver.VSCODE | {"initializationOptions": options, "processId": os.getpid()})
        arguments = [sys.executable, "-c", EDITOR, params, *(["ask"] if busy else [])]
        editor = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
        pid = int(await asyncio.wait_for(editor.stdout.readline(), 30))
        try:
            if busy:
                await asyncio.wait_for(backend.request(0), 10)
            assert running(pid)
            editor.kill()
            await editor.wait()
            assert await gone(pid)
            if busy:
                await asyncio.wait_for(backend.requests[0].closed.wait(), 1)
        finally:
            if running(pid):
                os.kill(pid, signal.SIGKILL)
            editor._transport.close()


@pytest.mark.parametrize("state", ["not initialized", "idle", "waiting"])
async def test_the_server_goes_when_its_input_ends(home, state):
    async with servers.CompletionServer(servers.hold) as backend:
        options = {"remote": {"endpoints": [{"url": backend.url, "model": "qwen2.5-coder", "api": "openai"}]}}
        async with driver.server(home, options=options, initialize=state != "not initialized") as lsp:
            if state == "waiting":
                lsp.open("file:///w/a.py", "x = ")
                asked = lsp.ask("file:///w/a.py", 0, 4)
                await asyncio.wait_for(backend.request(0), 10)
            elif state == "not initialized":
                assert (await lsp.call("shutdown", None))["error"]  # it is up
            lsp.process.stdin.close()
            assert await asyncio.wait_for(lsp.process.wait(), GONE_S) == 1
            if state == "waiting":
                assert asked.done() or not asked.cancelled()
                await asyncio.wait_for(backend.requests[0].closed.wait(), 1)


@linux
async def test_the_server_does_not_spin(home):
    async with driver.server(home, options={"engine": "scripted"}) as lsp:
        pid = lsp.process.pid
        lsp.open("file:///w/a.py", "x = ")
        await lsp.ask("file:///w/a.py", 0, 4)
        await asyncio.sleep(0.5)
        before = cpu_s(pid)
        await asyncio.sleep(1.0)
        assert cpu_s(pid) - before < 0.1


@linux
async def test_an_editor_that_closes_only_our_output_costs_nothing(home):
    lsp_home = {"MONKEYCODE_HOME": str(home)}
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio",
        stdin=asyncio.subprocess.PIPE, stdout=writer, stderr=asyncio.subprocess.DEVNULL, env=os.environ | lsp_home,
    )  # fmt: skip
    os.close(writer)
    os.close(reader)

    def send(message):
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    send({"id": 1, "method": "initialize", "params": driver.VSCODE})
    send({"method": "initialized", "params": {}})
    for number in range(20):
        send({"id": number + 2, "method": "workspace/executeCommand", "params": {"command": "monkeycode.why"}})
    # It may end by itself, or wait for its input to end: but not spin.
    await asyncio.sleep(1.5)
    if process.returncode is None:
        before = cpu_s(process.pid)
        await asyncio.sleep(0.5)
        assert cpu_s(process.pid) - before < 0.1
        process.stdin.close()
    await asyncio.wait_for(process.wait(), GONE_S)
    process._transport.close()


async def test_an_input_without_an_editor_ends_it_at_once(home, tmp_path):
    (tmp_path / "input").write_bytes(b"")
    for file in (os.devnull, tmp_path / "input"):
        stdin = os.open(file, os.O_RDONLY)
        command = (sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio")
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdin=stdin, stdout=quiet, stderr=quiet)
        os.close(stdin)
        try:
            assert await asyncio.wait_for(process.wait(), 10) == 1
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@pytest.mark.parametrize(("messages", "code"), [(["shutdown", "exit"], 0), (["exit"], 1), ([], 1)])
async def test_the_exit_code_is_the_specifications(home, messages, code):
    async with driver.server(home, options={"engine": "scripted"}) as lsp:
        for message in messages:
            if message == "shutdown":
                assert (await lsp.call("shutdown", None))["result"] is None
                refused = await lsp.call("workspace/executeCommand", {"command": "monkeycode.why"})
                assert refused["error"]["code"] == -32600
            else:
                lsp.notify("exit", None)
        if not messages:
            lsp.process.stdin.close()
        assert await asyncio.wait_for(lsp.process.wait(), GONE_S) == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it(home, number):
    async with driver.server(home, options={"engine": "scripted"}) as lsp:
        await lsp.settled()
        os.kill(lsp.process.pid, number)
        assert await asyncio.wait_for(lsp.process.wait(), GONE_S) != 0


NOISY = """
import os, sys, threading, time, warnings

class Noisy:
    def find_spec(self, name, path=None, target=None):
        if name in {"pygls", "lsprotocol", "httpx", "monkeycode_lsp.completer"}:
            print("printed while", name, "is imported")
            os.write(1, b"written to descriptor 1\\n" * 500)
            os.system("echo a child says something")
            warnings.warn("a warning", stacklevel=2)
            sys.__stdout__.write("to the first stdout")
            if name == "pygls":
                threading.Thread(target=chatter, daemon=True).start()
        return None

def chatter():
    while True:
        print("still here")
        os.write(1, b"\\x00\\xff")
        time.sleep(0.005)

if any("monkeycode_lsp" in argument for argument in sys.orig_argv):
    sys.meta_path.insert(0, Noisy())
"""


async def test_whatever_prints_the_output_is_frames_only(home, tmp_path):
    # openlawlibrary/pygls#133, CircleCI-Public/circleci-yaml-language-server#371, abetlen/llama-cpp-python#1874
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "sitecustomize.py").write_text(textwrap.dedent(NOISY))
    env = {"PYTHONPATH": str(tmp_path / "plugin"), "PYTHONUNBUFFERED": ""}
    async with servers.CompletionServer(servers.reply("ok")) as backend:
        options = {"remote": {"endpoints": [{"url": backend.url, "model": "qwen2.5-coder", "api": "openai"}]}}
        async with driver.server(home, options=options, env=env) as lsp:
            for n in range(50):
                assert await lsp.complete("file:///w/a.py", marked=f"x{n} = ‸") == "ok"
            assert await lsp.shutdown() == 0
        assert lsp.impure is None
        assert b"printed while pygls is imported" in lsp.stderr
        assert b"still here" in lsp.stderr


@pytest.mark.parametrize("text", ["'é😀測'", "'e\u0301👩\u200d👩'", "'" + "漢" * 10_000 + "'"], ids=["mixed", "joined", "long"])
async def test_the_content_length_counts_bytes(start, text):
    # openlawlibrary/pygls#604: the driver takes nothing else
    async with start(options={"completion": {"maxTokens": 4_096}}) as scene:
        shown = await scene.show("x = ‸", text, invoked=True)
        assert shown.text == text
        await scene.alive()


@pytest.mark.parametrize("closed", ["<&-", ">&- </dev/null", "2>&- </dev/null", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["", "--log-level error"])
async def test_a_stream_that_is_closed_from_the_start_is_as_good_as_empty(home, closed, arguments):
    command = f"exec {sys.executable} -c 'from monkeycode_lsp.__main__ import serve; serve()' {arguments} {closed}"
    process = await asyncio.create_subprocess_shell(command, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    assert (process.returncode, errors) == (1, b"")


async def test_nothing_is_imported_from_the_folder_that_the_server_runs_in(home, tmp_path):
    folder, trap = tmp_path / "project", tmp_path / "trapped"
    (folder / "monkeycode_lsp").mkdir(parents=True)
    for name in ("json.py", "xllamacpp.py", "llama_cpp.py", "monkeycode_lsp/__init__.py"):
        (folder / name).write_text(f"open({str(trap)!r}, 'a').write('{name}\\n')\nraise SystemExit(3)\n")
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    command = [sys.executable, "-P", "-m", "monkeycode_lsp", "serve", "--stdio"]
    for runtime in ("managed", "native"):
        options = {"engine": "local", "local": {"runtime": runtime, "model": str(model)}, "completion": {"deadlineMs": 30_000}}
        async with driver.server(home, options=options, command=command, cwd=folder) as lsp:
            assert await lsp.complete("file:///w/a.py", marked="x = ‸") is None
            assert lsp.shown_messages
    assert not trap.exists()
