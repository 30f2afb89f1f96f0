"""The managed engine's process care, with a stand-in for the llama-server program."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.local import managed, managed_server
from monkeycode_lsp.engines.local.managed import ManagedEngine
from monkeycode_lsp.errors import EngineError, EngineUnavailableError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line for POSIX systems")

STAND_IN = '''#!{python}
"""Behaves as the model file says."""
import http.server, json, os, signal, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
model = open(options["--model"]).read()
log = open(options["--model"] + ".log", "a")
print("started", " ".join(sys.argv[1:]), file=log, flush=True)
if "noisy" in model:
    print("Content-Length: 3\\r\\n\\r\\n{{}}" * 400, flush=True)
if "abort on the GPU" in model and options.get("--n-gpu-layers") != "0" or "always abort" in model:
    os.kill(os.getpid(), signal.SIGABRT)
if "refuse" in model:
    sys.exit("cannot load")

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, value, kind="application/json", prefix=b""):
        body = prefix + json.dumps(value).encode() + (b"\\n\\n" if prefix else b"")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path == "/health" and time.monotonic() < loaded_at:
            self.answer(503, {{"error": {{"message": "Loading model"}}}})
        elif self.headers["Authorization"] != "Bearer " + os.environ["LLAMA_API_KEY"] and self.path != "/health":
            self.answer(401, {{}})
        else:
            self.answer(200, {{"model_path": options["--model"], "default_generation_settings": {{"n_ctx": 512}}}})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/tokenize":
            self.answer(404, {{}})
        elif "hang at first" in model and open(log.name).read().count("started") == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif "die at work" in model:
            os.kill(os.getpid(), signal.SIGSEGV)
        else:
            self.answer(200, {{"content": "ok", "stop": True, "stop_type": "eos"}}, "text/event-stream", b"data: ")
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
loaded_at = time.monotonic() + 0.3
print(f"main: server is listening on http://127.0.0.1:{{server.server_address[1]}}", file=sys.stderr, flush=True)
server.serve_forever()
'''

Make = Callable[[str], ManagedEngine]


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
async def make(tmp_path: Path, told: list[str]) -> AsyncIterator[Make]:
    """An engine whose server behaves as the model file's text says."""
    program = tmp_path / "llama-server"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o700)
    made: list[ManagedEngine] = []

    def one(behaviour: str) -> ManagedEngine:
        model = tmp_path / "model.gguf"
        model.write_text(behaviour)
        settings = config.Local(slots=2, context_tokens=512)
        made.append(ManagedEngine(settings=settings, model=model, notify=told.append, server=str(program)))
        return made[-1]

    yield one
    for engine in made:
        await engine.aclose()


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[], list[str]]:
    """The command lines with which the program was started."""
    return lambda: (tmp_path / "model.gguf.log").read_text().splitlines()


async def answer(engine: ManagedEngine) -> str:
    async with aclosing(engine.stream(Prompt(segments=(Plain("a"),), prefix="a", suffix=""))) as stream:
        return "".join([chunk.text async for chunk in stream])


async def test_a_program_is_waited_for_while_it_loads_and_then_answers(make: Make, starts: Callable[[], list[str]]) -> None:
    engine = make("noisy")
    assert (await engine.ready()).context_tokens == 512
    assert await answer(engine) == "ok"
    assert "--ctx-size 1024 --parallel 2 --batch-size 128" in starts()[0]


async def test_many_who_wait_get_one_server_and_one_who_leaves_does_not_stop_it(make: Make, starts: Callable[[], list[str]]) -> None:
    engine = make("")
    waiting = [asyncio.create_task(engine.ready()) for _ in range(4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert {task.result().name for task in waiting[1:]} == {"model.gguf"}
    assert len(starts()) == 1


async def test_a_crash_at_load_is_tried_once_without_the_gpu(make: Make, told: list[str], starts: Callable[[], list[str]]) -> None:
    engine = make("abort on the GPU")
    assert await answer(engine) == "ok"
    assert len(starts()) == 2
    assert "gpuLayers" in told[0]


async def test_a_crash_at_every_load_is_said_and_not_repeated_at_every_ask(make: Make, starts: Callable[[], list[str]]) -> None:
    engine = make("always abort")
    for _ in range(10):
        with pytest.raises(EngineUnavailableError, match="SIGABRT"):
            await engine.ready()
    assert len(starts()) <= 3


async def test_a_file_that_cannot_be_loaded_is_named(make: Make) -> None:
    with pytest.raises(EngineUnavailableError, match=r"model\.gguf.*local\.model"):
        await make("refuse").ready()


async def test_a_server_that_hangs_is_started_anew(
    make: Make, starts: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(managed, "SILENT_S", 0.1)
    monkeypatch.setattr(managed, "HUNG_S", 0.2)
    engine = make("hang at first")
    first = await engine.ready()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answer(engine), 0.3)
    assert engine._doubting is not None
    await engine._doubting
    assert "does not answer" in caplog.text
    assert await engine.ready() == first
    assert await answer(engine) == "ok"
    assert len(starts()) == 2


async def test_death_at_work_is_said_and_the_next_start_waits_longer_each_time(make: Make, starts: Callable[[], list[str]]) -> None:
    engine = make("die at work")
    for _ in range(12):
        with pytest.raises(EngineError, match="died"):
            await answer(engine)
    assert 2 <= len(starts()) <= 4


async def test_a_missing_file_and_a_folder_are_named_with_the_setting(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "no.gguf", "does not exist"), (tmp_path, "folder")):
        engine = ManagedEngine(settings=config.Local(), model=path, notify=print)
        with pytest.raises(EngineUnavailableError, match=rf"{path.name}.*{words}.*local\.model"):
            await engine.ready()


async def test_the_keeper_ends_what_it_keeps_when_its_stdin_closes(tmp_path: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    sleeper = "import sys, time; print('up', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", managed_server.__name__, "keep", sys.executable, "-c", sleeper]
    keeper = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    assert await keeper.stdout.readline() == b"up\n"
    keeper.stdin.close()
    assert await asyncio.wait_for(keeper.wait(), 5) == 128 + 9
    assert await keeper.stdout.read() == b""  # nobody else holds the pipe: the sleeper is gone too
