"""The remote engine against the real server of llama-cpp-python, which speaks the common form."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib import util

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish
from monkeycode_lsp.engines.local.managed import command
from monkeycode_lsp.errors import ContextOverflowError, EngineError, EngineRefusedError
from tests.servers import unused_port
from tests.unit.engines.remote import asking

NEEDED = ("llama_cpp", "fastapi", "uvicorn", "starlette_context", "sse_starlette", "pydantic_settings")
MISSING = [name for name in NEEDED if util.find_spec(name) is None]

pytestmark = [
    pytest.mark.model,
    pytest.mark.native,
    pytest.mark.skipif(bool(MISSING), reason=f"llama-cpp-python[server] is not installed: {', '.join(MISSING)} missing"),
]

KEY = "K1"
NAME = "qwen2.5-coder-0.5b"
CODE = "def is_even(n):\n    return "
AFTER = "\n\nprint(is_even(5))\n"


@pytest.fixture(scope="module")
def url(model_path, tmp_path_factory):
    """The address of a server that wants a key."""
    port = unused_port()
    words = [sys.executable, "-m", "llama_cpp.server", "--model", str(model_path), "--model_alias", NAME]
    words += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "512", "--n_threads", "1", "--api_key", KEY, "--cache", "false"]
    log = tmp_path_factory.mktemp("server") / "log"
    environment = {name: value for name, value in os.environ.items() if name not in {"HOST", "PORT", "MODEL"}}
    with (
        log.open("w") as file,
        subprocess.Popen(command.bound(words), env=environment, stdin=subprocess.PIPE, stderr=file, stdout=file) as process,
    ):
        try:
            asyncio.run(_up(process, f"http://127.0.0.1:{port}", log))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


async def _up(process, url, log):
    async with asyncio.timeout(120):
        while True:
            assert process.poll() is None, log.read_text()[-2000:]
            try:
                async with asking.engine(url, api="openai", model="", api_key=KEY) as made:
                    await made.ready()
            except EngineError:
                await asyncio.sleep(0.1)
            else:
                return


@pytest.fixture
async def engine(url):
    async with asking.engine(url, model="", api_key=KEY, remote={"timeout_ms": 60_000, "stall_ms": 60_000}) as made:
        yield made


async def test_it_says_what_it_is_and_speaks_the_common_form(engine):
    model = await engine.ready()
    assert (model.name, model.family) == (NAME, prompt.by_name("qwen2.5-coder"))
    assert ":openai:" in model.fingerprint


async def test_it_fills_in_between_our_markers(engine):
    got = await asking.chunks(engine, asking.fim(CODE, AFTER, max_tokens=16, stop=("\n",)))
    text = "".join(chunk.text for chunk in got)
    assert text.strip().startswith("n")
    assert "\n" not in text
    assert got[-1].finish is Finish.STOP


async def test_more_stop_strings_than_the_common_form_takes_all_end_the_answer(engine):
    whole = await asking.answer(engine, asking.fim(CODE, "", max_tokens=16))
    stops = ("never 1", "never 2", "never 3", "never 4", "\n")
    assert await asking.answer(engine, asking.fim(CODE, "", max_tokens=16, stop=stops)) == whole.partition("\n")[0]


async def test_the_limit_of_tokens_is_told_from_an_end(engine):
    got = await asking.chunks(engine, asking.fim(CODE, "", max_tokens=2))
    assert got[-1].finish is Finish.LENGTH


async def test_a_prompt_beyond_the_window_is_an_error_though_the_server_says_nothing_at_all(engine):
    with pytest.raises(ContextOverflowError) as overflow:
        await asking.answer(engine, asking.fim("value = compute(value)\n" * 200))
    assert overflow.value.limit_tokens == 512


async def test_a_cancelled_ask_leaves_it_free_for_the_next(engine):
    task = asyncio.ensure_future(asking.chunks(engine, asking.fim(CODE * 8, AFTER, max_tokens=200)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert await asking.answer(engine, asking.fim(CODE, AFTER, max_tokens=2))


@pytest.mark.parametrize(("key", "words"), [("", "wants a key"), ("K2", "refused the key")])
async def test_a_wrong_key_is_said_as_that(url, key, words):
    async with asking.engine(url, model="", api_key=key) as engine:
        with pytest.raises(EngineRefusedError, match=words):
            await asking.answer(engine)
