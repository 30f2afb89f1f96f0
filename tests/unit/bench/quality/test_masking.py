"""Which lines are masked."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench.quality import masking

MODULES = {"pkg/__init__.py", "pkg/app.py", "pkg/models.py", "pkg/deep/__init__.py", "pkg/deep/tools.py"}
FILL = "".join(f"FILL_{n} = {n}\n" for n in range(20))


def found(code: str, imports: str = "from pkg.models import Model, build, LIMITS", path: str = "pkg/app.py") -> list[str]:
    return [place.gold for place in masking.places(path, f"import os\n{imports}\n{FILL}{code}\n", MODULES)]


@pytest.mark.parametrize(
    "imports",
    [
        "from pkg.models import build",
        "from .models import build",
        "from .models import make as build",
        "from pkg.deep.tools import build",
        "from .deep import tools as build",
        "from . import build",
        "if 1:\n    from .models import build",
    ],
)
def test_a_name_of_a_sibling_may_be_imported_in_any_way(imports):
    assert found("value = build(1, 2)", imports) == ["value = build(1, 2)"]


def test_relative_imports_count_from_the_file():
    assert found("value = build(1, 2)", "from ..models import build", "pkg/deep/tools.py") == ["value = build(1, 2)"]
    assert found("value = build(1, 2)", "from .models import build", "pkg/deep/tools.py") == []
    assert found("value = build(1, 2)", "from ...other import build", "pkg/app.py") == []


@pytest.mark.parametrize("imports", ["from os.path import build", "import build", "from somewhere.models import build"])
def test_names_from_elsewhere_do_not_count(imports):
    assert found("value = build(1, 2)", imports) == []


@pytest.mark.parametrize(
    "line",
    [
        "model = Model(name, size=3)",
        "return_value = LIMITS.largest",
        "assert build(1).is_good",
        "values = [build(n) for n in range(3)]",
        "del LIMITS.largest_one",
    ],
)
def test_a_use_that_needs_the_definition_is_masked(line):
    assert found(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "values = [Model, build]",  # only named
        "value = something_else()",
        "model = Model()            ",  # no arguments, and short
        "build(1)",  # short
        "value = build(" + "1, " * 40 + ")",  # long
        "value = build(1); other = 2",  # two statements
        "if build(1): other = build(22, 33)",
        'value = build("some words for people")',
        "value = build(\n    1, 2)",
        "def function(limits=LIMITS.largest): ...",
        "# value = build(1, 2)",
        "value = build(1, 2)\nvalue = build(1, 2)",  # can be copied
    ],
)
def test_other_lines_are_not(line):
    assert found(line) == []


def test_the_gap_is_at_the_indentation_and_the_rest_stays():
    text = f"from pkg.models import build\n{FILL}def run():\n    value = build(1, 2)  # why\n    return value\n"
    assert list(masking.places("pkg/app.py", text, MODULES)) == []  # a comment is prose
    text = text.replace("  # why", "")
    (place,) = masking.places("pkg/app.py", text, MODULES)
    assert place.before.endswith("def run():\n    ")
    assert place.after == "\n    return value\n"
    assert place.before + place.gold + place.after == text
    assert place.id == "pkg/app.py:23"
    assert "build(1, 2)" not in place.text


def test_a_file_that_cannot_be_parsed_or_is_tiny_has_none():
    assert found("value = build(1, 2)\n)") == []
    assert list(masking.places("pkg/app.py", "from pkg.models import build\nvalue = build(1, 2)\n", MODULES)) == []


def test_the_choice_is_one_line_a_file_the_same_each_time_and_grows():
    code = "\n".join(f"value{n} = build({n}, {n})" for n in range(9))
    files = [masking.places(f"pkg/f{n}.py", f"from .models import build\n{FILL}{code}\n", MODULES) for n in range(12)]
    every = [list(file) for file in files]
    chosen = masking.choose(every, 8)
    assert len({one.path for one in chosen}) == 8
    assert masking.choose(every, 8) == chosen
    assert masking.choose(every, 5) == chosen[:5]
    assert len({one.gold for one in chosen}) > 2
