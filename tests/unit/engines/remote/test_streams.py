"""Cases of kind L: what a stream may look like, over a real socket."""

from __future__ import annotations

import gzip
import json
import logging

import pytest

from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.errors import ContextOverflowError, EngineError, EngineFaultError, EngineRefusedError, StreamBrokenError
from tests.servers import DONE, CompletionServer, Exchange, choice, event, reply, status, stream
from tests.unit.engines.remote import asking


async def whole(*pieces: bytes) -> str:
    async with CompletionServer(stream(*pieces)) as server, asking.engine(server.url) as engine:
        return await asking.answer(engine)


async def failure(*pieces: bytes) -> EngineError:
    async with CompletionServer(stream(*pieces), reply("ok")) as server, asking.engine(server.url) as engine:
        with pytest.raises(EngineError) as caught:
            await asking.chunks(engine)
        assert await asking.answer(engine) == "ok"  # alive
    return caught.value


async def test_data_without_a_blank_is_read() -> None:
    assert await whole(b"data:" + json.dumps(choice("ok", "stop")).encode() + b"\n\ndata:[DONE]\n\n") == "ok"


async def test_comments_blank_lines_and_other_fields_are_noise() -> None:
    noise = b": keep-alive\n\n\n\nevent: ping\n\nretry: 3000\n\ndata:\n\n"
    assert await whole(noise, event(choice("o")), noise + event(choice("k", "stop")), noise, DONE) == "ok"


async def test_a_character_may_be_cut_between_packets() -> None:
    text = event(choice("é漢😀\u2028", "stop")) + DONE
    assert await whole(*(text[at : at + 1] for at in range(len(text)))) == "é漢😀\u2028"


@pytest.mark.parametrize("error", [{"message": "x"}, "busy"])
async def test_an_error_object_in_the_stream_is_an_error(error: object) -> None:
    assert type(await failure(event(choice("ret")), event({"error": error}), DONE)) is EngineRefusedError


async def test_the_error_event_of_older_servers_is_an_error() -> None:
    assert type(await failure(event({"object": "error", "message": "x", "code": 400}), DONE)) is EngineRefusedError
    assert type(await failure(event({"object": "error", "message": "x", "code": 500}), DONE)) is EngineFaultError


@pytest.mark.parametrize(
    "said",
    [
        b'error: {"code":400,"message":"x"}\n\n',
        b"error: boom\n\n",
        b'event: error\ndata: {"message":"boom"}\n\n',
        b"event: error\ndata: boom\n\n",
        b'data: {"detail":"boom"}\n\n',
        b'{"error":{"message":"boom"}}\n',
    ],
)
async def test_an_error_in_other_clothes_is_an_error(said: bytes) -> None:
    assert type(await failure(event(choice("ret")), said, DONE)) is EngineRefusedError


async def test_a_bare_object_is_an_event() -> None:
    assert await whole(event(choice("o")), json.dumps(choice("k", "stop")).encode() + b"\n", DONE) == "ok"


async def test_a_broken_line_breaks_the_answer_and_is_logged_once_without_its_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "monkeycode_lsp")
    broken = b'data: {"choices":[{"te\n\n'
    assert isinstance(await failure(event(choice("ret")), broken, event(choice("urn 1", "stop")), DONE), StreamBrokenError)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("monkeycode_lsp")]
    assert len(ours) == 1
    assert "choices" not in ours[0]


async def test_a_finish_reason_and_a_clean_close_make_a_whole_answer_without_done() -> None:
    assert await whole(event(choice("ok", "stop"))) == "ok"


async def test_done_without_a_finish_reason_makes_a_whole_answer() -> None:
    assert await whole(event(choice("ok")), DONE) == "ok"


async def test_a_clean_close_with_neither_is_a_broken_answer() -> None:
    assert isinstance(await failure(event(choice("ok"))), StreamBrokenError)


async def test_the_text_so_far_is_yielded_before_a_stream_breaks() -> None:
    async with CompletionServer(stream(event(choice("so far")))) as server, asking.engine(server.url) as engine:
        chunks = engine.stream(asking.fim())
        first = await anext(chunks)
        assert (first.text, first.finish) == ("so far", None)
        with pytest.raises(StreamBrokenError):
            await anext(chunks)


async def test_empty_choices_null_texts_and_reasoning_are_no_text() -> None:
    thinking = {"choices": [{"index": 0, "text": None, "reasoning_content": "hmm"}]}
    assert await whole(event({"choices": []}), event(choice(None)), event(thinking), event(choice("ok", "stop")), DONE) == "ok"


async def test_other_candidates_are_not_mixed_in() -> None:
    other = {"choices": [{"index": 1, "text": "no", "finish_reason": "stop"}]}
    assert await whole(event(other), event(choice("ok", "stop")), event(other), DONE) == "ok"


async def test_usage_may_come_alone_after_the_finish_reason() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 6}}}
    async with CompletionServer(stream(event(choice("ok", "length")), event(usage), DONE)) as server, asking.engine(server.url) as engine:
        got = await asking.chunks(engine)
    assert got[-1].usage == Usage(reused=6, read=3, generated=1)
    assert got[-1].finish is Finish.LENGTH


async def test_an_answer_is_not_kept_waiting_by_a_server_that_never_closes() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("ok", "stop")
        await exchange.hold()

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine) == "ok"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<!doctype html><p>Log in</p>", "text/html"),
        ("Please log in.", "text/plain"),
        ({}, "application/json"),
        ([], "application/json"),
        ({"error": "busy"}, "application/json"),
        ("{", "application/json"),
    ],
)
async def test_a_success_of_another_shape_is_refused_in_words(body: object, content_type: str) -> None:
    async with CompletionServer(status(200, body, content_type), reply("ok")) as server, asking.engine(server.url) as engine:
        with pytest.raises(EngineRefusedError, match=r"instead of a completion"):
            await asking.answer(engine)
        assert await asking.answer(engine) == "ok"


async def test_a_whole_document_is_taken_from_servers_that_do_not_stream() -> None:
    async with CompletionServer(status(200, choice("ok", "stop"))) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_compressed_answer_is_read_all_the_same() -> None:
    async def script(exchange: Exchange) -> None:
        body = gzip.compress(event(choice("ok", "stop")) + DONE)
        await exchange.head(length=len(body), Content_Encoding="gzip")
        await exchange.send(body)

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine) == "ok"
        assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_a_compressed_answer_that_is_none_is_broken() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head(length=10, Content_Encoding="gzip")
        await exchange.send(b"0123456789")

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        with pytest.raises(StreamBrokenError, match="cannot be unpacked"):
            await asking.answer(engine)


async def test_empty_text_that_ends_by_length_means_a_full_window() -> None:
    async with CompletionServer(reply("", finish="length")) as server, asking.engine(server.url) as engine:
        with pytest.raises(ContextOverflowError):
            await asking.answer(engine)


@pytest.mark.parametrize("reason", ["abort", "error", "content_filter"])
async def test_a_server_that_gives_up_breaks_the_answer(reason: str) -> None:
    assert isinstance(await failure(event(choice("ret", reason)), DONE), StreamBrokenError)


async def test_an_answer_without_end_is_not_held_for_ever() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        while not exchange.request.closed.is_set():
            await exchange.send(b"data: " + b"x" * 65_536)

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        with pytest.raises(StreamBrokenError, match="without end"):
            await asking.answer(engine)


async def test_stop_strings_beyond_the_fourth_are_applied_here_and_stop_the_server() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        for text in ("a + b", "<|file", "_sep|", ">b.py\n"):
            await exchange.text(text)
        await exchange.hold()

    stops = ("s1", "s2", "s3", "s4", "<|file_sep|>")
    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine, asking.fim(stop=stops)) == "a + b"
        assert server.requests[0].json["stop"] == list(stops[:4])
        await server.requests[0].closed.wait()


async def test_marker_strings_in_the_users_text_are_neutral_on_the_wire_and_restored_in_the_answer() -> None:
    async def echo(exchange: Exchange) -> None:
        prompt = exchange.request.json["prompt"]
        said = prompt.partition("<|fim_prefix|>")[2].partition("<|fim_suffix|>")[0]
        await reply(*said, finish="stop")(exchange)

    text = 'MARKER = "<|fim_middle|>"'
    async with CompletionServer(echo) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine, asking.fim(text, stop=("<|fim_middle|>",))) == text
        assert server.requests[0].json["prompt"].count("<|fim_middle|>") == 1
