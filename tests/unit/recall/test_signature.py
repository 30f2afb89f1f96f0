"""What is the same place, and what is not."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import signature
from monkeycode_lsp.recall.signature import place


def at(marked: str, language: str = "python", path: str = "src/a", **more: object) -> Window:
    prefix, mark, suffix = marked.partition("‸")
    assert mark
    return msgspec.structs.replace(Window(prefix=prefix, suffix=suffix, language=language, path=path), **more)


def same(a: str, b: str, language: str) -> bool:
    return place(at(a, language)).digest == place(at(b, language)).digest


SAME = [
    # white space, blank lines
    ("python", "x=1\ny = ‸\n", "x  =  1 \n\n\ny  =   ‸   \n"),
    ("python", "def f(a):\n    ‸\n    return b\n", "def f(a):\n  ‸\n\n  return b\n"),
    ("python", "def f(a):\n    ‸\n", "def f(a):\n\t‸\n"),
    ("python", "if a:\n    if b:\n        c\n    ‸\n", "if a:\n\tif b:\n\t\tc\n\t‸\n"),
    ("python", "class A:\n    def f(self):\n        ‸\n", "class A:\n\n  # other\n  def f(self):\n    ‸\n"),
    ("javascript", "if (a) {\n    ‸\n}\n", "if (a)\n{\n\t‸\n}\n"),
    ("javascript", "f(a,\n  b);\ng();\n‸", "f( a, b );\ng();\n‸"),
    ("typescript", "const x: A = {a: 1};\nlet y = ‸;\n", "const x : A = {\n  a: 1\n};\nlet y = ‸;\n"),
    ("c", "int f(int a)\n{\n    return ‸;\n}\n", "int f(int a) {\n\treturn ‸;\n}\n"),
    ("cpp", "for (auto& x : xs) {\n  ‸\n}\n", "for (auto& x : xs)\n{\n    ‸\n}\n"),
    ("rust", "fn f<'a>(x: &'a str) -> u8 {\n    ‸\n}\n", "fn f<'a>( x: &'a str ) -> u8\n{\n  ‸\n}\n"),
    ("go", "func f(a int) {\n\tx := ‸\n}\n", "func f(a int) {\n    x := ‸\n}\n"),
    ("ruby", "def f\n  x = 1\n  ‸\nend\n", "def f\n\n    x = 1\n    ‸\nend\n"),
    ("lua", "local x = 1\nreturn ‸", "local x=1 return ‸"),
    ("shellscript", "if a; then\n  b\n  ‸\nfi\n", "if a; then\n\n\tb\n\t‸\nfi\n"),
    ("sql", "select a,b\nfrom t\nwhere ‸", "select a, b from t\n  where ‸"),
    ("html", "<ul>\n  <li>a</li>\n  ‸\n</ul>\n", "<ul>\n\n\t<li>a</li>\n\t‸\n</ul>"),
    ("css", "a {\n  color: red;\n  ‸\n}\n", "a {\n\n\tcolor:  red;\n\t‸\n}\n"),
    ("yaml", "a:\n  b: 1\n  ‸\n", "a:\n\n    b:  1\n    ‸\n"),
    ("toml", "[a]\nb=1\nc = ‸", "[a]\n\nb = 1\nc  = ‸"),
    ("makefile", "a: b\n\tcc x\n\t‸\n", "a: b\n\n\tcc  x\n\t‸\n"),
    ("markdown", "# A\n\nb  c\n‸", "# A\n\n\nb c \n‸"),
    ("plaintext", "Dear  Ann,\n\n‸", "Dear Ann,\n\n\n‸"),
    # comments that do not lead up to the cursor
    ("python", "# one\nx = 1\ny = ‸\n", "# two\n# three\nx = 1\ny = ‸\n"),
    ("python", "x = 1  # one\ny = 2\nz = ‸\n", "x = 1\ny = 2\nz = ‸\n"),
    ("python", "x = '#'  # one\ny = 2\nz = ‸\n", "x = '#'\ny = 2\nz = ‸\n"),
    ("python", "x = ‸\ny = 1  # one\n# two\nz\n", "x = ‸\ny = 1\nz\n"),
    ("python", "def f():\n    a()\n# odd\n    b()\n    ‸\n", "def f():\n    a()\n    b()\n    ‸\n"),
    ("javascript", "a(/* x */ 1); // y\nb();\n‸", "a(1);\nb();\n‸"),
    ("javascript", "/*\n * x\n */\nb();\n‸", "b();\n‸"),
    ("typescript", "// x\nlet r = /[/*]/; let q = 1;\n‸", "let r = /[/*]/; let q = 1;\n‸"),
    ("c", "/* x\n   y */ int a;\nint ‸", "int a;\nint ‸"),
    ("rust", "/* a /* b */ c */ let x = 1;\nlet y = ‸", "let x = 1;\nlet y = ‸"),
    ("go", "s := `//`\n// c\nx := 1\ny := ‸", "s := `//`\nx := 1\ny := ‸"),
    ("ruby", "x = 1 # c\ny = 2\nz = ‸", "x = 1\ny = 2\nz = ‸"),
    ("lua", "--[==[ a ]] b\n]==] x = 1 -- c\nz = 2\ny = ‸", "x = 1\nz = 2\ny = ‸"),
    ("shellscript", "# c\nx=1 # d\ny=2\n‸", "x=1\ny=2\n‸"),
    ("shellscript", "cat <<<x\n# c\ny\n‸", "cat <<<x\ny\n‸"),
    ("sql", "-- c\nselect a, /* d */ b\nfrom ‸", "select a, b\nfrom ‸"),
    ("html", "<!-- c -->\n<p>a</p>\n<b>‸", "<p>a</p>\n<b>‸"),
    ("css", "/* c */\na { b: c }\nd ‸", "a { b: c }\nd ‸"),
    ("yaml", "# c\na: 1 # d\nb: 2\nc: ‸", "a: 1\nb: 2\nc: ‸"),
    ("toml", "# c\na = 1 # d\nb = 2\nc = ‸", "a = 1\nb = 2\nc = ‸"),
    ("makefile", "# c\na: b\n\tcc x\n\tcc ‸", "a: b\n\tcc x\n\tcc ‸"),
]

OTHER = [
    # meaning
    ("python", "if user.active:\n    ‸", "if not user.active:\n    ‸"),
    ("python", "x = lo‸", "x = hi‸"),
    ("python", "page_1 = 1\nx = ‸", "page_2 = 1\nx = ‸"),
    ("python", "x = 'a  b'\ny = ‸", "x = 'a b'\ny = ‸"),
    ("python", "x = 'a # b'\ny = 1\nz = ‸", "x = 'a'\ny = 1\nz = ‸"),
    ("python", 'x = """\n# a\n"""\ny = ‸', 'x = """\n# b\n"""\ny = ‸'),
    ("python", 'def f():\n    """Add."""\n    ‸', 'def f():\n    """Sub."""\n    ‸'),
    ("python", "x = ‸\ny = 1\n", "x = ‸\ny = 2\n"),
    ("python", "f(‸)\n", "f(‸\n)\n"),
    ("python", "f(‸)", "f(‸"),
    ("python", "x = 1.5\ny = ‸", "x = 15\ny = ‸"),
    ("python", "x = a < b\ny = ‸", "x = a <= b\ny = ‸"),
    # layout
    ("python", "if a:\n    b\n    ‸", "if a:\n    b\n‸"),
    ("python", "if a:\n    b\n    c\nd = ‸", "if a:\n    b\nc\nd = ‸"),
    ("python", "if a:\n    ‸\n    b\n", "if a:\n    ‸\nb\n"),
    ("python", "if a:\n    if b:\n        c\n    ‸", "if a:\n    if b:\n        c\n‸"),
    ("python", "if a:\n    b\n    c\nd\ne = ‸", "if a:\n    b\nc\nd\ne = ‸"),
    ("yaml", "a:\n  b: 1\n  c: ‸", "a:\n  b: 1\nc: ‸"),
    ("yaml", "a: |\n  # text\nb: 1\nc: ‸", "a: |\n  # other\nb: 1\nc: ‸"),
    ("makefile", "a: b\n\tc\n\t‸", "a: b\n\tc\n‸"),
    ("markdown", "- a\n  - b\n- ‸", "- a\n- b\n- ‸"),
    ("markdown", "# A\nb ‸", "# A\n\nb ‸"),
    ("markdown", "<!-- a -->\n\nb\n‸", "b\n‸"),
    ("markdown", "| a  ‸ |", "| a ‸ |"),
    ("plaintext", "a\nb\n‸", "a b\n‸"),
    ("plaintext", "# a\nb\n‸", "b\n‸"),
    ("zzz", "# a\nb\n‸", "b\n‸"),
    ("zzz", "// a\nb\n‸", "b\n‸"),
    ("zzz", "a -b\n‸", "a - b\n‸"),
    # the cursor's own line
    ("python", "return‸", "return ‸"),
    ("python", "fo‸o", "fo‸ o"),
    ("python", "fo‸o", "foo‸"),
    ("python", "x = ‸", "x =\n‸"),
    ("python", "f()\n‸", "f()\n\n‸"),
    ("c", "a();‸", "a();\n‸"),
    ("c", "if (a) {\n    ‸\n}", "if (a) {\n‸\n}"),
    # comments that tell the model what to write
    ("python", "x = 1\n# add\n‸", "x = 1\n# sub\n‸"),
    ("python", "x = 1\n# add\n\n‸", "x = 1\n# sub\n\n‸"),
    ("python", "x = 1\n# add\ny = ‸", "x = 1\n# sub\ny = ‸"),
    ("python", "x = 1  # then add\n‸", "x = 1  # then sub\n‸"),
    ("python", "# add the ‸", "# sub the ‸"),
    ("python", "x = ‸  # add", "x = ‸  # sub"),
    ("javascript", "/**\n * Adds\n */\n‸", "/**\n * Subtracts\n */\n‸"),
    ("javascript", "/*\n * Adds\n * ‸\n */\n", "/*\n * Subtracts\n * ‸\n */\n"),
    ("javascript", "/* ‸ add */\n", "/* ‸ sub */\n"),
    ("javascript", "f(/* add */ ‸)", "f(/* sub */ ‸)"),
    ("c", "/* a\n * b ‸\n * c\n */\n", "/* a\n * b ‸\n * d\n */\n"),
    # what looks like a comment and is none
    ("javascript", "let a = /[/*]/, b = 1; x(/*/*/);\n‸", "let a = /[/*]/, b = 2; x(/*/*/);\n‸"),
    ("javascript", "let a = `//${b}`;\nf();\n‸", "let a = `//${c}`;\nf();\n‸"),
    ("javascript", "return\na\n‸", "return a\n‸"),
    ("javascript", "return\n[a]\n‸", "return [a]\n‸"),
    ("javascript", "return\n{}\n‸", "return {}\n‸"),
    ("javascript", "let a = `\nx\\` // b\n`;\nf();\n‸", "let a = `\nx\\` // c\n`;\nf();\n‸"),
    ("c", 's = "a \\\n // b"; f();\ng();\n‸', 's = "a \\\n // c"; f();\ng();\n‸'),
    ("javascript", "x = <a>http://b</a>;\nf();\n‸", "x = <a>http://c</a>;\nf();\n‸"),
    ("typescript", "x = '//a'\nf()\n‸", "x = '//b'\nf()\n‸"),
    ("c", "#define F(x) 1\nint a;\n‸", "#define F (x) 1\nint a;\n‸"),
    ("c", "#define F 1\nint a;\n‸", "#define F\n1 int a;\n‸"),
    ("cpp", 'auto s = R"x(//a")x"; f();\n‸', 'auto s = R"x(//b")x"; f();\n‸'),
    ("cpp", "int x = 1'000; // a\nf('//');\n‸", "int x = 1'001; // a\nf('//');\n‸"),
    ("csharp", 'var s = @"c:\\"; f();\n‸', 'var s = @"c:\\"; g();\n‸'),
    ("rust", "let c = '\"'; let d = 1; // \"\n‸", "let c = '\"'; let d = 2; // \"\n‸"),
    ("rust", 'let s = r#"//"a"#;\nf();\n‸', 'let s = r#"//"b"#;\nf();\n‸'),
    ("rust", "/* a /* b */ c */ let x = 1;\nf();\n‸", "/* a /* b */ c */ let x = 2;\nf();\n‸"),
    ("go", "s := `\n// a\n`\nf()\n‸", "s := `\n// b\n`\nf()\n‸"),
    ("go", "x := a\nb()\n‸", "x := a b()\n‸"),
    ("ruby", "x = <<~TEXT\n  # a\nTEXT\nf\n‸", "x = <<~TEXT\n  # b\nTEXT\nf\n‸"),
    ("ruby", 'x = "#{a}"\nf\n‸', 'x = "#{b}"\nf\n‸'),
    ("ruby", "f [1]\n‸", "f[1]\n‸"),
    ("ruby", "x =~ /#/ and y\nf\n‸", "x =~ /#/ and z\nf\n‸"),
    ("lua", "x = [[\n-- a\n]]\nf()\n‸", "x = [[\n-- b\n]]\nf()\n‸"),
    ("shellscript", "cat <<EOF\n# a\nEOF\nf\n‸", "cat <<EOF\n# b\nEOF\nf\n‸"),
    ("shellscript", "x=${a#b}\nf\n‸", "x=${a#c}\nf\n‸"),
    ("shellscript", "a=b\n‸", "a = b\n‸"),
    ("shellscript", "echo 'x\n# a\n'\nf\n‸", "echo 'x\n# b\n'\nf\n‸"),
    ("sql", "select '--a'\nfrom t\nwhere ‸", "select '--b'\nfrom t\nwhere ‸"),
    ("sql", "select 'it''s -- a'\nfrom t\nwhere ‸", "select 'it''s -- b'\nfrom t\nwhere ‸"),
    ("html", "<p>// a</p>\n<b>‸", "<p>// b</p>\n<b>‸"),
    ("html", "<p>it's <!-- a --> x</p>\n<b>‸", "<p>it's <!-- a --> y</p>\n<b>‸"),
    ("css", ".a .b { ‸ }", ".a.b { ‸ }"),
    ("css", "a { b: url(//c/d) }\ne ‸", "a { b: url(//c/e) }\ne ‸"),
    ("yaml", "a: b#c\nd: ‸", "a: b#e\nd: ‸"),
    ("yaml", "a: it's # x\nb: '# y'\nc: ‸", "a: it's # x\nb: '# z'\nc: ‸"),
    ("toml", "a = 'x # y'\nb = 1\nc = ‸", "a = 'x # z'\nb = 1\nc = ‸"),
    ("makefile", "a: b\\#c\nd: ‸", "a: b\\#e\nd: ‸"),
    ("perl", "$x = $#a; f();\ng();\n‸", "$x = $#b; f();\ng();\n‸"),
    ("php", "<p>a // b</p>\n<?php f();\n‸", "<p>a // c</p>\n<?php f();\n‸"),
]


@pytest.mark.parametrize(("language", "a", "b"), SAME)
def test_the_same_place_whatever_its_white_space_and_comments(language: str, a: str, b: str) -> None:
    assert same(a, b, language)


@pytest.mark.parametrize(("language", "a", "b"), OTHER)
def test_another_place(language: str, a: str, b: str) -> None:
    assert not same(a, b, language)


def test_languages_and_kinds_of_files_are_kept_apart() -> None:
    window = at("x = ‸", path="a.py", repository="r")
    others = [{"language": "starlark"}, {"path": "a.rb"}, {"path": "a"}]
    assert len({place(msgspec.structs.replace(window, **other)).digest for other in [{}, *others]}) == 4
    assert place(msgspec.structs.replace(window, path="b.d/c.PY")) == place(window)


def test_the_scope_is_part_of_the_key() -> None:
    here = place(at("x = ‸"))
    assert len(signature.key("a", here)) == 16
    assert signature.key("a", here) == signature.key("a", place(at("x  = ‸")))
    assert signature.key("a", here) != signature.key("b", here)
    assert signature.key("a", here) != signature.key("a", place(at("y = ‸")))


@pytest.mark.parametrize(
    ("marked", "indent"), [("    x‸", "    "), ("a\n\t ‸", "\t "), ("a\n  ‸  b", "  "), ("‸", ""), ("  a\n‸", ""), ("  a ‸", "  ")]
)
def test_the_indentation_of_the_cursors_line_is_told(marked: str, indent: str) -> None:
    assert place(at(marked)).indent == indent


LINES = "".join(f"value_{n} = compute({n}, 'text')\n" for n in range(200))


def test_a_beginning_is_not_a_cut() -> None:
    whole, cut = at("x = ‸", whole_prefix=True), at("x = ‸", whole_prefix=False)
    assert place(whole).digest != place(cut).digest
    assert place(at("x = ‸\ny")).digest != place(at("x = ‸\ny", whole_suffix=False)).digest


def test_what_is_far_away_does_not_count() -> None:
    near = at(LINES + "x = ‸\n" + LINES)
    assert place(near) == place(at("y = 1\n" + LINES + "x = ‸\n" + LINES + "z"))
    assert place(near) == place(at(LINES[2000:] + "x = ‸\n" + LINES[:2000], whole_prefix=False, whole_suffix=False))
    for n in (1, 3, 7, 16):
        start = LINES.index(f"value_{n} ")
        assert place(near) == place(at(LINES[start:] + "x = ‸\n" + LINES, whole_prefix=False))


def test_what_is_near_counts() -> None:
    near = place(at(LINES + "x = ‸\n" + LINES))
    assert near != place(at(LINES.replace("value_199", "value_z") + "x = ‸\n" + LINES))
    assert near != place(at(LINES.replace("value_180", "value_z") + "x = ‸\n" + LINES))
    assert near != place(at(LINES + "x = ‸\n" + LINES.replace("value_3 ", "value_z ")))


def test_a_window_that_begins_inside_a_comment_or_string_is_read_from_its_end() -> None:
    code = "int a = 1;\n" * 60 + "int b = ‸;\n"
    inside = at(" still a comment, it's one\n */\n" + code, "c", whole_prefix=False)
    assert place(inside) == place(at(code, "c", whole_prefix=False))
    code = "a = 'x'  # one\n" * 120 + "c = 1\nb = ‸\n"
    text = 'of a text.\n    """\n' + code
    assert place(at(text, whole_prefix=False)) == place(at(code.replace("one", "two"), whole_prefix=False))


def test_a_comment_that_is_none_is_not_left_out() -> None:
    cron = "g({}); f('*/5 * * * *');\n"
    assert place(at(cron.format(1) + "x = ‸", "javascript", whole_prefix=False)) != place(
        at(cron.format(2) + "x = ‸", "javascript", whole_prefix=False)
    )


HOSTILE = [
    *('"', '\\"', "'", "/", "/[", "/*", "*/", "(", "<<A ", "\n", "\n ", "# ", "`", "${", "--[[", "]]", '"""', "\\", "a.", "\t", 'r#"'),
    *("|\n ", "<!--", "/[/", '="', "漢字", "😀", "\ud800", "\x00", 'R"((', "'\\u{", "a" * 50 + " ", "1'1", ": |", "\x0c", "\u2028"),
]
LANGUAGES = sorted({language for language, _, _ in SAME + OTHER})


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_takes_long_to_read(language: str) -> None:
    place(at("‸", language))
    for piece in HOSTILE:
        text = (piece * 30_000)[:30_000]
        started = time.process_time()
        place(Window(prefix=text, suffix=text, language=language, path="a", whole_prefix=False))
        assert time.process_time() - started < 2, piece  # milliseconds, but for what else the process does


@given(st.text(alphabet=st.sampled_from("ab1 \t\n\"'`#/*\\-[]{}<>|=:$!~EOFr"), max_size=80), st.data(), st.sampled_from(LANGUAGES))
def test_any_text_can_be_read_and_the_answer_depends_on_nothing_else(text: str, data: st.DataObject, language: str) -> None:
    n = data.draw(st.integers(0, len(text)))
    window = Window(prefix=text[:n], suffix=text[n:], language=language, path="a", whole_prefix=data.draw(st.booleans()))
    assert place(window) == place(window)
    assert len(place(window).digest) == 16


CODE = {
    "python": (["a = b(1, 'x y')", "def f(x):", "    return x + 2", "class A:", "    y: int = 3"], "#"),
    "javascript": (["let a = b(1, 'x y');", "function f(x) {", "  return x + 2;", "}", "const c = `d e`;"], "//"),
    "c": (['int a = b(1, "x y");', "int f(int x) {", "    return x + 2;", "}", "char c = 'd';"], "//"),
    "rust": (['let a = b(1, "x y");', "fn f<'a>(x: u8) -> u8 {", "    x + 2", "}", "let c = 'd';"], "//"),
    "go": (["a := b(1, `x y`)", "func f(x int) int {", "\treturn x + 2", "}", "c := 'd'"], "//"),
    "lua": (["local a = b(1, 'x y')", "function f(x)", "  return x + 2", "end", "c = [[d e]]"], "--"),
    "shellscript": (["a=$(b 1 'x y')", "f() {", "  echo $x", "}", 'c="d e"'], "#"),
    "sql": (["select a, 'x y'", "from b", "where c = 1", "and d < 2", "or e"], "--"),
    "yaml": (["a: 'x y'", "b:", "  - 1", "  - c: 2", "d: e"], "#"),
    "toml": (["[a]", "b = 'x y'", "c = 1", "[d]", "e = 2"], "#"),
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(CODE)))
def test_blank_lines_trailing_white_space_and_comments_elsewhere_do_not_count(data: st.DataObject, language: str) -> None:
    lines, mark = CODE[language]
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=8))
    n = data.draw(st.integers(0, len(chosen) - 1))
    extra = st.sampled_from(["", "   ", f"{mark} other's \"text", f"    {mark} deeper"])
    head = "\n".join([*_loosened(data, chosen[:n], extra), chosen[n]])
    tail = "\n".join(["", *_loosened(data, chosen[n + 1 :], extra)])
    plain = "\n".join(chosen[: n + 1]) + " ‸" + "\n".join(["", *chosen[n + 1 :]])
    assert same(plain, f"{head} ‸{tail}", language)


def _loosened(data: st.DataObject, lines: list[str], extra: st.SearchStrategy[str]) -> list[str]:
    loose: list[str] = []
    for line in lines:
        loose += [*data.draw(st.lists(extra, max_size=2)), line + data.draw(st.sampled_from(["", " ", "\t", "  "]))]
    return loose


@given(st.data(), st.sampled_from(sorted(CODE)))
def test_any_letter_digit_or_operator_that_changes_is_another_place(data: st.DataObject, language: str) -> None:
    lines, _ = CODE[language]
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=8))
    text = "\n".join(chosen)
    n = data.draw(st.integers(0, len(text)))
    spots = [at for at, character in enumerate(text) if not character.isspace()]
    spot = data.draw(st.sampled_from(spots))
    new = data.draw(st.sampled_from("azQ09+<.é漢"))
    assume(text[spot] != new)
    changed = text[:spot] + new + text[spot + 1 :]
    assert not same(text[:n] + "‸" + text[n:], changed[:n] + "‸" + changed[n:], language)
