from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import similar
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.context.similar import Chunked
from monkeycode_lsp.domain import Window

HERE = Place("file:///w/here.py", "python", "here.py", 0, 0, 40)


def body(name: str, n: int = 20) -> list[str]:
    return [f"{name}_{line} = {name}_factory({name}_argument)\n" for line in range(n)]


def document(lines: list[str], *, name: str = "other.py", language: str = "python") -> Chunked:
    return similar.chunked(f"file:///w/{name}", 1, name, language, lines)


def window(text: str) -> frozenset[str]:
    return similar.query(Window(prefix=text, suffix="", language="python", path="here.py"))


def test_the_chunk_with_the_rare_words_of_the_cursor_is_found() -> None:
    found = similar.find(
        window("invoice_12 = invoice_factory("), [document(body("parcel", 60) + body("invoice") + body("parcel", 60))], HERE
    )
    assert "invoice_12 =" in found[0].text
    assert (found[0].path, found[0].kind) == ("other.py", "similar")
    assert found[0].score > 0


def test_words_that_everything_has_do_not_hide_the_one_that_tells() -> None:
    common = [f"logger = get_logger(name_{n})\n" for n in range(60)]
    telling = [*common[:-1], "frobnicate(logger)\n"]
    found = similar.find(window("logger = get_logger(name)\nfrobnicate("), [document(common), document(telling, name="b.py")], HERE)
    assert found[0].path == "b.py"


def test_one_rare_word_tells_more_than_two_common_ones() -> None:
    common = [document(["common_one common_two\n"], name=f"{n}.py") for n in range(20)]
    rare = document(["rare_one other_one\n"], name="rare.py")
    assert similar.find(window("common_one common_two rare_one"), [*common, rare], HERE)[0].path == "rare.py"


def test_the_best_comes_first_and_chunks_of_one_document_do_not_overlap() -> None:
    found = similar.find(window("invoice_3 invoice_factory invoice_argument"), [document(body("invoice", 200))], HERE, most=8)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    lines = [line for one in found for line in one.text.split("\n")]
    assert len(lines) == len(set(lines))


def test_a_far_chunk_of_the_document_itself_is_found_and_a_shown_one_is_not() -> None:
    lines = body("invoice", 60) + body("parcel", 60) + body("invoice", 60)
    own = similar.chunked(HERE.uri, 1, HERE.path, "python", lines)
    found = similar.find(window("invoice_3 = invoice_factory(invoice_argument)"), [own], HERE, most=20)
    assert any("invoice_50 =" in one.text for one in found)
    text = "".join(lines)
    assert all(text.rindex(one.text) > text.index(f"invoice_{HERE.stop} =") for one in found)
    assert similar.find(window("invoice_3"), [own], Place(HERE.uri, "python", HERE.path, 90, 0, 180)) == []


def test_another_language_must_be_much_alike_and_comes_after_the_same_one() -> None:
    wanted = window("invoice_3 = invoice_factory(invoice_argument)")
    go = document(body("invoice"), name="other.go", language="go")
    python = document(body("invoice", 3) + body("parcel", 17), name="other.py")
    assert [one.path for one in similar.find(wanted, [go, python], HERE)] == ["other.py", "other.go"]
    alien = document(["x = invoice_argument\n", *body("parcel", 19)], name="other.go", language="go")
    wanted = window("invoice_argument invoice_factory " + " ".join(f"invoice_{n}" for n in range(12)))
    assert [one.path for one in similar.find(wanted, [alien, document(body("invoice"))], HERE)] == ["other.py"]


def test_typescript_and_javascript_are_one_language() -> None:
    page = Place("u", "typescriptreact", "page.tsx", 0, 0, 1)
    one = document(body("invoice"), name="a.js", language="javascript")
    other = document(body("invoice"), name="b.tsx", language="typescriptreact")
    scores = [found.score for found in similar.find(window("invoice_3 invoice_factory"), [one, other], page)]
    assert len(scores) == 2
    assert scores[0] == scores[1]


def test_nothing_is_found_where_nothing_is_shared() -> None:
    assert similar.find(window("zebra"), [document(body("invoice"))], HERE) == []
    assert similar.find(frozenset(), [document(body("invoice"))], HERE) == []
    assert similar.find(window("invoice_1"), [], HERE) == []


def test_of_a_long_document_the_lines_around_the_last_visit_are_read() -> None:
    lines = [f"name_{n} = {n}\n" for n in range(100_000)]
    read = similar.chunked("u", 1, "long.py", "python", lines, around=50_000)
    assert len(read.lines) == similar.MOST_LINES
    assert read.lines[0] == f"name_{read.first} = {read.first}"
    assert read.first < 50_000 < read.first + len(read.lines)
    assert similar.find(window("name_50010"), [read], HERE)
    assert similar.chunked("u", 1, "long.py", "python", lines, around=99_999).lines[-1] == "name_99999 = 99999"


def test_data_is_not_quoted() -> None:
    for data in ("x = 1; " * 700_000, "a\0b_name\n"):
        read = document([*body("invoice", 5), data, *body("invoice", 5)])
        assert similar.find(window("invoice_3 invoice_factory a b_name"), [read], HERE) == []
        assert sum(map(len, read.lines)) < 10_000


def test_where_everything_has_all_words_what_was_looked_up_decides() -> None:
    same = [f"word_{n} other_{n}\n" for n in range(20)] * 100
    one = document(same)
    documents = [msgspec.structs.replace(one, uri=f"file:///w/{n}.py", path=f"{n}.py") for n in range(60)]
    found = similar.find(similar.query(Window("".join(same[:20]), "", "python", "here.py")), documents, HERE)
    assert len(found) == 8
    assert {one.path for one in found} <= {f"{n}.py" for n in range(similar.MOST_DOCUMENTS)}


@given(st.lists(st.text(max_size=80), max_size=200), st.text(max_size=300))
def test_no_text_makes_it_fail(lines: list[str], text: str) -> None:
    read = document(lines)
    for one in similar.find(window(text + "\n".join(lines[:3])), [read, read], HERE):
        assert one.text
        assert 0 < one.score <= 1
