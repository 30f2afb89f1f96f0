"""The commands as a user and an editor start them: in processes of their own."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tomllib

import pytest

from monkeycode_lsp.cli import terminal, watch
from monkeycode_lsp.cli.samples import SAMPLES
from monkeycode_lsp.errors import MonkeyCodeError
from tests.servers import CompletionServer, reply

pytestmark = pytest.mark.e2e

SCRIPTED = ("--engine", "scripted", "--setting", "scripted.text=hello(world)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def environment(home, **more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MONKEYCODE_")}
    return kept | {"MONKEYCODE_HOME": str(home), "HOME": str(home), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"} | more


def monkeycode(home, *arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "monkeycode_lsp", *map(str, arguments)],
        env=environment(home), capture_output=True, text=True, encoding="utf-8", timeout=120, check=False, stdin=subprocess.DEVNULL, **how,
    )  # fmt: skip


class Terminal:
    """A command under a pseudo-terminal."""

    def __init__(self, home, *arguments):
        import pty  # noqa: PLC0415 - not on every system

        self._ours, theirs = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "monkeycode_lsp", *map(str, arguments)],
            env=environment(home), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def until(self, text):
        """Read until `text` has been shown."""
        while text.encode() not in self.shown:
            data = os.read(self._ours, 65536)
            assert data, self.shown
            self.shown += data

    def type(self, text):
        os.write(self._ours, text.encode())

    def end(self):
        """Read to the end; the exit code and all that was shown."""
        with contextlib.suppress(OSError):  # Linux says so when the other side is closed
            while data := os.read(self._ours, 65536):
                self.shown += data
        code = self.process.wait(60)
        os.close(self._ours)
        return code, self.shown.decode("utf-8")


needs_pty = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are another thing on Windows")


# try


def test_try_without_a_terminal_prints_plain_lines(home):
    done = monkeycode(home, "try", *SCRIPTED)
    assert done.returncode == 0, done.stderr
    assert not CONTROL.search(done.stdout)
    assert done.stdout.count(">>hello(world)<<") == 3
    for sample in SAMPLES:
        assert sample.title in done.stdout
        assert sample.before.splitlines()[0] in done.stdout
    assert done.stdout.count("first text after") == done.stdout.count("recalled in") == 3
    assert "vim.lsp.inline_completion.enable()" in done.stdout
    assert done.stderr == ""


def test_try_leaves_no_outcomes_of_its_own(home):
    done = monkeycode(home, "try", *SCRIPTED, "--setting", "scripted.delayMs=1200")  # servers write them down after a second
    assert done.stdout.count(">>hello(world)<<") == 3
    for command in ("why", "stats"):
        assert "No editor has asked yet" in monkeycode(home, command).stdout
    assert not list((home / "state").glob("**/*"))


def test_try_without_any_suggestion_fails_with_one_sentence(home):
    done = monkeycode(home, "try", "--engine", "scripted", "--setting", "scripted.text=")
    assert done.returncode == 1
    assert done.stderr == "Error: No suggestion came. The model had nothing to add here.\n`monkeycode doctor` looks for the cause.\n"
    assert "vim.lsp" not in done.stdout


def test_try_with_an_engine_that_fails_says_why(home, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"fault": "unavailable"}]', encoding="utf-8")
    done = monkeycode(home, "try", "--engine", "scripted", "--setting", f"scripted.script={script}")
    assert done.returncode == 1
    assert done.stderr.count("The scripted engine was told to be unavailable.") == 1


async def test_try_on_an_endpoint(home):
    async with CompletionServer(reply("hello(world)")) as server:
        where = ("--engine", "remote", "--url", server.url, "--model", "qwen2.5-coder")
        done = await asyncio.to_thread(monkeycode, home, "try", *where)
        assert done.returncode == 0, done.stderr
        prompts = [request.json["prompt"] for request in server.requests if request.body]
    assert f"qwen2.5-coder at {server.url} answers." in done.stdout
    assert done.stdout.count(">>hello(world)<<") == 3
    assert len(prompts) == 3  # each sample was generated once, and then recalled


async def test_try_on_an_endpoint_ends_with_the_lines_that_keep_it_and_then_those_for_editors(home):
    async with CompletionServer(reply("hello(world)")) as server:
        where = ("--url", server.url, "--model", "qwen2.5-coder", "--api-key-env", "NO_SUCH_KEY")
        done = await asyncio.to_thread(monkeycode, home, "try", *where)
        assert done.returncode == 0, done.stderr
        kept = re.search(rf"{re.escape(str(home / 'config' / 'monkeycode.toml'))}:\n\n(.*?)\n\n", done.stdout, flags=re.DOTALL)
        assert kept is not None, done.stdout
        assert kept.end() < done.stdout.index("vim.lsp.config")
        assert tomllib.loads(kept[1]) == {
            "remote": {"endpoints": [{"url": server.url, "model": "qwen2.5-coder", "apiKeyEnv": "NO_SUCH_KEY"}]}
        }
        assert done.stderr == "The environment variable NO_SUCH_KEY, named by --api-key-env, is not set: no key is sent.\n"
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "monkeycode.toml").write_text(kept[1], encoding="utf-8")
        again = await asyncio.to_thread(monkeycode, home, "try")  # now without a word of it
    assert again.stdout.count(">>hello(world)<<") == 3
    assert "[[remote.endpoints]]" not in again.stdout


async def test_the_lines_undo_a_choice_of_another_engine(home):
    (home / "config").mkdir(parents=True)
    (home / "config" / "monkeycode.toml").write_text('engine = "local"\n', encoding="utf-8")
    async with CompletionServer(reply("hello(world)")) as server:
        done = await asyncio.to_thread(monkeycode, home, "try", "--url", server.url, "--model", "qwen2.5-coder")
    assert 'engine = "auto"\n[[remote.endpoints]]\n' in done.stdout


async def test_try_with_several_endpoints_of_which_one_is_down(home):
    async with CompletionServer(reply("hello(world)")) as server:
        endpoints = f'[{{"url": "http://127.0.0.1:9", "model": "qwen2.5-coder"}}, {{"url": "{server.url}", "model": "qwen2.5-coder"}}]'
        done = await asyncio.to_thread(monkeycode, home, "try", "--setting", f"remote.endpoints={endpoints}")
    assert done.returncode == 0, done.stderr
    assert "qwen2.5-coder answers, at one of 2 endpoints at least." in done.stdout
    assert done.stdout.count(">>hello(world)<<") == 3


def test_try_on_an_address_where_nothing_listens_fails_once_and_before_anything_is_shown(home):
    done = monkeycode(home, "try", "--url", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: Nothing answers at http://127.0.0.1:9.\nStart the server there, or correct --url.\n"


def test_try_with_an_engine_that_fails_shows_no_blank_samples(home, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"fault": "unavailable"}]', encoding="utf-8")
    done = monkeycode(home, "try", "--engine", "scripted", "--setting", f"scripted.script={script}")
    assert SAMPLES[0].before.splitlines()[0] not in done.stdout
    assert SAMPLES[1].title not in done.stdout


@needs_pty
def test_try_on_a_terminal_dims_the_suggestion(home):
    code, shown = Terminal(home, "try", *SCRIPTED).end()
    assert code == 0, shown
    assert re.search(r"\x1b\[[0-9;]*3;[0-9;]*mhello", shown)  # italic
    assert ">>" not in shown
    assert "first text after" in shown


@needs_pty
def test_try_asks_before_it_downloads_and_takes_no_for_an_answer(home, tmp_path, monkeypatch):
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    terminal = Terminal(home, "try")
    terminal.until("[Y/n]")
    terminal.type("n\n")
    code, shown = terminal.end()
    assert code == 1
    assert "491 MB, Apache-2.0, Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF" in shown
    assert "Nothing was downloaded" in shown
    assert not list(home.rglob("*.gguf*"))


@needs_pty
def test_ctrl_c_is_exit_code_130(home, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"chunks": ["never"], "firstDelayMs": 100000}]', encoding="utf-8")
    terminal = Terminal(home, "try", "--engine", "scripted", "--setting", f"scripted.script={script}")
    terminal.until("total_value")
    os.killpg(terminal.process.pid, signal.SIGINT)  # as a terminal does it: the server hears it too
    code, shown = terminal.end()
    assert code == 130, shown
    assert "Traceback" not in shown


async def test_a_suggestion_is_seen_to_grow(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps([{"chunks": ["sum(", "item.price ", "for item in items)"], "firstDelayMs": 600, "delayMs": 400}]), encoding="utf-8"
    )
    grown: list[str] = []
    slow: list[int] = []
    settings = {"engine": "scripted", "scripted": {"script": str(script)}, "completion": {"deadlineMs": watch.DEADLINE_MS}}
    async with watch.server(settings, tmp_path / "log") as client:
        seen = await watch.suggestion(client, SAMPLES[0], "file:///w/stock.py", grown.append, lambda: slow.append(1), slow_s=0.2)
    whole = "sum(item.price for item in items)"
    assert grown[-1] == seen.text == whole
    assert len(grown) == 3
    assert all(longer.startswith(shorter.rstrip(" )")) for shorter, longer in itertools.pairwise(grown))
    assert slow == [1]  # said once, while there was no text
    assert seen.first_ms < seen.total_ms - 400  # the other pieces came later
    assert seen.again_ms is not None


async def test_a_server_that_cannot_start_is_one_sentence(tmp_path):
    command = (sys.executable, "-c", "raise SystemExit('no luck')")
    with pytest.raises(MonkeyCodeError, match=r"The server does not answer\. Its last words: no luck"):
        async with watch.server({}, tmp_path / "log", command=command):
            pass


# serve


def frame(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_frame(reader):
    header = await reader.readuntil(b"\r\n\r\n")
    return json.loads(await reader.readexactly(int(re.search(rb"Content-Length: (\d+)", header)[1])))


INITIALIZE = {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}


@contextlib.asynccontextmanager
async def listening(home, *arguments):
    """A server on a port of its own choice."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "monkeycode_lsp", "serve", *arguments, "--engine", "scripted",
        env=environment(home), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        found = re.fullmatch(r"Listening on 127\.0\.0\.1:(\d+)\s*", line)
        assert found, line
        yield process, int(found[1])
        assert await process.stdout.read() == b""
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()


async def test_serve_over_tcp(home):
    async with listening(home, "--tcp", "0") as (process, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(INITIALIZE))
        answer = await asyncio.wait_for(read_frame(reader), 30)
        assert "inlineCompletionProvider" in answer["result"]["capabilities"]
        writer.write(frame({"id": 2, "method": "shutdown"}) + frame({"method": "exit"}))
        assert await asyncio.wait_for(process.wait(), 30) == 0
        writer.close()


async def test_serve_over_websocket(home):
    client = pytest.importorskip("websockets.asyncio.client", reason="needs the extra ws")
    async with listening(home, "--ws", "0") as (process, port), client.connect(f"ws://127.0.0.1:{port}", proxy=None) as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", **INITIALIZE}))
        answer = json.loads(await asyncio.wait_for(socket.recv(), 30))
        assert "inlineCompletionProvider" in answer["result"]["capabilities"]
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
        await asyncio.wait_for(socket.recv(), 30)
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "exit"}))
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_a_port_that_is_taken_is_one_sentence(home):
    holder = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = holder.sockets[0].getsockname()[1]
    done = await asyncio.to_thread(monkeycode, home, "serve", "--tcp", port)
    holder.close()
    await holder.wait_closed()
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: Cannot listen on 127.0.0.1:{port}")
    assert "Traceback" not in done.stderr


def test_websocket_without_its_package_says_what_to_install(home):
    code = "import sys\nsys.modules['websockets'] = None\nfrom monkeycode_lsp.cli import run\nsys.exit(run(['serve', '--ws', '0']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(home), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"{sys.executable} -m pip install 'monkeycode-lsp[ws]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log-level", "loud"], "'loud' is not one of"),
        (["--tcp", "x"], "[HOST:]PORT"),
        (["--tcp", "1", "--ws", "2"], "Choose one"),
        (["--setting", "completion.maxTokns=1"], "did you mean completion.maxTokens"),
    ],
)
def test_serve_with_wrong_arguments_says_so_on_stderr(home, arguments, words):
    done = monkeycode(home, "serve", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [[], ["--stdio"], ["--stdio", "--clientProcessId=1"], ["--log-level", "ERROR"]])
def test_the_short_command_serves_however_an_editor_starts_it(home, arguments):
    message = frame(INITIALIZE) + frame({"id": 2, "method": "shutdown"}) + frame({"method": "exit"})
    done = subprocess.run(
        [sys.executable, "-c", "from monkeycode_lsp.__main__ import serve; serve()", *arguments],
        env=environment(home), input=message, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Content-Length: ")
    assert b"inlineCompletionProvider" in done.stdout


def test_settings_of_the_command_line_win_over_the_editors(home):
    options = {"engine": "scripted", "scripted": {"text": "editor"}}
    initialize = {
        "id": 1,
        "method": "initialize",
        "params": {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options},
    }
    document = {"uri": "file:///w/a.py", "languageId": "python", "version": 0, "text": "x = "}
    ask = {"textDocument": {"uri": document["uri"]}, "position": {"line": 0, "character": 4}, "context": {"triggerKind": 1}}
    process = subprocess.Popen(
        [sys.executable, "-m", "monkeycode_lsp", "serve", "--setting", "scripted.text=mine"],
        env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for message in (initialize, {"method": "initialized", "params": {}}, {"method": "textDocument/didOpen", "params": {"textDocument": document}},
                    {"id": 2, "method": "textDocument/inlineCompletion", "params": ask}):  # fmt: skip
        process.stdin.write(frame(message))
    process.stdin.flush()
    shown = b""
    while b'"id":2' not in shown:
        shown += os.read(process.stdout.fileno(), 65536)
    process.stdin.write(frame({"id": 3, "method": "shutdown"}) + frame({"method": "exit"}))
    rest, _ = process.communicate(timeout=60)
    assert b"mine" in shown + rest
    assert b"editor" not in shown + rest


@needs_pty
def test_serve_started_by_hand_says_what_it_waits_for(home):
    terminal = Terminal(home, "serve")
    terminal.until("waits for an editor")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end()[0] == 130


# complete


@needs_pty
def test_complete_on_a_terminal_leaves_only_the_cleaned_suggestion(home, tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"chunks": ["a ", "+ b", "\n\n\ndef other():"], "delayMs": 30}]), encoding="utf-8")
    file = tmp_path / "app.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    code, shown = Terminal(home, "complete", f"{file}:2:12", "--engine", "scripted", "--setting", f"scripted.script={script}").end()
    assert code == 0, shown
    assert "\x1b[" in shown  # it was drawn while it grew
    assert shown.rstrip().splitlines()[-1].endswith("a + b")


# The real thing


@pytest.mark.model
def test_try_with_the_real_model(model_path):
    done = subprocess.run(
        [sys.executable, "-m", "monkeycode_lsp", "try", "--model", str(model_path)],
        capture_output=True, text=True, encoding="utf-8", timeout=170, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "No engine" in done.stderr:
        pytest.skip("no local engine is installed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("first text after") == 3, done.stdout
    suggestions = re.findall(f"{re.escape(terminal.OPEN)}(.+?){re.escape(terminal.CLOSE)}", done.stdout, flags=re.DOTALL)
    assert len(suggestions) == 3, done.stdout
    # What a model says differs from build to build; that it fits is what is ours.
    ast.parse(SAMPLES[0].before + suggestions[0] + SAMPLES[0].after)


@pytest.mark.model
def test_complete_with_the_real_model(model_path, tmp_path):
    file = tmp_path / "app.py"
    file.write_text("def add(first, second):\n    return \n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "monkeycode_lsp", "complete", f"{file}:2:12", "--model", str(model_path)],
        capture_output=True, text=True, encoding="utf-8", timeout=170, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "No engine" in done.stderr:
        pytest.skip("no local engine is installed")
    assert (done.returncode, done.stdout.strip()) == (0, "first + second"), done.stderr


@pytest.mark.model
@pytest.mark.parametrize("command", ["try", "complete"])
def test_the_real_model_stands_in_for_an_endpoint_that_is_gone_and_that_is_said_once(model_path, tmp_path, command):
    file = tmp_path / "app.py"
    file.write_text("def add(first, second):\n    return \n", encoding="utf-8")
    where = ("--setting", 'remote.endpoints=[{"url": "http://127.0.0.1:9"}]', "--setting", f"local.model={model_path}")
    done = subprocess.run(
        [sys.executable, "-m", "monkeycode_lsp", command, *([f"{file}:2:12"] if command == "complete" else []), *where],
        capture_output=True, text=True, encoding="utf-8", timeout=170, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if "Nothing answers" in done.stderr and done.returncode:
        pytest.skip("no local engine is installed")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("answers on this machine") == 1
    if command == "complete":
        assert done.stdout == "first + second\n"
    else:
        assert "answers, on this machine, since no endpoint can be reached." in done.stdout
        assert done.stdout.count("first text after") == 3
