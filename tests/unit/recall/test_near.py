"""Drafts: what is offered at places that are like others, and what must not be."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.recall import passages
from monkeycode_lsp.recall.blocks import Block
from monkeycode_lsp.recall.near import Near
from monkeycode_lsp.recall.shape import LONGEST, Lexer
from tests.unit.places import at


def said(there, text, **more):
    near = Near()
    near.add("s", at(there, **more), text)
    return near


def learned(text, *, language="python", scope="s", uri="file:///w/other.py"):
    near = Near()
    near.learn(scope, uri, language, text.splitlines(keepends=True))
    while near.read():
        pass
    return near


LOOP = "def show(users):\n    for user in users:\n        ‸\n"
OTHER_LOOP = "def show(pages):\n    for page in pages:\n        ‸\n"

RENAMED = {
    "a loop": (LOOP, "print(user)", OTHER_LOOP, "print(page)"),
    "compound names": (
        "def get_user(self, user_id):\n    ‸",
        "user = self.users.get(user_id)\n    return UserView(user)",
        "def get_page(self, page_id):\n    ‸",
        "page = self.pages.get(page_id)\n    return PageView(page)",
    ),
    "camel case": (
        "  const userList = loadUsers(userId);\n  check(userList);\n  ‸",
        "return userList.map(showUser);",
        "  const pageList = loadPages(pageId);\n  check(pageList);\n  ‸",
        "return pageList.map(showPage);",
    ),
    "strings stay": (
        "def test_add(cart):\n    cart.put(1)\n    ‸",
        "assert cart.says('the cart') == cart",
        "def test_add(bag):\n    bag.put(2)\n    ‸",
        "assert bag.says('the cart') == bag",
    ),
    "in the middle of a line": ("def f(a):\n    one = load(a)\n    return ‸", "one.strip()", "def f(a):\n    two = load(a)\n    return ‸", "two.strip()"),
    "at the end of a line": (
        "import os\n\ndef f(a):‸",
        "\n    return os.stat(a)",
        "import os\n\ndef f(name):‸",
        "\n    return os.stat(name)",
    ),
    "further in": (LOOP, "if user:\n            print(user)", "if x:\n    def show(pages):\n        for page in pages:\n            ‸\n", "if page:\n                print(page)"),
}  # fmt: skip


@pytest.mark.parametrize("case", RENAMED)
def test_the_same_shape_with_other_names_is_offered_with_those_names(case):
    there, text, here, expected = RENAMED[case]
    assert said(there, text).find("s", at(here)).text == expected
    assert said(there, text).find("s", at(here)).source == "renamed"


@pytest.mark.parametrize(
    ("there", "text", "here"),
    [
        ("for a in b:\n    use(a, b)\n    ‸", "print(a, b)", "for c in c:\n    use(c, c)\n    ‸"),
        ("for a in a:\n    use(a, a)\n    ‸", "print(a, a)", "for c in d:\n    use(c, d)\n    ‸"),
        (LOOP, "print(user, page)", OTHER_LOOP),
        ("secret = 1\ndef f(user):\n    save(user)\n    ‸", "print(user, secret)", "open()\ndef f(page):\n    save(page)\n    ‸"),
        ("def f(user):\n    save(user)\n    ‸", "print(user)", "def f(page):\n    save(page, 1)\n    ‸"),
    ],
    ids=[
        "two names for one",
        "one name for two",
        "two names would become one",
        "a name of that place",
        "another shape",
    ],
)
def test_names_that_cannot_be_told_apart_or_a_shape_that_differs_are_no_draft(there, text, here):
    assert said(there, text).draft("s", at(here)) == ""


def test_a_line_that_is_further_in_at_one_place_only_tells_nothing():
    there, text = "for old in item:\n    save(user)\n    ‸", "print(item)"
    assert said(there, text).draft("s", at("for old in thing:\n    save(page)\n    ‸")) == "print(thing)"
    assert said(there, text).draft("s", at("for old in thing:\nsave(page)\n‸")) == "print(item)"


def test_where_one_line_above_differs_the_text_is_offered_as_it_is():
    there = "import csv\n\ndef rows(path):\n    rows = []\n    next(reader)\n    ‸"
    found = said(there, "for row in reader:\n        rows.append(row)").find("s", at(there.replace("next(", "header = next(")))
    assert (found.text, found.source) == ("for row in reader:\n        rows.append(row)", "edited")
    assert said(there, "for row in reader:").draft("s", at(there.replace("next(", "h = next(").replace("[]", "()"))) == ""


DOCUMENT = "import logging\n\ndef main(argv=None):\n    parser = make_parser()\n    args = parser.parse(argv)\n    return run(args)\n\nif x:\n    pass\n"


def test_what_follows_the_same_lines_in_another_document_is_offered_up_to_the_end_of_the_block():
    near = learned(DOCUMENT)
    here = at("# mine\n\ndef main(argv=None):\n    parser = make_parser()\n    ‸\n")
    assert near.find("s", here).text == "args = parser.parse(argv)\n    return run(args)"
    assert near.find("s", here).source == "repeated"
    typed = at("# mine\n\ndef main(argv=None):\n    parser = make_parser()\n    args = par‸\n")
    assert near.draft("s", typed) == "ser.parse(argv)", "one statement was begun, and no more would be shown"
    near.forget("file:///w/other.py")
    assert near.draft("s", here) == ""


def test_what_the_prompt_holds_as_it_is_needs_no_draft():
    block = "def main(argv=None):\n    parser = make_parser()\n    args = parser.parse(argv)\n"
    here = at(f"{block}\n\ndef main(argv=None):\n    parser = make_parser()\n    ‸")
    assert learned(block).draft("s", here) == ""


def test_what_the_prompt_holds_with_other_names_is_offered():
    here = at("def get_user(self, user):\n    check(user)\n    self.users.add(user)\n\ndef get_page(self, page):\n    check(page)\n    ‸")
    assert Near().draft("s", here) == "self.pages.add(page)"


def test_the_text_below_the_cursor_is_not_offered_again():
    near = learned("a = one()\nb = two()\nc = three()\nd = four()\n")
    assert near.draft("s", at("a = one()\nb = two()\n‸\nc = three()\nd = four()\n")) == ""
    assert near.draft("s", at("a = one()\nb = two()\n‸\nd = four()\n")) == "c = three()"


def test_what_the_editor_has_closed_is_not_offered_again():
    near = learned("a = one()\nb = two()\nprint(one, two, three)\n")
    assert near.draft("s", at("a = one()\nb = two()\nprint(‸)\n")) == "one, two, three"
    assert near.draft("s", at("a = one()\nb = two()\nprint(‸one, x)\n")) == ""


def test_a_document_that_is_learned_again_replaces_itself_and_the_same_text_costs_no_reading():
    near = learned(DOCUMENT)
    here = at("def main(argv=None):\n    parser = make_parser()\n    ‸\n")
    near.learn("s", "file:///w/other.py", "python", DOCUMENT.splitlines(keepends=True))
    assert near.draft("s", here), "nothing is to be read again"
    near.learn("s", "file:///w/other.py", "python", DOCUMENT.replace("args", "options").splitlines(keepends=True))
    assert near.draft("s", here) == ""
    assert not near.read()
    assert near.draft("s", here).startswith("options = ")


def test_documents_are_read_in_slices():
    near = Near()
    near.learn("s", "file:///w/a.py", "python", [f"a{n} = {n}\n" for n in range(600)])
    assert [near.read(), near.read(), near.read()] == [True, True, False]


@given(st.sampled_from(["s", "t"]), st.sampled_from(["python", "go"]), st.sampled_from(["s", "t"]), st.sampled_from(["python", "go"]))
def test_no_draft_crosses_scopes_or_languages(scope, language, other_scope, other_language):
    near = learned(DOCUMENT, scope=scope, language=language)
    near.add(scope, at(LOOP, language=language), "print(user)")
    is_same = (scope, language) == (other_scope, other_language)
    for here in (OTHER_LOOP, LOOP, "def main(argv=None):\n    parser = make_parser()\n    ‸\n"):
        assert bool(near.draft(other_scope, at(here, language=other_language))) == is_same


def test_a_flood_of_suggestions_is_bounded():
    said = passages.Said()
    for n in range(5_000):
        said.add(f"scope {n % 50}", at(f"a{n} = {n}\nb{n}()\n‸"), f"call(a{n})\n" * 100)
    assert len(said._groups) == len(said._n_newest) == passages.GROUPS
    for blocks in said._groups.values():
        assert sum(len(block.lines) for block in blocks) <= 2 * passages.PASSAGES * (passages.SUGGESTION_LINES + 8)


def test_a_flood_of_documents_is_bounded():
    documents = passages.Documents()
    for n in range(30):
        documents.learn("s", f"file:///w/{n}.py", "python", [f"a{n} = {m}\n" for m in range(5_000)])
        while documents.read(1_000):
            pass
    assert documents.n_lines == passages.MOST_LINES
    assert sum(len(block.lines) for block in documents.blocks("s", "python")) == passages.MOST_LINES
    for n in range(30):
        documents.forget(f"file:///w/{n}.py")
    assert documents.n_lines == 0


def test_lines_are_looked_for_no_farther_than_is_of_use():
    block = Block()
    block.add(["a = b(c)", *[""] * 100, "d = e(f)"])
    assert list(block.above(101)) == ["d = e(f)"]
    assert block.next_line(0) is None
    assert list(block.above(20)) == ["a = b(c)"]


def test_what_is_remembered_of_lines_is_bounded():
    lexer = Lexer()
    for n in range(10_000):
        assert lexer.read(f"a{n} = b").names == (f"a{n}", "b")
        assert lexer.read("x" * (LONGEST + 1 + n % 2)) is None
    assert len(lexer._lines) <= 2_000


HOSTILE = {
    "no line end": "x" * 30_000,
    "one line of quotes": "'\"`" * 10_000,
    "one line of backslashes": '"' + "\\" * 30_000,
    "identical lines": "    a = b(c)\n" * 5_000,
    "openers": "((((\n" * 5_000,
    "triple quotes": '"""\n' * 5_000,
    "blank lines": "\n" * 30_000,
    "not letters": "\u0300\u200b😀\u2028ß\x00\ud800\n" * 3_000,
    "nothing": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("end", ["‸", "\n    a = b(c)\n    ‸", "\n    a = b(c)\n    a = b(c)\n    a‸\n    a = b(c)\n"])
def test_hostile_text_costs_little(text, end):
    near = learned(text)
    began = time.perf_counter()
    for n in range(20):
        here = at(text + end.replace("b", f"b{n}"))
        near.add("s", here, text[:30_000] + "tail")
        drafted = near.draft("s", here)
        assert len(drafted) <= 400
    assert time.perf_counter() - began < 5


@given(st.text("ab(\n =:.\"'\\", max_size=120), st.text("ab(\n =:.\"'\\", max_size=60), st.text("ab(\n =:.\"'\\", max_size=120))
def test_nothing_that_is_written_makes_it_fail_and_no_draft_ends_in_blank_space(there, text, here):
    near = learned(there + text)
    near.add("s", at(there + "‸"), text)
    drafted = near.draft("s", at(here + "‸" + text[:5]))
    assert drafted == drafted.rstrip()
