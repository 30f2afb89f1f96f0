"""What still agrees with a text a little later, and what is left of it."""

import time
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import agreement
from monkeycode_lsp.recall.agreement import Rest, rest
from tests.unit.places import at

CLOSED = {"(": ")", "[": "]", "{": "}", '"': '"'}


def left(then, text, now, *, whole=True):
    found = rest(at(then), text, at(now), whole=whole)
    return found if found is None else found.text


TYPED = {
    "nothing yet": ("he‸\n", "llo()", "he‸\n", "llo()"),
    "some of it": ("he‸\n", "llo()", "hell‸\n", "o()"),
    "over a line's end": ("if a:‸\nx", "\n    b()\n    c()", "if a:\n    b()\n‸\nx", "    c()"),
    "all of it": ("he‸\n", "llo()", "hello()‸\n", ""),
    "something else": ("he‸\n", "llo()", "hex‸\n", None),
    "more than all of it": ("he‸\n", "llo()", "hello() ‸\n", None),
    "left of the place": ("hel‸\n", "lo()", "he‸\n", None),
    "left of the place, nothing changed": ("hel‸\n", "lo()", "he‸l\n", None),
    "another suffix": ("he‸\n", "llo()", "hel‸\nx", None),
    "something was taken away after the cursor": ("he‸ x\n", "llo()", "hel‸x\n", None),
    "a bracket that was there before": ("f(‸)", "a, b", "f(a‸)", ", b"),
    "a bracket after the cursor that the user put there": ("he‸\n", "llo()", "hel‸)\n", None),
    "backspaced and typed again": ("x = fo‸\n", "o(1)", "x = foo(‸\n", "1)"),
}

CLOSERS = {
    "a bracket": ("x = ‸\n", "foo(bar)", "x = foo(‸)\n", "bar"),
    "a bracket, and more was typed": ("x = ‸\n", "foo(bar)", "x = foo(ba‸)\n", "r"),
    "nothing is left before the bracket": ("x = ‸\n", "foo(bar)", "x = foo(bar‸)\n", ""),
    "typed over": ("x = ‸\n", "foo(bar) + 1", "x = foo(bar)‸\n", " + 1"),
    "what follows the bracket cannot be put before it": ("x = ‸\n", "foo(bar) + 1", "x = foo(‸)\n", "bar"),
    "brackets inside are not the end": ("x = ‸\n", "foo(a(b), c)", "x = foo(‸)\n", "a(b), c"),
    "nested": ("‸\n", "f({a: 1})", "f({‸})\n", "a: 1"),
    "nested, one typed over": ("‸\n", "f({a: 1}, 2)", "f({a: 1}‸)\n", ", 2"),
    "only the outer one is closed": ("‸\n", "f({a: 1}, 2)", "f({‸)\n", "a: 1}, 2"),
    "a quote": ("x = ‸\n", '"abc" + y', 'x = "‸"\n', "abc"),
    "a quote typed over": ("x = ‸\n", '"abc" + y', 'x = "abc"‸\n', " + y"),
    "a bracket in a string is none": ("‸\n", 'print("a)b") + 1', "print(‸)\n", '"a)b"'),
    "both": ("‸\n", 'print("a)b") + 1', 'print("‸")\n', "a)b"),
    "in the string already": ("‸\n", 'print("a)b") + 1', 'print("a)‸")\n', "b"),
    "an escaped quote": ("‸\n", r'p("a\"b", c)', r'p("a‸")', None),
    "an escaped quote, same end": ("‸\n", r'p("a\"b", c)', 'p("a‸")\n', r"\"b"),
    "only the bracket, not the quote": ("‸\n", 'print("a")', 'print("‸)\n', 'a"'),
    "an apostrophe": ("‸\n", "say(don't)", "say(don't‸)\n", ""),
    "a lifetime is no string": ("‸\n", "fn f(x: &'a str) -> u8 {", "fn f(x: &'a‸)\n", " str"),
    "triple quotes": ("‸\n", '"""Say it."""', '"""‸"""\n', "Say it."),
    "triple quotes that were begun": ("‸\n", '"""Say it."""', '"‸"\n', ""),
    "a closing line": ("if (a) ‸\n", "{\n    foo();\n}", "if (a) {\n    ‸\n}\n", "foo();"),
    "a closing line, and more was typed": ("if (a) ‸\n", "{\n    foo();\n    b();\n}", "if (a) {\n    foo();\n    b‸\n}\n", "();"),
    "a closing line inside": ("‸\n}\n", "f(function () {\n  a();\n});", "f(function () {\n  ‸\n})\n}\n", "a();"),
    "a mirrored blank": ("x = ‸\n", "{ a: 1 }", "x = { ‸ }\n", "a: 1"),
    "a tag": ("‸\n", '<div class="a">text</div>\n<p>', '<div class="a">‸</div>\n', "text"),
    "a closer that nobody opened": ("‸\n", "foo(bar)", "foo(‸]\n", None),
    "a closer and something else": ("‸\n", "foo(bar)", "foo(‸) x\n", None),
    "a closing line without a line's end": ("‸\n", "{ a: 1 }", "{‸\n}\n", None),
    "the closer of an opener that was there": ("f(‸\n", "a, b)", "f(a‸)\n", None),
    "a bracket before the cursor that was there": ("f(‸)\n", "a(b)", "f(a(‸))\n", "b"),
    "another statement's end": ("f(‸)\n", "a) + g(b) + 1", "f(a) + g(‸)\n", "b"),
    "the standing one typed over": ("f(‸)\n", "a)\ng()", "f(a)‸\n", "\ng()"),
    "the standing one typed over, after an escape": ("f(‸)\n", "a\\n)\nb", "f(a\\n)‸\n", "\nb"),
    "the standing one typed over, after a string without an end": ('f("‸)\n', "a\nb)\nc", 'f("a\nb)‸\n', "\nc"),
    "a line's end alone is no closer": ("‸x\n", '"a\nbc', '"a\nb‸\nx\n', None),
    "a lifetime, and a block": ("‸\n", "fn(&'a str, {\n  x\n}) y", "fn(&'a str, {‸})\n", "\n  x\n"),
    "closed in the wrong order": ("‸\n", "f([a)", "f([‸])\n", "a"),
    "a string over several lines": ("‸\n", "`a\nb` + c", "`a\n‸`\n", "b"),
    "an apostrophe, and a string": ("‸\n", "say(don't) + 'x'", "say(don't‸)\n", ""),
    "a string that was begun before": ('x = "‸"\n', 'a" + f("b', 'x = "a" + f(‸)\n', '"b'),
}

INDENTS = {
    "the same": ("if a:‸\n", "\n    b()", "if a:\n    ‸\n", "b()"),
    "less: the rest is still to come": ("if a:‸\n", "\n    b()", "if a:\n  ‸\n", "  b()"),
    "none": ("if a:‸\n", "\n    b()", "if a:\n‸\n", "    b()"),
    "more, inside brackets": ("x = f‸\n", "(\n    a,\n    b,\n)", "x = f(\n        ‸\n", "a,\n        b,\n)"),
    "more, and typed on": ("x = f‸\n", "(\n    aa,\n    b,\n)", "x = f(\n        a‸\n", "a,\n        b,\n)"),
    "more, and the next line": ("x = f‸\n", "(\n    a,\n    b,\n)", "x = f(\n        a,\n        ‸\n", "b,\n)"),
    "less, and typed on": ("if a:‸\n", "\n    bb()\n    c()", "if a:\n  b‸\n", "b()\n  c()"),
    "tabs": ("if a:‸\n", "\n    b()\n    c()", "if a:\n\t‸\n", "b()\n\tc()"),
    "tabs, and what would stand beside them": ("  if a:‸\n", "\n    b()\n  c()", "  if a:\n  \t‸\n", "b()"),
    "more, but the text leaves the block": ("    return x‸\n", "\ndef f():", "    return x\n    ‸\n", None),
    "more, but the text stays on its level": ("if a:\n    b()‸\n", "\n    c()", "if a:\n    b()\n        ‸\n", None),
    "on an empty line": ("    return x‸\n", "\n\ndef f():", "    return x\n    ‸\n", "\ndef f():"),
    "after an empty line that has been given some": ("    a()‸\n", "\n\n    b()", "    a()\n    \n    ‸\n", "b()"),
    "after two empty lines that have been given some": ("    a()‸\n", "\n\n\n    b()", "    a()\n    \n    \n    ‸\n", "b()"),
    "more, where the text has an empty line and something was typed": ("    a()‸\n", "\n\n    b()", "    a()\n    b‸\n", None),
    "blanks, where the block around has tabs": ("\tif a:‸\n", "\n\t\tb()", "\tif a:\n        ‸\n", None),
    "a tab within the line is no indentation": ("x =‸\n", "  a", "x =\ta‸\n", None),
    "nor is it one line later": ("x =‸\n", "  a\n  b", "x =\ta\n‸\n", None),
    "another line's end than the text has": ("    a()‸\n", "\n    b()", "    a()\n\n    ‸\n", None),
    "a blank inside a line is no indentation": ("if a:‸\n", "\n    b(1, 2)", "if a:\n    b(1,  ‸\n", None),
}


@pytest.mark.parametrize(("then", "text", "now", "expected"), TYPED.values(), ids=TYPED)
def test_what_was_typed_is_not_said_again(then, text, now, expected):
    assert left(then, text, now) == expected


@pytest.mark.parametrize(("then", "text", "now", "expected"), CLOSERS.values(), ids=CLOSERS)
def test_what_the_editor_has_closed_is_not_closed_again(then, text, now, expected):
    assert left(then, text, now) == expected


@pytest.mark.parametrize(("then", "text", "now", "expected"), INDENTS.values(), ids=INDENTS)
def test_the_editor_may_indent_in_its_own_way(then, text, now, expected):
    assert left(then, text, now) == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("he‸\n", Rest("llo(", 0, decided=True)),
        ("hell‸\n", Rest("o(", 2, decided=True)),
        ("hello(‸\n", Rest("", 4, decided=True)),
        ("hello(‸)\n", Rest("", 4, decided=True)),
        ("hello(wor‸\n", Rest("", 4, decided=False)),
        ("hello(wor‸)\n", Rest("", 4, decided=False)),
        ('hello("wor)‸")\n', Rest("", 4, decided=False)),
        ("hello(wor‸)x\n", None),
        ("hex‸\n", None),
    ],
)
def test_a_text_that_is_still_being_made_may_be_behind(now, expected):
    assert rest(at("he‸\n"), "llo(", at(now), whole=False) == expected


def test_a_finished_text_is_never_behind():
    assert rest(at("he‸\n"), "llo(", at("hello(wor‸\n"), whole=True) is None


def test_how_much_was_typed_does_not_count_the_editors_own_indentation():
    assert rest(at("f‸\n"), "(\n    a,\n)", at("f(\n        a‸\n"), whole=True).n_typed == len("(\n    a")
    assert rest(at("f‸\n"), "(\n    a,\n)", at("f(\n  ‸\n"), whole=True).n_typed == len("(\n  ")
    assert rest(at("f‸\n"), "(\n    a,\n    b)", at("f(\n        a,\n  ‸\n"), whole=True).n_typed == len("(\n    a,\n  ")


def test_however_long_a_text_is_what_was_taken_of_it_is_known_and_a_running_one_is_not_followed_far():
    text, most = "x" * 1_000, agreement.LOOK_BACK
    assert left("a‸\n", text, "a" + "x" * 900 + "‸\n") == "x" * 100
    assert agreement.rest(at("a‸\n"), "", at("a" + "x" * most + "‸\n"), whole=False) is not None
    assert agreement.rest(at("a‸\n"), "", at("a" + "x" * (most + 1) + "‸\n"), whole=False) is None


LINES = "".join(f"line {n} of the document\n" for n in range(40))


def cut(prefix, suffix, *, whole_prefix=False, whole_suffix=False):
    return Window(prefix, suffix, "python", "app.py", whole_prefix=whole_prefix, whole_suffix=whole_suffix)


def test_windows_that_begin_at_different_lines_are_the_same_place():
    later = LINES[LINES.index("line 16") :]
    then, now = cut(LINES + "he", ""), cut(later + "hel", "")
    assert rest(then, "llo", now, whole=True).text == "lo"
    assert rest(cut(later + "he", ""), "llo", cut(LINES + "hel", ""), whole=True).text == "lo"
    assert rest(then, "llo", cut(later + "hex", ""), whole=True) is None
    assert rest(then, "llo", cut(later.replace("line 30", "line 3x") + "hel", ""), whole=True) is None
    assert rest(cut(LINES.replace("line 17", "line 1x") + "he", ""), "llo", cut(later + "hel", ""), whole=True) is None, (
        "all that both show counts"
    )
    assert rest(cut("he", ""), "llo", cut(LINES + "hel", ""), whole=True) is None, "too little to tell the place by"
    both = cut(LINES + "he", "", whole_prefix=True), cut(later + "hel", "", whole_prefix=True)
    assert rest(both[0], "llo", both[1], whole=True) is None, "documents with other beginnings"


def test_windows_that_end_at_different_lines_are_the_same_place():
    short = LINES[:200]
    assert rest(cut("he", short), "llo()", cut("hel", LINES), whole=True).text == "lo()"
    assert rest(cut("he", LINES), "llo(a)", cut("hello(", ")" + short), whole=True).text == "a"
    assert rest(cut("he", LINES[:99]), "llo()", cut("hel", LINES), whole=True) is None, "too little to tell the place by"
    assert rest(cut("he", LINES), "llo()", cut("hel", LINES[:99]), whole=True) is None
    assert rest(cut("he", short, whole_suffix=True), "llo()", cut("hel", LINES), whole=True) is None, "the document ended there"
    assert rest(cut("he", LINES), "llo()", cut("hel", short, whole_suffix=True), whole=True) is None


def test_all_of_a_text_stands_before_the_cursor_or_it_does_not():
    long = "x" * 1000
    assert agreement.taken(at("a‸\n"), long, at(f"a{long}‸\n"))
    assert agreement.taken(at("a‸\n"), long, at(f"a{long} + 1‸\n"))
    assert not agreement.taken(at("a‸\n"), long, at(f"a{long[:-1]}‸\n"))


def test_a_place_that_does_not_agree_costs_next_to_nothing():
    then, now = at(LINES * 6 + "he‸\n" + LINES * 4), at(LINES * 6 + "hex‸\n" + LINES * 4)
    start = time.perf_counter()
    for _ in range(1000):
        assert rest(then, "llo(world)", now, whole=True) is None
    assert time.perf_counter() - start < 1.0


def test_text_that_is_nested_without_end_costs_little():
    text = "(" + "([{" * 3000 + "</a>" * 3000
    start = time.perf_counter()
    rest(at("‸\n"), text, at("(‸)\n"), whole=True)
    assert time.perf_counter() - start < 1.0


WORDS = st.lists(st.sampled_from(["a", "b", " ", "\n", "\n  ", "(", ")", "[", "]", "{", "}", '"', "'", ", "]), max_size=14).map("".join)


class Typist:
    """An editor that closes brackets and quotes by itself, and lets them be typed over."""

    def __init__(self, prefix, suffix, closes):
        self.prefix, self.suffix, self.closes = prefix, suffix, closes
        self.own = ""

    def type(self, text):
        for char in text:
            if char not in " \n" and self.own.lstrip("\n").startswith(char):
                self.own = self.own.lstrip("\n")[1:]
            elif char in self.closes:
                self.own = CLOSED[char] + self.own
            elif char == "\n" and self.own.startswith("}") and self.prefix.endswith("{"):
                self.own = "\n" + self.own
            self.prefix += char

    @property
    def window(self):
        return Window(self.prefix, self.own + self.suffix, "python", "app.py")


class Script(NamedTuple):
    prefix: str
    text: str
    suffix: str
    n: int
    closes: frozenset[str]

    @property
    def then(self):
        return Window(self.prefix, self.suffix, "python", "app.py")

    def typist(self, other=""):
        """Who has typed a beginning of the text, and then something else."""
        typist = Typist(self.prefix, self.suffix, self.closes)
        typist.type(self.text[: self.n] + other)
        return typist


SCRIPTS = st.builds(
    Script,
    prefix=st.sampled_from(["", "x = ", "f(", 'say("', "if a:\n    "]),
    text=WORDS.filter(bool),
    suffix=st.sampled_from(["", "\n", ")\n", '")', "\n}\n", "}"]),
    n=st.integers(0, 20),
    closes=st.frozensets(st.sampled_from(sorted(CLOSED))),
)


@given(SCRIPTS, st.one_of(st.just(""), WORDS), st.booleans())
def test_what_is_left_continues_the_document_as_the_text_does(script, other, whole):
    typist = script.typist(other)
    now, typed, text = typist.window, script.text[: script.n] + other, script.text
    found = rest(script.then, text, now, whole=whole)
    if found is None:
        return
    if not found.decided:
        assert not whole
        assert not found.text
        assert bare(typed).startswith(bare(text))
        return
    document = bare(now.prefix + found.text)
    assert bare(script.prefix + text).startswith(document)
    if now.suffix == script.suffix and not typist.own and "\n" not in typed and not set(typed) & set(")]}\"'"):
        assert document == bare(script.prefix + text)


@given(SCRIPTS)
def test_whoever_types_what_the_text_says_never_loses_it(script):
    assume(not script.suffix.strip("\n"))  # what stands there may be typed over, too
    assume(is_plain(script.text) or not script.closes)
    assert rest(script.then, script.text, script.typist().window, whole=True) is not None


@given(SCRIPTS)
def test_no_closer_is_doubled(script):
    assume(is_plain(script.text))
    typist = script.typist()
    found = rest(script.then, script.text, typist.window, whole=True)
    if found is not None and found.text and typist.own:
        typist.type(found.text)
        assert typist.own, "the rest has typed over what stood there"


def bare(text):
    """Without the white space that lines begin and end with."""
    return "\n".join(line.strip() for line in text.split("\n")).rstrip()


def is_plain(text):
    """Whether every bracket is well nested, and no quote is used."""
    stack = []
    for char in text:
        if char in "'\"":
            return False
        if char in "([{":
            stack.append(CLOSED[char])
        elif char in ")]}" and (not stack or stack.pop() != char):
            return False
    return True
