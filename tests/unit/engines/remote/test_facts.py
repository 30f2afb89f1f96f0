"""What servers say, read with caution."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from monkeycode_lsp.engines.remote import facts

DEEP = b"[" * 100_000 + b"]" * 100_000


class Entry(msgspec.Struct):
    id: str


class Said(msgspec.Struct):
    number: Any = None


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"<html>",
        b'{"number":',
        DEEP,
        b'{"other":' + DEEP + b"}",
        b'{"number":' + DEEP + b"}",
        b'{"number":' + b"9" * 5000 + b"}",
        b'{"number":1e400}',
        b'{"number":"\\ud800"}',
    ],
)
def test_what_cannot_be_read_is_nothing(data: bytes | None) -> None:
    assert facts.read(data, Said) is None
    assert not facts.entries(data, "data", Entry)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (4096, 4096),
        (4096.5, 4096),
        ("4096", 4096),
        ("4096.0", 4096),
        (-1, None),
        ("-1", None),
        (True, None),
        (None, None),
        ([1], None),
        ("", None),
        ("many", None),
        ("nan", None),
        ("inf", None),
        (float("inf"), None),
        (10**400, None),
        ("9" * 5000, None),
        (10**18, None),
    ],
)
def test_a_count_is_a_number_however_it_is_written(value: Any, count: int | None) -> None:
    assert facts.count(value) == count


@pytest.mark.parametrize(
    ("value", "window"), [(256, 256), (10_000_000, 10_000_000), ("32768", 32_768), (255, None), (5, None), (-1, None), (10_000_001, None)]
)
def test_a_window_is_one_that_a_model_can_have(value: Any, window: int | None) -> None:
    assert facts.window(value) == window


@pytest.mark.parametrize("value", [None, 5, ["a"], "a\nb", "a\x1b[31m", "a" * 513, "\ud800"])
def test_a_name_is_one_that_can_be_shown(value: Any) -> None:
    assert facts.name(value) == ""
    assert facts.name("org/Näme-7B:q4 (new)") == "org/Näme-7B:q4 (new)"


def test_entries_that_cannot_be_read_are_left_out() -> None:
    body = b'{"data":[{"id":"a"},{"id":null},7,null,[],{"id":"b","more":[1]},{}]}'
    assert facts.entries(body, "data", Entry) == [Entry("a"), Entry("b")]
    assert facts.entries(b'{"data":null}', "data", Entry) == []
    assert facts.entries(b'{"models":[]}', "data", Entry) is None
    assert facts.entries(b'{"data":{"id":"a"}}', "data", Entry) is None


def test_a_list_whose_end_is_missing_is_read_as_far_as_it_is_whole() -> None:
    whole = json.dumps({"object": "list", "data": [{"id": str(number), "rights": [{"a": {"b": "}"}}]} for number in range(50)]}).encode()
    for end in range(whole.index(b'"49"'), len(whole)):
        found = facts.entries(whole[:end], "data", Entry)
        assert found is not None
        assert len(found) in (49, 50)
