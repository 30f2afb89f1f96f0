"""What a file imports, by language."""

from __future__ import annotations

import time

import pytest

from monkeycode_lsp.symbols import imports
from monkeycode_lsp.symbols.model import Import

CASES: dict[str, tuple[str, list[Import]]] = {
    "python": (
        "import os, a.b as c\nimport d.e\nfrom . import x\nfrom ..p.q import (\n    A,  # why (not)\n    B as C,\n)\nfrom m import *\nif 1:\n    from n import z; y = 1\n",
        [
            Import("os", alias="os"),
            Import("a.b", alias="c"),
            Import("d.e", alias="d", line=1),
            Import("", (("x", "x"),), level=1, line=2),
            Import("p.q", (("A", "A"), ("B", "C")), level=2, line=3),
            Import("m", (("*", "*"),), line=7),
            Import("n", (("z", "z"),), line=9),
        ],
    ),
    "typescript": (
        (
            "import a, { b as c, type D } from './x';\nimport * as ns from \"@/lib/y\"\nimport type { T } from '../t';\nimport './s.css'\n"
            "export * from './z'\nconst { r: s, t } = require('u');\nconst v = require('./v')\nimport {\n  m,\n  n,\n} from 'pkg';\nconst lazy = await import('./lazy')\n"
        ),
        [
            Import("./x", (("default", "a"), ("b", "c"), ("D", "D"))),
            Import("@/lib/y", alias="ns", line=1),
            Import("../t", (("T", "T"),), line=2),
            Import("./s.css", line=3),
            Import("./z", (("*", "*"),), line=4),
            Import("u", (("r", "s"), ("t", "t")), line=5),
            Import("./v", alias="v", line=6),
            Import("pkg", (("m", "m"), ("n", "n")), line=7),
            Import("./lazy", alias="lazy", line=11),
        ],
    ),
    "go": (
        'package a\nimport "fmt"\nimport (\n\tm "github.com/x/y/v2"\n\t. "a/b"\n\t_ "c/d"\n\t"github.com/x/go-z"\n)\n',
        [
            Import("fmt", alias="fmt", line=1),
            Import("github.com/x/y/v2", alias="m", line=3),
            Import("a/b", (("*", "*"),), line=4),
            Import("c/d", line=5),
            Import("github.com/x/go-z", alias="z", line=6),
        ],
    ),
    "rust": (
        "use std::io;\npub use crate::a::{self, b::C, d::{E as F, G}, h::*};\nuse super::x::Y;\nmod z;\nmod inline { }\n",
        [
            Import("std", (("io", "io"),)),
            Import("crate", (("a", "a"),), line=1),
            Import("crate::a::b", (("C", "C"),), line=1),
            Import("crate::a::d", (("E", "F"),), line=1),
            Import("crate::a::d", (("G", "G"),), line=1),
            Import("crate::a::h", (("*", "*"),), line=1),
            Import("super::x", (("Y", "Y"),), line=2),
            Import("self::z", alias="z", line=3),
        ],
    ),
    "java": (
        "package a;\nimport a.b.C;\nimport static a.b.D.e;\nimport x.y.*;\n",
        [Import("a.b", (("C", "C"),), line=1), Import("a.b.D", (("e", "e"),), line=2), Import("x.y", (("*", "*"),), line=3)],
    ),
    "kotlin": ("import a.b.C as D\nimport a.b.f\n", [Import("a.b", (("C", "D"),)), Import("a.b", (("f", "f"),), line=1)]),
    "scala": (
        "import a.b.{C, D => E, _}\nimport z.W\n",
        [
            Import("a.b", (("C", "C"),)),
            Import("a.b", (("D", "E"),)),
            Import("a.b", (("*", "*"),)),
            Import("z", (("W", "W"),), line=1),
        ],
    ),
    "c": ('#include <stdio.h>\n#  include "a/b.h"\n', [Import("<stdio.h>", (("*", "*"),)), Import("a/b.h", (("*", "*"),), line=1)]),
    "csharp": ("using System;\nusing X = A.B.C;\n", [Import("System", (("*", "*"),)), Import("A.B", (("C", "X"),), line=1)]),
    "ruby": (
        "require 'a/b'\nrequire_relative '../c'\nrequire_relative 'd'\n",
        [Import("a/b", (("*", "*"),)), Import("../c", (("*", "*"),), line=1), Import("./d", (("*", "*"),), line=2)],
    ),
    "php": (
        "<?php\nuse A\\B\\C;\nuse A\\{D, E as F};\nrequire_once __DIR__ . '/x.php';\n",
        [
            Import("A\\B", (("C", "C"),), line=1),
            Import("A", (("D", "D"),), line=2),
            Import("A", (("E", "F"),), line=2),
            Import("./x.php", (("*", "*"),), line=3),
        ],
    ),
    "swift": ("@testable import App\n", [Import("App", (("*", "*"),))]),
    "lua": ("local a = require('b.c')\nrequire 'd'\n", [Import("b.c", alias="a"), Import("d", line=1)]),
    "bash": ('source ./x.sh\n. "$DIR/y.sh"\n', [Import("./x.sh", (("*", "*"),)), Import("./y.sh", (("*", "*"),), line=1)]),
}


@pytest.mark.parametrize("language", CASES)
def test_imports_are_read_with_their_names_and_lines(language: str) -> None:
    text, expected = CASES[language]
    assert imports.read(text, language) == expected


def test_an_unfinished_import_gives_what_it_names_so_far() -> None:
    assert imports.read("from k import (a,\n    b\n\ndef f():\n", "python")[0].names[0] == ("a", "a")
    assert imports.read('import (\n\t"x/y"\n', "go")[0].module == "x/y"


def test_an_unknown_language_imports_nothing() -> None:
    assert imports.read("import x\n", "plaintext") == []


def test_the_names_that_an_import_brings_are_those_used_here() -> None:
    found = imports.read("from a import b as c, d\nimport e.f as g\nfrom h import *\n", "python")
    assert [one.here for one in found] == [("c", "d"), ("g",), ()]


@pytest.mark.parametrize("language", CASES)
@pytest.mark.parametrize("filler", [" ", "\t", ".", "(", "{", "\\", "a.", "use ", "import ", "import (\n", "from .", "use a::{", "\n"])
def test_no_text_makes_reading_slow_or_fail(language: str, filler: str) -> None:
    started = time.process_time()
    for lead in ("import ", "from ", "use ", "#include ", "require ", "export ", "from x import ", ""):
        imports.read(lead + filler * (40_000 // len(filler)), language)
    assert time.process_time() - started < 10
