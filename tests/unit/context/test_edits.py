from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import edits
from monkeycode_lsp.context.edits import Edits
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.text import Change, Document, Encoding

A, B = "file:///w/a.py", "file:///w/b.py"
AT_B = Place(B, "python", "b.py", 0, 0, 20)


class Editor:
    """Documents that are edited, with the notifications that the server would pass on."""

    def __init__(self) -> None:
        self.edits = Edits()
        self.documents: dict[str, Document] = {}

    def open(self, uri: str, text: str) -> None:
        self.documents[uri] = document = Document(uri, "python", 1, text, Encoding.UTF32)
        self.edits.opened(uri, uri.rsplit("/", 1)[-1], "python", document.lines)

    def replace(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        document = self.documents[uri]
        document.apply(Change(text, start, end))
        self.edits.note(uri, document.lines, start[0], end[0] + 1, start[0] + text.count("\n") + 1)

    def type(self, uri: str, line: int, column: int, text: str) -> None:
        for index, letter in enumerate(text):
            self.replace(uri, (line, column + index), (line, column + index), letter)

    def texts(self, place: Place = AT_B) -> list[str]:
        return [one.text for one in self.edits.recent(place)]


def numbered(n: int = 100) -> str:
    return "".join(f"line_{k} = {k}\n" for k in range(n))


def editor(n: int = 100) -> Editor:
    made = Editor()
    made.open(A, numbered(n))
    made.open(B, numbered(n))
    return made


def test_typing_is_one_edit_and_is_quoted_as_it_stands_now_with_lines_around() -> None:
    made = editor()
    made.type(A, 50, 0, "new_name = 1; ")
    (found,) = made.edits.recent(AT_B)
    assert found.text == "line_48 = 48\nline_49 = 49\nnew_name = 1; line_50 = 50\nline_51 = 51\nline_52 = 52"
    assert (found.path, found.kind, found.score) == ("a.py", "edit", 1)


def test_the_latest_edit_comes_first_and_is_worth_most() -> None:
    made = editor()
    for line in (10, 50, 30):
        made.type(A, line, 0, "x")
    found = made.edits.recent(AT_B)
    assert [one.text.split("\n")[2] for one in found] == ["xline_30 = 30", "xline_50 = 50", "xline_10 = 10"]
    assert found[0].score > found[1].score > found[2].score


def test_an_edit_in_another_language_is_worth_less() -> None:
    made = editor()
    made.type(A, 50, 0, "x")
    scores = [made.edits.recent(Place(B, language, "b", 0, 0, 20))[0].score for language in ("python", "css")]
    assert scores[0] > scores[1] > 0


def test_lines_put_in_above_move_an_edit_and_do_not_change_what_is_quoted() -> None:
    made = editor()
    made.type(A, 50, 0, "changed ")
    before = made.texts()
    made.replace(A, (0, 0), (0, 0), "one\ntwo\nthree\n")
    assert made.texts()[1] == before[0]


@pytest.mark.parametrize("line", [10, 50])
def test_an_edit_that_was_undone_is_none(line: int) -> None:
    made = editor()
    made.type(A, 30, 0, "kept")
    made.replace(A, (line, 0), (line, 0), "a\nb\nc\n")
    assert len(made.texts()) == 2
    made.replace(A, (line, 0), (line + 3, 0), "")
    assert [text.split("\n")[2] for text in made.texts()] == ["keptline_30 = 30"]


def test_what_was_deleted_is_never_shown() -> None:
    made = editor()
    made.type(A, 50, 0, "secret ")
    made.replace(A, (50, 0), (51, 0), "")
    assert not any("secret" in text for text in made.texts())
    made.replace(A, (0, 0), (99, 0), "")
    assert made.texts() == [] or not any("secret" in text for text in made.texts())


def test_edits_near_the_cursor_are_left_out_and_far_ones_of_the_same_document_are_not() -> None:
    made = editor(300)
    made.type(A, 50, 0, "near ")
    made.type(A, 200, 0, "far ")
    found = made.texts(Place(A, "python", "a.py", 60, 40, 80))
    assert [text.split("\n")[2] for text in found] == ["far line_200 = 200"]


def test_of_a_long_edit_the_part_that_was_edited_last_is_quoted() -> None:
    made = editor()
    made.replace(A, (50, 0), (50, 0), "".join(f"added_{n}\n" for n in range(30)))
    made.type(A, 70, 0, "x")
    (text,) = made.texts()
    assert len(text.split("\n")) == edits.QUOTED_LINES
    assert "xadded_20" in text


def test_a_formatters_or_generators_edit_is_not_quoted() -> None:
    made = editor()
    made.replace(A, (0, 0), (99, 0), "".join(f"formatted_{n}\n" for n in range(99)))
    assert made.texts() == []


def test_edits_outlive_closing_and_reopening() -> None:
    made = editor()
    made.type(A, 50, 0, "kept ")
    before = made.texts()
    made.edits.closed(A)
    made.documents[A].apply(Change("gone", (50, 0), (50, 4)))
    assert made.texts() == before
    made.open(A, numbered().replace("line_50 =", "kept line_50 ="))
    assert made.texts() == before
    made.replace(A, (50, 0), (50, 5), "")
    assert made.texts() == []


def test_a_file_that_says_something_else_when_it_comes_back_has_no_edits() -> None:
    made = editor()
    made.type(A, 50, 0, "kept ")
    made.edits.closed(A)
    made.open(A, numbered())
    assert made.texts() == []


def test_a_deleted_file_is_not_quoted_and_an_open_one_stays() -> None:
    made = editor()
    made.type(A, 50, 0, "kept ")
    made.edits.forget(A)
    assert made.texts()
    made.edits.closed(A)
    made.edits.forget(A)
    assert made.texts() == []


def test_a_whole_new_text_is_an_edit_where_it_differs() -> None:
    made = editor()
    made.type(A, 10, 0, "first ")
    document = made.documents[A]
    document.apply(Change(document.text.replace("line_70 =", "second line_70 =")))
    made.edits.replaced(A, document.lines)
    assert [text.split("\n")[2] for text in made.texts()] == ["second line_70 = 70", "first line_10 = 10"]
    made.edits.replaced(A, list(document.lines))
    assert len(made.texts()) == 2


def test_the_oldest_edits_of_a_document_are_forgotten() -> None:
    made = editor(400)
    for line in range(0, 400, 10):
        made.type(A, line, 0, "x")
    found = made.edits.recent(AT_B, most=100)
    assert len(found) == edits.MOST_REGIONS
    assert all("xline_" in one.text for one in found)
    assert found[-1].text.split("\n")[2] == "xline_240 = 240"


def test_the_documents_edited_longest_ago_are_forgotten() -> None:
    made = Editor()
    uris = [f"file:///w/{n}.py" for n in range(edits.MOST_DOCUMENTS + 3)]
    for uri in uris:
        made.open(uri, numbered(20))
    for index, uri in enumerate(uris):
        made.type(uri, 5, 0, f"only_{index} ")
    paths = [one.path for one in made.edits.recent(AT_B, most=100)]
    assert len(paths) == edits.MOST_DOCUMENTS
    assert "0.py" not in paths
    made.type(uris[0], 8, 0, "again ")
    assert "0.py" in [one.path for one in made.edits.recent(AT_B, most=100)]


def test_unknown_documents_and_data_do_no_harm() -> None:
    made = editor()
    made.edits.note("file:///w/unknown.py", ["x"], 0, 1, 1)
    made.edits.replaced("file:///w/unknown.py", ["x"])
    made.edits.closed("file:///w/unknown.py")
    made.type(A, 50, 0, "\0")
    made.replace(A, (80, 0), (80, 0), "x" * 5_000_000)
    assert made.texts() == []


@given(st.integers(), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 4), st.integers(0, 4)), max_size=60))
def test_regions_say_exactly_where_a_document_differs(seed: int, changes: list[tuple[int, int, int]]) -> None:
    chance = random.Random(seed)  # noqa: S311 - for lines of a test
    made = Editor()
    made.open(A, "".join(f"{chance.random()}\n" for _ in range(200)))
    document = made.documents[A]
    for line, n_out, n_in in changes:
        first = min(line, len(document.lines) - 1)
        stop = min(first + n_out, len(document.lines) - 1)
        made.replace(A, (first, 0), (stop, 0), "".join(f"{chance.random()}\n" for _ in range(n_in)))
    kept = made.edits._documents[A]
    rebuilt, at = [], 0
    for region in kept.regions:
        rebuilt += kept.before[at : region.old_first] + list(document.lines[region.first : region.stop])
        assert region.first <= region.stop
        assert region.old_first <= region.old_stop
        at = region.old_stop
    assert rebuilt + kept.before[at:] == list(document.lines)
