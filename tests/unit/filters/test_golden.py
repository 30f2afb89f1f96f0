"""Every golden case: streamed letter by letter, cut where it is complete, cleaned, inserted."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from monkeycode_lsp import filters, stops
from monkeycode_lsp.domain import Window

GOLDEN = Path(__file__).parents[2] / "golden"


def cases() -> list[Any]:
    tables = {path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["case"] for path in sorted(GOLDEN.glob("*.toml"))}
    return [pytest.param(case, id=f"{name}: {case['name']}") for name, table in tables.items() for case in table]


def window(document: str, language: str) -> Window:
    prefix, cursor, suffix = document.replace("\r\n", "\n").partition("‸")
    assert cursor, "the document has no cursor"
    return Window(prefix=prefix, suffix=suffix, language=language, path="here")


def streamed(answer: str, place: Window, plan: stops.Plan) -> str:
    for end in range(1, len(answer) + 1):
        stop = stops.find(answer[:end], place, plan)
        if stop is not None:
            return answer[: stop.at]
    return answer


@pytest.mark.parametrize("case", cases())
def test_golden(case: dict[str, str]) -> None:
    place = window(case["document"], case["language"])
    plan = stops.plan(place, "auto")
    insertion = filters.clean(streamed(case["answer"], place, plan), place, plan=plan)
    assert insertion == case["insertion"]
    assert place.prefix + insertion + place.suffix == case["result"]


@pytest.mark.parametrize("case", cases())
def test_the_whole_answer_at_once_gives_nothing_that_a_stream_would_not(case: dict[str, str]) -> None:
    place = window(case["document"], case["language"])
    plan = stops.plan(place, "auto")
    stop = stops.find(case["answer"], place, plan)
    at_once = case["answer"][: stop.at] if stop else case["answer"]
    assert filters.clean(at_once, place, plan=plan) == case["insertion"]


def test_the_name_of_the_filter_that_left_nothing_is_told() -> None:
    place = window("ret‸urn total", "python")
    plan = stops.plan(place, "auto")
    assert filters.explained("urn total", place, plan=plan) == filters.Cleaned("", emptied_by="without rest of line")


def test_a_rule_of_taste_is_off_when_the_user_asks() -> None:
    place = window("def f():\n    ‸\n    total = a + b\n", "python")
    plan = stops.plan(place, "auto")
    assert filters.clean("total = a+b", place, plan=plan) == ""
    assert filters.clean("total = a+b", place, plan=plan, explicit=True) == "total = a+b"
