"""The remote engine against the real llama-server that xllamacpp contains."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
import urllib.request
from contextlib import aclosing

import msgspec
import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish
from monkeycode_lsp.engines.local.managed import command, library
from monkeycode_lsp.engines.local.managed.server import KEY_VARIABLE, LISTENS
from monkeycode_lsp.engines.remote.dialects.base import Call
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.unit.engines.remote import asking

pytestmark = [
    pytest.mark.model,
    pytest.mark.managed,
    pytest.mark.skipif(not library.has_package(), reason="xllamacpp is not installed"),
]

KEY = "K1"
WINDOW = 512
BATCH = 32
CODE = "def is_even(n):\n    return "
AFTER = "\n\nprint(is_even(5))\n"


@pytest.fixture(scope="module")
def url(model_path):
    """The address of a server with two slots, which wants a key."""
    wanted = command.Server(
        model=str(model_path),
        slots=2,
        context_tokens=WINDOW,
        batch_tokens=BATCH,
        threads=1,
        connections=32,
        gpu_layers=0,
        main_gpu=0,
        one_gpu=False,
        tensor_split=(),
        extra_buffers=True,
        flash_attention=False,
        kv_type="f16",
        mmap=True,
        mlock=False,
        lora=(),
        state_mib=0,
    )
    environment = command.environment(os.environ) | {KEY_VARIABLE: KEY}
    words = command.bound(command.command(wanted, ""))
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = next((line for line in process.stderr if line.startswith(LISTENS)), "")
            assert said, "the server did not start"
            # Nobody may have to wait because its log is full.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield said.removeprefix(LISTENS).strip()
        finally:
            process.kill()


@pytest.fixture
async def engine(url):
    async with asking.engine(url, api="llama-server", model="", api_key=KEY, remote={"timeout_ms": 60_000, "stall_ms": 60_000}) as made:
        yield made


@pytest.fixture
def page(url):
    """What the server says at a path."""

    async def page(path, body=None):
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(url + path, body, headers)  # noqa: S310 - our own server's address

        def read():
            with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - our own server's address
                return json.load(reply)

        return await asyncio.to_thread(read)

    return page


@pytest.fixture
def until(page):
    """Waits until so many slots work."""

    async def until(n_slots):
        async with asyncio.timeout(60):
            while sum(slot["is_processing"] for slot in await page("/slots")) != n_slots:  # noqa: ASYNC110 - a server's page
                await asyncio.sleep(0.01)

    return until


def long(name):
    """About two hundred tokens, which no other test's prompt begins with."""
    return f"# {name}\n" + "".join(f"{name}_{number} = {number} * compute({name})\n" for number in range(14))


async def test_it_says_what_it_is(engine, model_path):
    model = await engine.ready()
    assert (model.name, model.context_tokens) == (model_path.name, WINDOW)
    assert model.family == prompt.by_name("qwen2.5-coder")


async def test_a_stream_says_what_an_answer_in_one_piece_says(engine, page):
    streamed = await asking.chunks(engine, asking.fim(CODE, AFTER, max_tokens=16))
    marked = f"<|fim_prefix|>{CODE}<|fim_suffix|>{AFTER}<|fim_middle|>"
    body = json.loads(LlamaServer().body(Call(marked, is_marked=True, max_tokens=16)))
    whole = await page("/completion", msgspec.json.encode(body | {"stream": False}))
    assert "".join(chunk.text for chunk in streamed) == whole["content"]
    assert len(streamed) > 2


async def test_one_letter_more_reuses_what_was_read(engine):
    typed = long("typed")
    first = (await asking.chunks(engine, asking.fim(f"{typed}res", AFTER, max_tokens=1)))[-1].usage
    again = (await asking.chunks(engine, asking.fim(f"{typed}resu", AFTER, max_tokens=1)))[-1].usage
    assert first.read > 150
    assert again.reused > 0.9 * first.read
    assert again.read < 32
    assert again.generated == 1


async def test_who_leaves_while_his_prompt_is_read_frees_the_slot(engine, page, until):
    asked = asking.fim(long("left") * 2, AFTER, max_tokens=1, session="left")
    task = asyncio.ensure_future(asking.chunks(engine, asked))
    await until(1)
    task.cancel()
    await asyncio.wait({task})
    await until(0)
    usage = (await asking.chunks(engine, asked))[-1].usage
    # Of a prompt that had been read to its end, only the last token would be read again.
    assert usage.read > 1


async def test_who_types_on_finds_his_prompt_even_if_the_last_ask_is_still_being_ended(engine):
    typed = long("on")
    n_read = (await asking.chunks(engine, asking.fim(typed, AFTER, max_tokens=1, session="on")))[-1].usage.read
    for more in ("r", "re", "res"):
        async with aclosing(engine.stream(asking.fim(typed + more, AFTER, max_tokens=64, session="on"))) as stream:
            usage = (await anext(stream)).usage
        assert usage.reused > 0.9 * n_read


async def test_the_server_inserts_by_itself(engine, page):
    got = await asking.chunks(engine, asking.plain(CODE, AFTER, max_tokens=16, stop=("\n",)))
    text = "".join(chunk.text for chunk in got)
    halves = {"input_prefix": CODE, "input_suffix": AFTER, "n_predict": 16, "temperature": 0, "stop": ["\n"]}
    whole = await page("/infill", msgspec.json.encode(halves))
    assert "<|fim_suffix|>" in whole["prompt"]
    assert (text, got[-1].finish) == (whole["content"], Finish.STOP)
    assert text


async def test_stop_strings_end_an_answer(engine):
    whole = await asking.answer(engine, asking.fim(CODE, "", max_tokens=24))
    assert "\n" in whole
    cut = await asking.chunks(engine, asking.fim(CODE, "", max_tokens=24, stop=("\n", *map(str, range(50, 60)))))
    assert "".join(chunk.text for chunk in cut) == whole.partition("\n")[0]
    assert cut[-1].finish is Finish.STOP


async def test_the_limit_of_tokens_is_told_from_an_end(engine):
    got = await asking.chunks(engine, asking.fim(CODE, "", max_tokens=2))
    assert (got[-1].finish, got[-1].usage.generated) == (Finish.LENGTH, 2)


async def test_a_prompt_beyond_the_window_is_an_overflow_and_teaches_it(engine):
    with pytest.raises(ContextOverflowError) as caught:
        await asking.answer(engine, asking.fim(long("over") * 4))
    assert caught.value.limit_tokens == WINDOW


@pytest.mark.parametrize("api", ["llama-server", "auto"])
@pytest.mark.parametrize(("key", "words"), [("", "wants a key"), ("K2", "refused the key")])
async def test_a_wrong_key_is_said_as_that(url, api, key, words):
    async with asking.engine(url, api=api, model="", api_key=key) as engine:
        with pytest.raises(EngineRefusedError, match=words) as caught:
            await engine.ready()
    assert "apiKeyEnv" in caught.value.remedy


async def test_auto_finds_it_and_speaks_its_own_form(url):
    async with asking.engine(url, model="", api_key=KEY) as engine:
        assert ":llama-server:" in (await engine.ready()).fingerprint
        got = await asking.chunks(engine, asking.fim(CODE, AFTER, max_tokens=4))
    assert got[-1].usage.generated
