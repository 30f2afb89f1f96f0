"""The way from bytes to text, with bytes that no server would send."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk
from monkeycode_lsp.engines.remote import dialects, refusal
from monkeycode_lsp.engines.remote.dialects.base import Dialect
from monkeycode_lsp.engines.remote.stream.answer import Answer
from monkeycode_lsp.errors import EngineError
from tests.servers import choice

WHERE = refusal.Where("http://h", model="m")
STOPS = ("<|end|>", "\n\n\n", "<|e")

APIS = [api for api in get_args(get_type_hints(config.Endpoint)["api"]) if api != "auto"]
BY_NAME = {dialect.name: dialect for dialect in map(dialects.by_name, APIS)}

Event = Callable[[str, bool], Any]


def completion(said: str, is_last: bool) -> Any:  # noqa: FBT001 - one of several with one form
    return choice(said, "stop" if is_last else None)


def chat(said: str, is_last: bool) -> Any:  # noqa: FBT001 - one of several with one form
    delta = {"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": "stop" if is_last else None}
    return {"object": "chat.completion.chunk", "choices": [delta]}


def llama_server(said: str, is_last: bool) -> Any:  # noqa: FBT001 - one of several with one form
    return {"content": said, "tokens": [1], "stop": is_last} | (
        {"stop_type": "eos", "timings": {"cache_n": 1, "prompt_n": 2}} if is_last else {}
    )


def ollama(said: str, is_last: bool) -> Any:  # noqa: FBT001 - one of several with one form
    return {"model": "m", "response": said, "done": is_last} | ({"done_reason": "stop", "eval_count": 3} if is_last else {})


EVENTS: dict[str, Event] = {"llama-server": llama_server, "ollama": ollama, "mistral": chat, "chat": chat}


def outcome(dialect: Dialect, packets: Sequence[bytes]) -> tuple[str, bool]:
    """The text, and whether it was accepted as finished.  Anything but an `EngineError` is a fault of ours."""
    answer = Answer(dialect, WHERE, stops=STOPS, restore=str)
    chunks: list[Chunk] = []
    failed = False
    try:
        for packet in packets:
            chunks += answer.feed(packet)
        chunks += answer.close()
    except EngineError:
        failed = True
    assert [chunk.finish is not None for chunk in chunks] == [False] * (len(chunks) - (not failed)) + [True] * (not failed)
    text = "".join(chunk.text for chunk in chunks)
    text.encode()  # what an editor can be given
    assert not any(stop in text for stop in STOPS)
    return text, not failed


def written(dialect: Dialect, parts: Sequence[str], *, end: bytes, is_ascii: bool, done: bool) -> bytes:
    """A good stream."""
    event = EVENTS.get(dialect.name, completion)
    values = [json.dumps(event(part, at == len(parts)), ensure_ascii=is_ascii).encode() for at, part in enumerate(parts, 1)]
    if dialect.lines:
        return b"".join(value + end for value in values)
    if done:
        values.append(b"[DONE]")
    return b"".join(b"data: " + value + end + end for value in values)


def is_document(stream: bytes) -> bool:
    """Whether it is one from beginning to end, of a server that does not stream."""
    try:
        return isinstance(json.loads(stream.removeprefix(b"\xef\xbb\xbf")), dict)
    except ValueError:
        return False


def cut(stream: bytes, at: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(at), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


texts = st.text(st.sampled_from("ab \n<|end>{}[]\":'é漢😀\u2028\u0085\ufeff\x00") | st.characters(exclude_categories=["Cs"]), max_size=8)
"""Without halves of characters, which no JSON can say."""

streams: Any = st.builds(
    dict,
    parts=st.lists(texts, min_size=1, max_size=5),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    is_ascii=st.booleans(),
    done=st.booleans(),
)

fragments = st.sampled_from(
    [
        b"data:",
        b"data: ",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n\r\n",
        b": ",
        b"event: error",
        b"error: ",
        b"[DONE]",
        b"{",
        b"}",
        b'"',
        b"null",
        b'{"choices":[',
        b'{"index":0,"text":"ab","finish_reason":null}',
        b'{"text":"c","finish_reason":"stop"}',
        b"]}",
        b'{"content":"ab","stop":false}',
        b'{"content":"","stop":true}',
        b'{"response":"ab","done":false}',
        b'{"response":"","done":true}',
        b'{"error":{"message":"x"}}',
        b"\xef\xbb\xbf",
        b"<html>",
        b"\\ud800",
        b"\xff",
        b"-1e999",
    ]
)
noise = st.lists(fragments | st.binary(max_size=6), max_size=24).map(b"".join) | st.binary(max_size=80)

each_dialect = pytest.mark.parametrize("dialect", BY_NAME.values(), ids=BY_NAME)


@each_dialect
@settings(max_examples=150)
@given(stream=noise, data=st.data())
def test_any_bytes_end_in_text_or_an_error_of_ours_however_they_are_cut(dialect: Dialect, stream: bytes, data: st.DataObject) -> None:
    text, is_finished = outcome(dialect, [stream])
    if is_finished and text:
        assert any(sign in stream for sign in (b"[DONE]", b'"finish_reason":"stop"', b'"stop":true', b'"done":true')) or is_document(stream)
    packets = cut(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    assert outcome(dialect, packets) == (text, is_finished)


@each_dialect
@settings(max_examples=60)
@given(stream=streams, data=st.data())
def test_how_a_good_stream_is_cut_changes_nothing(dialect: Dialect, stream: dict[str, Any], data: st.DataObject) -> None:
    wire = written(dialect, **stream)
    in_one = outcome(dialect, [wire])
    said = "".join(stream["parts"])
    ends = [at for at in map(said.find, STOPS) if at >= 0]
    assert in_one == (said[: min(ends, default=len(said))], True)
    packets = cut(wire, data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    assert outcome(dialect, packets) == in_one
    assert outcome(dialect, [wire[at : at + 1] for at in range(len(wire))]) == in_one


@each_dialect
@settings(max_examples=60)
@given(stream=streams, data=st.data())
def test_a_stream_that_was_cut_off_is_never_finished(dialect: Dialect, stream: dict[str, Any], data: st.DataObject) -> None:
    wire = written(dialect, **stream)
    whole, _ = outcome(dialect, [wire])
    text, is_finished = outcome(dialect, [wire[: data.draw(st.integers(0, len(wire)))]])
    assert whole.startswith(text)
    assert not is_finished or text == whole


def mutilated(wire: bytes, data: st.DataObject) -> tuple[bytes, int]:
    """With one byte dropped, doubled or with one bit turned over; and where."""
    at = data.draw(st.integers(0, len(wire) - 1))
    byte = wire[at]
    put = data.draw(st.sampled_from([b"", bytes([byte, byte]), *(bytes([byte ^ 1 << bit]) for bit in range(8))]))
    return wire[:at] + put + wire[at + 1 :], at


def is_still_json(wire: bytes, at: int) -> bool:
    """Whether the line at this byte says something that only its sender could know to be wrong."""
    start = max(wire.rfind(b"\n", 0, at), wire.rfind(b"\r", 0, at)) + 1
    line = wire[start:].replace(b"\r", b"\n").partition(b"\n")[0]
    try:
        return isinstance(json.loads(line.removeprefix(b"data:")), dict)
    except (ValueError, RecursionError):
        return False


@each_dialect
@settings(max_examples=150)
@given(stream=streams, data=st.data())
def test_a_stream_with_a_damaged_byte_says_the_same_or_nothing(dialect: Dialect, stream: dict[str, Any], data: st.DataObject) -> None:
    wire = written(dialect, **stream)
    whole, _ = outcome(dialect, [wire])
    damaged, at = mutilated(wire, data)
    text, is_finished = outcome(dialect, [damaged])
    assert not is_finished or text == whole or is_still_json(damaged, at)
