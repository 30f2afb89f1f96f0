"""What the bytes of one answer become, without a network."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from monkeycode_lsp.domain import Chunk, Finish, Usage
from monkeycode_lsp.engines.remote import refusal
from monkeycode_lsp.engines.remote.dialects.base import Dialect, Piece
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI
from monkeycode_lsp.engines.remote.stream.answer import MAX_ANSWER, Answer
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineRefusedError, StreamBrokenError
from tests.servers import DONE, choice, event

BOM = b"\xef\xbb\xbf"
DEEP = 200_000
WHERE = refusal.Where("http://h", model="m")


def told(*pieces: bytes, dialect: Dialect | None = None, stops: Iterable[str] = ()) -> list[Chunk]:
    """The chunks of a stream in these packets, ended in good order."""
    answer = Answer(dialect or OpenAI(), WHERE, stops=stops, restore=str)
    got = [chunk for piece in pieces for chunk in answer.feed(piece)]
    got += answer.close()
    assert [chunk.finish is not None for chunk in got] == [False] * (len(got) - 1) + [True]
    return got


def text(*pieces: bytes, dialect: Dialect | None = None, stops: Iterable[str] = ()) -> str:
    return "".join(chunk.text for chunk in told(*pieces, dialect=dialect, stops=stops))


def failure(*pieces: bytes, dialect: Dialect | None = None) -> EngineError:
    with pytest.raises(EngineError) as caught:
        told(*pieces, dialect=dialect)
    return caught.value


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def said(**fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "text": ""} | fields]})


class Lines:
    """A dialect of one JSON document a line."""

    name = "lines"
    inserts = marks = False
    lines = True
    optional: frozenset[str] = frozenset()

    def read(self, data: bytes) -> Piece:
        value = msgspec.json.decode(data, type=dict[str, Any])
        if "error" in value:
            return Piece(error=msgspec.json.encode(value["error"]))
        done = bool(value.get("done"))
        return Piece(text=str(value.get("response", "")), finish=Finish.STOP if done else None, last=done)


LINES: Any = Lines()


# What is whole


def test_what_follows_the_finish_reason_changes_no_text() -> None:
    later = event(choice(" and more")) + event(choice("ok", "stop")) + event({"error": "x"}) + b"data: {\n\n" + event(choice("", "abort"))
    assert text(event(choice("ok", "stop")), later) == "ok"
    assert text(event(choice("ok", "stop")), later, DONE) == "ok"


def test_what_follows_done_is_not_even_read() -> None:
    assert text(event(choice("ok")), DONE, event(choice(" and more")), b"\x00{[", event({"error": "x"})) == "ok"


def test_figures_may_come_before_with_and_after_the_finish_reason() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    alone = event({"choices": [], "usage": usage})
    for stream in (
        alone + event(choice("ok", "stop")) + DONE,
        event(choice("ok", "stop", usage=usage)) + DONE,
        event(choice("ok", "stop")) + alone + DONE,
        event(choice("ok", "stop")) + alone,
    ):
        assert told(stream)[-1].usage == Usage(read=9, generated=1, whole=9)


def test_done_alone_is_an_empty_answer() -> None:
    assert text(DONE) == ""


@pytest.mark.parametrize("odd", [b'data: {"type":"ping"}\n\n', b"data: {}\n\n"])
def test_a_stream_of_other_things_is_no_empty_answer(odd: bytes) -> None:
    for end in (b"", DONE):
        assert "something else" in str(failure(odd, odd, end))
    assert text(odd, event(choice("ok", "stop")), odd, DONE) == "ok"


def test_a_stream_that_only_kept_the_connection_alive_was_cut_off() -> None:
    error = failure(b": keep-alive\n\n", b"event: ping\n\n", b": keep-alive\n\n")
    assert isinstance(error, StreamBrokenError)
    assert "closed the connection" in str(error)


@pytest.mark.parametrize("reason", ["stop", "eos", "eos_token", "stop_sequence", "end_turn", "tool_calls", "function_call", "COMPLETE"])
def test_every_word_for_a_regular_end_is_one(reason: str) -> None:
    assert told(event(choice("ok", reason)))[-1].finish is Finish.STOP


def test_an_unfinished_document_is_no_answer() -> None:
    whole = json.dumps(choice("ok", "stop")).encode()
    assert text(whole) == "ok"
    assert all(isinstance(failure(whole[:at]), EngineError) for at in range(len(whole)))


# Bytes


@pytest.mark.parametrize("stream", [event(choice("ok", "stop")), event(choice("ok")) + DONE, json.dumps(choice("ok", "stop")).encode()])
def test_a_byte_order_mark_and_blank_lines_before_everything_are_skipped(stream: bytes) -> None:
    for head in (BOM, b"\n\n", BOM + b"\r\n", b" \n" * 1_000):
        assert text(head + stream) == "ok"
        assert text(*bytewise(head + stream)) == "ok"


@pytest.mark.parametrize("page", [b"<!doctype html>", BOM + b"\n<html><body>", b"  <?xml version='1.0'?>"])
def test_a_web_page_is_known_by_its_first_letter(page: bytes) -> None:
    answer = Answer(OpenAI(), WHERE, stops=(), restore=str)
    with pytest.raises(EngineRefusedError, match="web page"):
        list(answer.feed(page))


def test_line_separators_of_other_standards_are_letters() -> None:
    odd = "a\u2028b\u2029c\u0085d\ufeffe"
    data = json.dumps(choice(odd, "stop"), ensure_ascii=False).encode()
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        assert text(b"data: " + data + end) == odd
        assert text(*bytewise(b"data: " + data + end)) == odd


def test_text_may_hold_any_character_that_json_can_say() -> None:
    odd = 'a\0b\x1b"\\\x7f\U0010ffff'
    assert text(event(choice(odd, "stop"))) == odd
    assert text(b'data: {"choices":[{"text":"\\ud83d\\ude00","finish_reason":"stop"}]}\n\n') == "😀"


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\ude00", b"\\ud83d\\u0041", b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\x00b"])
def test_what_is_no_text_never_becomes_text(half: bytes) -> None:
    assert isinstance(failure(b'data: {"choices":[{"text":"' + half + b'","finish_reason":"stop"}]}\n\n', DONE), StreamBrokenError)


@pytest.mark.parametrize("dialect", [OpenAI(), LlamaServer()])
@pytest.mark.parametrize("key", ["x", "error", "choices", "content"])
@pytest.mark.parametrize("end", ["", "]"])
def test_brackets_nested_without_end_break_the_answer_and_nothing_else(dialect: Dialect, key: str, end: str) -> None:
    deep = f'{{"{key}":'.encode() + b"[" * DEEP + end.encode() * DEEP + b"}"
    for stream in (b"data: " + deep + b"\n\n", deep, b"event: error\ndata: " + deep + b"\n\n"):
        failure(stream, dialect=dialect)


@pytest.mark.parametrize("number", ["-1", "9" * 5_000, "1e999", "-0", "1.5"])
def test_odd_numbers_in_what_we_do_not_need_do_no_harm(number: str) -> None:
    stream = b'data: {"created":' + number.encode() + b',"choices":[{"text":"ok","finish_reason":"stop"}]}\n\n'
    assert text(stream, DONE) == "ok"


@pytest.mark.parametrize("field", ["index", "text", "finish_reason"])
@pytest.mark.parametrize("value", ["1e999", "9" * 5_000, "[]", "{}", "true"])
def test_odd_values_in_what_we_need_break_the_answer(field: str, value: str) -> None:
    failure(f'data: {{"choices":[{{"{field}":{value}}}]}}\n\n'.encode(), event(choice("", "abort")))


def test_an_event_of_a_megabyte_is_read_and_an_answer_of_one_is_not() -> None:
    big = "x" * 1_000_000
    assert text(event(choice("ok", "stop", system_fingerprint=big))) == "ok"
    assert "does not stop" in str(failure(event(choice(big, "stop"))))
    assert "without end" in str(failure(event(choice("ok", "stop", system_fingerprint=big * 2))))
    assert "more than a completion" in str(failure(json.dumps(choice("ok", "stop", system_fingerprint=big * 2)).encode()))


def test_an_answer_in_many_small_pieces_has_an_end_too() -> None:
    piece = event(choice("x" * 1_000))
    assert "does not stop" in str(failure(*[piece] * (MAX_ANSWER // 1_000 + 1)))


# Errors in other clothes


@pytest.mark.parametrize("before", [b"", b": hi\n\n", event(choice("ret"))])
@pytest.mark.parametrize(
    "form",
    [
        b'data: {"error":%s}\n\n',
        b'data: {"error":%s,"choices":[]}\n\n',
        b"error: %s\n\n",
        b"event: error\ndata: %s\n\n",
        b'event: error\ndata: {"error":%s}\n\n',
        b'{"error":%s}\n',
        b'data: {"object":"error","inner":%s}\n\n',
        b'data: {"detail":%s}\n\n',
        b"data: error: %s\n\n",
        b"data: [ERROR] %s\n\n",
        b'data: data: {"error":%s}\n\n',
    ],
)
def test_an_error_means_the_same_wherever_it_comes_and_whatever_it_wears(form: bytes, before: bytes) -> None:
    overflow = b'{"message":"This model\'s maximum context length is 2048 tokens","code":400}'
    for end in (b"", DONE):
        error = failure(before + form % overflow + end)
        assert isinstance(error, ContextOverflowError), error
        assert error.limit_tokens == 2048


@pytest.mark.parametrize("form", [b'data: {"error":%s}\n\n', b"error: %s\n\n", b'event: error\ndata: {"error":%s}\n\n', b'{"error":%s}'])
def test_the_code_of_an_error_is_understood_in_every_form(form: bytes) -> None:
    assert isinstance(failure(form % b'{"code":503,"message":"Loading model"}'), EngineBusyError)
    assert "key" in str(failure(form % b'{"code":401,"message":"no"}'))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("error", ["context length limit " + "," * 900_000, "context length " + "1" * 900_000, "limit " * 150_000])
def test_an_error_of_a_megabyte_is_read_in_no_time(error: str) -> None:
    failure(event({"error": error}))


@pytest.mark.parametrize("nothing", [b'data: {"error":null,"choices":[]}\n\n', b"data: null\n\n", b"error: null\n\n", b"event: error\n\n"])
def test_an_error_that_is_none_is_none(nothing: bytes) -> None:
    assert text(nothing, event(choice("o")), nothing, event(choice("k", "stop")), nothing, DONE) == "ok"


def test_a_damaged_line_breaks_the_answer_even_where_a_stream_may_hold_anything() -> None:
    good = event(choice("ret"))
    for damaged in (b"ata" + good[4:], b"d" + good, b" " + good, good.replace(b"data:", b"data;"), b"\x00" + good):
        assert isinstance(failure(good, damaged, event(choice("urn 1", "stop")), DONE), StreamBrokenError)


def test_the_name_of_the_field_may_come_twice() -> None:
    once = event(choice("o")) + event(choice("k", "stop")) + DONE
    assert text(once.replace(b"data: ", b"data: data: ")) == "ok"


def test_no_text_and_no_room_is_a_full_window_but_thoughts_are_not() -> None:
    assert isinstance(failure(event(choice("", "length"))), ContextOverflowError)
    thought = said(reasoning_content="hmm") + event(choice("", "length", usage={"prompt_tokens": 9, "completion_tokens": 96}))
    error = failure(thought)
    assert not isinstance(error, ContextOverflowError)
    assert "think" in str(error)


def test_thoughts_and_calls_of_tools_are_never_text() -> None:
    thoughts = said(reasoning_content="hmm") + said(reasoning="hmm", text=None) + said(tool_calls=[{"function": {"arguments": "{}"}}])
    assert text(thoughts, event(choice("ok", "stop")), thoughts, DONE) == "ok"


# Dialects of lines, and lines where none are expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_one_document_a_line_is_a_stream_in_the_dialects_that_say_so(end: bytes) -> None:
    stream = b'{"response":"o\xe2\x80\xa8"}\n\n{"response":"k"}\r\n{"response":"","done":true}' + end
    assert text(stream, dialect=LINES) == "o\u2028k"
    assert text(*bytewise(stream), dialect=LINES) == "o\u2028k"


def test_text_of_a_line_is_given_as_soon_as_the_line_is_over() -> None:
    answer = Answer(LINES, WHERE, stops=(), restore=str)
    assert [chunk.text for chunk in answer.feed(b'{"response":"a"}\n{"resp')] == ["a"]


def test_lines_that_break_off_or_hold_an_error_are_no_answer() -> None:
    assert isinstance(failure(b'{"response":"a"}\n', dialect=LINES), StreamBrokenError)
    assert isinstance(failure(b'{"response":"a"}\n{"response":"b","done":tr', dialect=LINES), StreamBrokenError)
    assert isinstance(failure(b'"response":"a"}\n{"response":"b","done":true}\n', dialect=LINES), EngineError)
    assert isinstance(failure(b'{"response":"a"}\n{"error":"maximum context length is 2048"}\n', dialect=LINES), ContextOverflowError)


def test_bare_objects_from_the_first_on_are_read_at_the_end() -> None:
    first, last = json.dumps(choice("o")).encode(), json.dumps(choice("k", "stop")).encode()
    assert text(first + b"\n" + last + b"\n") == "ok"
    assert isinstance(failure(first + b"\n" + first + b"\n"), EngineError)


# Stop strings


def test_nothing_waits_for_a_stop_string_that_cannot_come_any_more() -> None:
    answer = Answer(OpenAI(), WHERE, stops=("<|end|>", "\n\n"), restore=str)
    seen = [[chunk.text for chunk in answer.feed(event(choice(part)))] for part in ("a < b", "c\n", "d <", "|en", "d>", "e")]
    assert seen == [["a < b"], ["c"], ["\nd "], [], ["<|end>"], ["e"]]


def test_a_stop_string_ends_the_answer_whatever_comes_behind_it() -> None:
    got = told(event(choice("a<|e")), event(choice("nd|>b")), event({"error": "x"}), stops=("<|end|>",))
    assert [chunk.text for chunk in got] == ["a", ""]
    assert got[-1].finish is Finish.STOP


def test_what_was_held_back_comes_with_the_end() -> None:
    assert text(event(choice("a<|e", "stop")), stops=("<|end|>",)) == "a<|e"
    assert isinstance(failure(event(choice("a<|e"))), StreamBrokenError)


def scored(text: str, *logprobs: Any) -> bytes:
    return said(text=text, logprobs={"token_logprobs": list(logprobs)})


def confidence(*pieces: bytes, **more: Any) -> list[tuple[str, int, float | None]]:
    return [(chunk.text, chunk.n_tokens, chunk.logprob) for chunk in told(*pieces, said(finish_reason="stop"), DONE, **more) if chunk.text]


def test_log_probabilities_are_summed_up_in_both_forms() -> None:
    assert confidence(scored("a b", -0.5, -0.25)) == [("a b", 2, -0.75)]
    assert confidence(said(text="a", logprobs={"content": [{"token": "a", "logprob": -0.5}]})) == [("a", 1, -0.5)]


def test_those_of_text_that_is_held_back_come_with_it() -> None:
    assert confidence(scored("a", -0.5), scored("", -0.25), scored("x", -1), scored("z", -2), stops=("xy",)) == [
        ("a", 1, -0.5),
        ("xz", 3, -3.25),
    ]


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ([None], (0, None)),
        ([], (0, None)),
        (["-1", [], {}], (0, None)),
        ([-9999.0], (1, -100.0)),
        ([0.3], (1, 0.0)),
        ([-1, None, -1], (2, -2.0)),
        ([-(10**400)], (1, -100.0)),
    ],
)
def test_strange_log_probabilities_do_no_harm(told: list[Any], known: tuple[int, float | None]) -> None:
    assert confidence(scored("a", *told)) == [("a", *known)]


@pytest.mark.parametrize("logprobs", [None, 1, "x", [], {}, {"token_logprobs": 1}, {"content": 1}, {"content": [1]}, {"content": [{}]}])
def test_what_is_no_list_of_log_probabilities_is_none(logprobs: Any) -> None:
    assert confidence(said(text="a", logprobs=logprobs)) == [("a", 0, None)]
