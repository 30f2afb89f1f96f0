from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.remote.stream.sse import EventParser, EventTooLongError, LostEventError


def events(*pieces: bytes) -> list[bytes]:
    parser = EventParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    return [*found, *parser.end()]


def heard(*pieces: bytes) -> list[bytes | None]:
    """The events, and `None` where one was lost."""
    found: list[bytes | None] = []
    parser = EventParser()
    try:
        for piece in pieces:
            for event in parser.feed(piece):
                found.append(event)  # noqa: PERF402 - those before the lost one count
        for event in parser.end():
            found.append(event)  # noqa: PERF402 - as above
    except LostEventError:
        found.append(None)
    return found


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_end_ends_a_line(end: bytes) -> None:
    assert events(end.join([b"data: a", b"", b"data: b", b"", b""])) == [b"a", b"b"]


def test_a_crlf_cut_in_two_is_one_line_end() -> None:
    assert events(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_the_blank_after_the_colon_may_be_missing_and_only_one_is_taken() -> None:
    assert events(b"data:a\n\ndata:  b\n\n") == [b"a", b" b"]


def test_comments_and_other_fields_and_bare_data_are_no_events() -> None:
    noise = b": keep-alive\n\n\n\nevent: ping\n\nretry: 3000\nid: 7\n\ndata:\n\ndata\n\ndatabase: x\n\n"
    assert events(noise + b"event: x\ndata: a\n\n" + noise) == [b"a"]


def test_several_data_lines_are_one_event() -> None:
    assert events(b"data: {\ndata: }\n\n") == [b"{\n}"]


def test_unicode_line_separators_inside_json_end_nothing() -> None:
    text = "a\u2028b\u2029c\x0bd\x0ce\x85f"
    data = json.dumps(text, ensure_ascii=False).encode()
    assert [json.loads(event) for event in events(b"data: " + data + b"\n\n")] == [text]


def test_characters_cut_over_packets_stay_whole() -> None:
    stream = "data: é漢😀\n\n".encode()
    assert [event.decode() for event in events(*(stream[at : at + 1] for at in range(len(stream))))] == ["é漢😀"]


def test_a_byte_order_mark_is_skipped() -> None:
    assert events(b"\xef\xbb", b"\xbfdata: a\n\n") == [b"a"]
    assert events(b"\xef\xbb", b'\xbf{"a": 1}') == [b'{"a": 1}']


@pytest.mark.parametrize("damaged", [b'ata: {"a": 1}', b'data; {"a": 1}', b' data: {"a": 1}', b'"a": 1}', b'\x00{"a": 1}'])
def test_an_object_in_a_line_that_no_stream_has_was_an_event(damaged: bytes) -> None:
    parser = EventParser()
    with pytest.raises(LostEventError):
        list(parser.feed(b"data: a\n\n" + damaged + b"\n\n"))


def test_other_lines_that_no_stream_has_are_noted() -> None:
    parser = EventParser()
    assert list(parser.feed(b": c\nid: 1\nretry: 2\nevent: x\n\n")) == []
    assert not parser.is_strange
    assert list(parser.feed(b"Please log in.\n")) == []
    assert parser.is_strange


@pytest.mark.parametrize(
    ("said", "as_data"),
    [
        (b"error: boom", b'{"error":"boom"}'),
        (b'error: {"code":1}', b'{"error":{"code":1}}'),
        (b'event: error\ndata: {"code":1}', b'{"error":{"code":1}}'),
        (b'event: error\ndata: {"error":{"code":1}}', b'{"error":{"code":1}}'),
        (b'event: error\ndata: {"error":null,"code":1}', b'{"error":{"error":null,"code":1}}'),
        (b"error: null", b"null"),
        (b'data: data: {"a":1}', b' {"a":1}'),
    ],
)
def test_errors_get_one_form_and_names_said_twice_are_dropped(said: bytes, as_data: bytes) -> None:
    assert events(said + b"\n\n") == [as_data]


def test_the_last_event_needs_no_blank_line() -> None:
    assert events(b"data: a\n\ndata: [DONE]") == [b"a", b"[DONE]"]


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: " + b"x" * 30 + b"\n"])
def test_what_has_no_end_is_not_held_for_ever(piece: bytes) -> None:
    parser = EventParser(max_event_bytes=100)
    with pytest.raises(EventTooLongError):
        list(itertools.chain.from_iterable(parser.feed(piece) for _ in range(9)))


lines = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data:",
        b"data",
        b": c",
        b"event: e",
        b"",
        b"",
        "data: é漢😀\u2028".encode(),
        b"datum",
        b"\xef\xbb\xbfdata: y",
    ]
)
streams = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12).map(
    lambda parts: b"".join(a + b for a, b in parts)
)


@given(streams | st.binary(max_size=60), st.data())
def test_how_the_stream_is_cut_changes_nothing(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    assert heard(*(stream[a:b] for a, b in itertools.pairwise(edges))) == heard(stream)
