"""What the code at the cursor deals with.  `║` is the cursor."""

from __future__ import annotations

import time

import pytest

from monkeycode_lsp.symbols import names, receivers


def near(text: str, language: str = "python") -> list[str]:
    before, after = text.split("║")
    return names.near(before, after, language)


RECEIVERS = [
    # language, text up to the cursor, types in order
    ("python", "x = Foo(1)\nx.", ["Foo"]),
    ("python", "x = pkg.Foo(1)\nx.na", ["Foo"]),
    ("python", "x = Foo(1)\nx = Bar(1)\nx.", ["Bar"]),
    ("python", "x: Foo = make()\nx.", ["Foo"]),
    ("python", "x = await open_thing(1)\nx.", ["open_thing"]),
    ("python", "def f(x: Foo, y: Bar = None) -> Baz:\n    x.", ["Foo"]),
    ("python", "def f(x: list[Foo] | None, y: Bar):\n    x.", ["Foo"]),
    ("python", "def f(x: 'Foo'):\n    x.", ["Foo"]),
    ("python", "with Foo(1) as x:\n    x.", ["Foo"]),
    ("python", "x = Foo.from_text('')\nx.", ["Foo", "from_text"]),
    ("python", "class A:\n    c: Client\n    def f(self):\n        self.c.", ["Client"]),
    ("python", "class A:\n    def __init__(self):\n        self.c = Client()\n    def f(self):\n        return self.c.fe", ["Client"]),
    ("python", "class A(Base, metaclass=Meta):\n    def f(self):\n        self.", ["Base", "Meta"]),
    ("python", "Foo.", ["Foo"]),
    ("python", "xx = Foo(1)\nx.", []),
    ("python", "x = Foo(1)\nx", []),
    ("python", "x = 1\nx.", []),
    ("typescript", "const a: Foo<Bar> = z();\na.", ["Foo", "Bar"]),
    ("typescript", "function q(a?: Baz, b: number) { a?.", ["Baz"]),
    ("typescript", "const d = new Qux(1);\nd.", ["Qux"]),
    ("typescript", "class A { constructor(private http: Client) {}\n f() { this.http.", ["Client"]),
    ("go", "func F(c *Client) error {\n\tc.", ["Client"]),
    ("go", "func F(w http.ResponseWriter, r *http.Request) {\n\tw.", ["ResponseWriter"]),
    ("go", "\tx := NewThing(c)\n\tx.", ["Thing", "NewThing"]),
    ("go", "\tx := &pkg.Thing{A: 1}\n\tx.", ["Thing"]),
    ("go", "\tvar x Thing\n\tx.", ["Thing"]),
    ("java", "Foo foo = make();\nfoo.", ["Foo"]),
    ("java", "class A { private final Foo foo;\n void f() { this.foo.", ["Foo"]),
    ("java", "void f(List<Item> items) {\n items.", ["Item"]),
    ("java", "class A extends Base implements Sound {\n void f() { this.", ["Base", "Sound"]),
    ("rust", "let q = Qux::new(1);\nq.", ["Qux", "new"]),
    ("rust", "fn f(a: &mut Baz) {\n a.", ["Baz"]),
    ("rust", "let z: Vec<Item> = make();\nz.", ["Item"]),
    ("cpp", "Foo* foo = make();\nfoo->", ["Foo"]),
    ("csharp", "var x = new Foo(1);\nx.", ["Foo"]),
]


@pytest.mark.parametrize(("language", "before", "expected"), RECEIVERS)
def test_the_type_of_the_receiver_is_found(language: str, before: str, expected: list[str]) -> None:
    assert receivers.types(before) == expected
    assert names.near(before, "", language)[: len(expected)] == [name for name in expected if name != "new"]


def test_the_function_that_is_being_called_comes_first() -> None:
    assert near("from m import fetch, Other\nx = Other()\ny = fetch(url, [1, ║)")[:2] == ["fetch", "Other"]


def test_of_a_called_method_the_receivers_type_follows() -> None:
    assert near("c = Client()\nc.load_page(║)")[:2] == ["load_page", "Client"]


def test_nearer_lines_come_first_and_those_below_count_too() -> None:
    assert near("far()\n\n\n\nnearby()\n║\nbelow()\n\n\n\nfar_below()") == ["nearby", "far", "below", "far_below"]


def test_imported_names_go_before_others() -> None:
    assert near("from a import helper_b\nother_a()\nhelper_b()\nother_c()\n║")[0] == "helper_b"


def test_what_is_imported_and_not_used_is_named_last() -> None:
    assert near("from a import unused_b\n\nother_a()\n║") == ["other_a", "unused_b"]


def test_what_the_text_defines_is_left_out() -> None:
    text = "class Local:\n    pass\ndef local_f(arg_a):\n    pass\nvalue = 1\nfor entry in far():\n    local_f(value, entry, Local)\n    ║"
    assert near(text) == ["far"]


def test_words_of_strings_comments_and_docstrings_are_no_names() -> None:
    assert near('def f():\n    """Says Some\n    Things.\n    """\n    # By Word\n    x("Quoted Text")\n    real_one()\n    ║') == [
        "real_one"
    ]
    assert near("/** Says Some\n * Things */\n// By Word\nrealOne();\n║", "typescript") == ["realOne"]


def test_a_window_that_begins_inside_a_docstring_is_read_right() -> None:
    lines = "\n".join(f"    Words{n} here" for n in range(70))
    assert near(f'def f():\n    """Says\n{lines}\n    """\n    real_one()\n    ║') == ["real_one"]


def test_keywords_builtins_and_short_names_are_left_out() -> None:
    assert near("return len(ab) if isinstance(cd, str) else print(None)\n║") == []


def test_the_half_typed_word_is_no_name_but_a_beginning() -> None:
    assert near("fetch_all()\nx = fet║") == ["fetch_all"]
    assert names.unfinished("x = fet") == "fet"
    assert names.unfinished("x = ") == ""
    assert names.unfinished("x.y") == "y"


def test_there_are_at_most_so_many() -> None:
    assert len(near("\n".join(f"function_{n}(Type{n})" for n in range(60)) + "║")) == names.MAX_NAMES


def test_the_order_is_always_the_same() -> None:
    text = "from a import " + ", ".join(f"name_{n}" for n in range(50)) + "\n\n║"
    assert near(text) == [f"name_{n}" for n in range(names.MAX_NAMES)]


@pytest.mark.parametrize("language", ["python", "typescript", "go", "plaintext"])
@pytest.mark.parametrize("filler", ["(", "a.", '"', '"""', "'", " ", "\n", "a, ", "x = ", "class ", "\ud800", "\0", "/*", "ä"])
def test_no_text_makes_it_slow_or_fail(language: str, filler: str) -> None:
    text = filler * (2_000_000 // len(filler))
    started = time.process_time()
    names.near(text, text, language)
    names.near(text + "x.", text, language)
    names.near(text + "x(", text, language)
    assert time.process_time() - started < 5


def test_a_name_that_is_imported_counts_though_the_text_gives_it_a_value_too() -> None:
    text = "try:\n    from fast import load_page\nexcept ImportError:\n    load_page = None\n\nlocal_page = load_page(1)\nx = ║"
    assert "load_page" in near(text)
    assert "local_page" not in near(text)


@pytest.mark.parametrize("between", ["{ ", "} ", "; "])
def test_a_call_ends_at_a_brace_or_a_semicolon(between: str) -> None:
    assert names.called("load_page(url, ") == ["load_page"]
    assert names.called(f"load_page(url, {between}other, ") == []
