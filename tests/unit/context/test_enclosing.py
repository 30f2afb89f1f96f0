from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import enclosing
from monkeycode_lsp.context.place import Place

FILLER = "\n".join(f"        step_{n}()" for n in range(60))


def own(text: str, *, first: int = 40, language: str = "python") -> list[str]:
    """At the line with `║`; the window begins `first` lines above it."""
    lines = text.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "║" in line)
    lines[at] = lines[at].replace("║", "")
    place = Place("u", language, "a.py", at, max(0, at - first), at + 5)
    return [one.text for one in enclosing.own(lines, place)]


PYTHON = f'''"""Module."""

import os
from package import (
    One,
    Two,
)

VALUE = 1


class Outer(Base):
    """Docs."""

    def before(self):
        pass

    async def method(
        self,
        argument: int,
    ) -> None:
        if argument:
            pass
{FILLER}
        ║
'''


def test_python_imports_and_the_heads_around_the_cursor() -> None:
    imports, heads = own(PYTHON)
    assert imports == "import os\nfrom package import (\n    One,\n    Two,\n)"
    assert heads == "class Outer(Base):\n    async def method(\n        self,\n        argument: int,\n    ) -> None:"


def test_what_the_window_shows_is_not_said_again() -> None:
    assert own(PYTHON, first=1_000) == []
    assert own(PYTHON, first=70)[1] == "class Outer(Base):"


def test_the_imports_are_the_same_text_whichever_of_them_the_window_shows() -> None:
    text = "".join(f"import module_{n}\n" for n in range(20)) + "\n" * 20 + "║\n"
    assert len({tuple(own(text, first=first)) for first in range(1, 40)}) == 1
    assert own(text, first=40) == []


def test_a_head_that_ended_does_not_enclose() -> None:
    text = "def ended():\n    pass\n\nx = 1\nif x:\n" + "    call()\n" * 60 + "    ║\n"
    assert own(text) == []


LANGUAGES = [
    (
        "typescript",
        "import { a } from './a';\nimport type {\n  B,\n} from './b';\n\nexport class Store extends Base {\n  private x = 1;\n\n  async load(id: string): Promise<void> {\n",
        ["import { a } from './a';\nimport type {\n  B,\n} from './b';", "export class Store extends Base {\n  async load(id: string): Promise<void> {"],
    ),
    (
        "javascript",
        "const fs = require('fs');\n\nconst handler = async (event) => {\n    for (;;) {\n",
        ["const fs = require('fs');", "const handler = async (event) => {"],
    ),
    (
        "go",
        'package main\n\nimport (\n\t"fmt"\n)\n\nfunc (s *Server) Handle(w Writer) error {\n\tif true {\n',
        ['package main\nimport (\n\t"fmt"\n)', "func (s *Server) Handle(w Writer) error {"],
    ),
    (
        "rust",
        "use std::io;\n\nimpl Reader for File {\n    pub fn read(&mut self) -> usize {\n        match x {\n",
        ["use std::io;", "impl Reader for File {\n    pub fn read(&mut self) -> usize {"],
    ),
    (
        "java",
        "import java.util.List;\n\npublic class Main {\n    @Override\n    public int run(String[] args) throws Oops {\n        while (true) {\n",
        ["import java.util.List;", "public class Main {\n    public int run(String[] args) throws Oops {"],
    ),
    (
        "c",
        "#include <stdio.h>\n\nstatic int\nmain_loop(int count)\n{\n    if (count) {\n",
        ["#include <stdio.h>", "main_loop(int count)\n{"],
    ),
    ("ruby", "require 'set'\n\nmodule Shop\n  class Cart\n    def add(item)\n", ["require 'set'", "module Shop\n  class Cart\n    def add(item)"]),
    ("csharp", "using System;\n\nnamespace A\n{\n    class B\n    {\n        void C(int d)\n        {\n", ["using System;", "namespace A\n{\n    class B\n    {\n        void C(int d)\n        {"]),
]  # fmt: skip


@pytest.mark.parametrize(("language", "head", "expected"), LANGUAGES, ids=[language for language, _, _ in LANGUAGES])
def test_heads_in_other_languages(language: str, head: str, expected: list[str]) -> None:
    text = head + textwrap.indent("step();\n" * 60, " " * 16) + " " * 16 + "║\n"
    assert own(text, language=language) == expected


def test_at_a_blank_line_the_code_above_tells_the_level() -> None:
    text = "def outer():\n" + "    call()\n" * 60 + "\n║\n"
    assert own(text) == ["def outer():"]


def test_many_imports_are_bounded() -> None:
    text = "".join(f"import module_{n}\n" for n in range(300)) + "\n" * 60 + "║\n"
    (imports,) = own(text)
    assert len(imports.split("\n")) == enclosing.MOST_IMPORT_LINES


def test_huge_documents_are_looked_at_within_bounds() -> None:
    lines = ["import os\n", "x" * 5_000_000 + "\n", *(f"    name_{n} = {n}\n" for n in range(100_000))]
    place = Place("u", "python", "a.py", 90_000, 89_900, 90_010)
    (imports,) = enclosing.own(lines, place)
    assert imports.text == "import os"
    assert all(len(one.text) < 20_000 for one in enclosing.own(["import " + "x(" * 1_000_000 + "\n", *lines], place))


@given(st.lists(st.text(max_size=60), max_size=60), st.integers(0, 80), st.integers(0, 80))
def test_no_text_makes_it_fail(lines: list[str], line: int, first: int) -> None:
    place = Place("u", "python", "a.py", line, min(line, first), line + 1)
    for one in enclosing.own(lines, place):
        assert one.kind == "own"
        assert one.text
