"""One ignore file: what its patterns say, and what is an error rather than a pattern that matches nothing."""

import time

import pytest

from monkeycode_lsp.context import ignores
from monkeycode_lsp.context.ignores import Level


def private(text, name=".monkeycodeignore"):
    return ignores.read("", name, text if isinstance(text, bytes) else text.encode())


def level(text, path):
    standing = private(text).after({}, path)
    return max(standing) if standing is not None else None


def test_a_plain_file_means_never():
    assert level("secret/\n*.sql\n", "secret/a.py") is Level.NEVER
    assert level("secret/\n*.sql\n", "db/x.sql") is Level.NEVER
    assert level("secret/\n*.sql\n", "a.py") is None


def test_sections_say_how_far_and_what_comes_last_takes_back():
    text = "a/\n\n[local]  # only here\nb/\n*.md\n[Anywhere]\nb/public/\n[never]\nb/public/x.md\n"
    assert [level(text, path) for path in ("a/x", "b/x", "b/public/y", "b/public/x.md", "c.md")] == [
        Level.NEVER, Level.LOCAL, Level.ANYWHERE, Level.NEVER, Level.LOCAL,
    ]  # fmt: skip


def test_an_exception_lifts_a_pattern():
    assert level("secret/\n!secret/readme.md", "secret/readme.md") is Level.ANYWHERE
    assert level("secret/\n!secret/readme.md", "secret/other.md") is Level.NEVER


@pytest.mark.parametrize(
    "text", ["a.py\n[local]\n*.py", "[local]\n*.py\n[never]\na.py", "a.py\n[local]\n!a.py", "[never]\na.py\n[local]\n*.py\n!a.py"]
)
def test_what_is_never_served_stays_so_whatever_is_said_of_this_machine(text):
    assert level(text, "a.py") is Level.NEVER


def test_an_exception_takes_back_what_its_own_section_says_and_the_last_section_everything():
    text = "[local]\n*.py\n[never]\na.py\n!a.py\nb.py\n[anywhere]\nb.py"
    assert [level(text, path) for path in ("a.py", "b.py", "c.py", "c.txt")] == [Level.LOCAL, Level.ANYWHERE, Level.LOCAL, None]


@pytest.mark.parametrize("path", ["SECRET/A.PY", "Secret/a.py", "secret/A.py"])
def test_case_does_not_open_what_is_private(path):
    assert level("Secret/a.PY", path) is Level.NEVER


def test_two_spellings_of_one_letter_are_the_same():
    assert level("caf\u00e9/", "cafe\u0301/a") is Level.NEVER


@pytest.mark.parametrize("text", ["\ufeffa.py", "a.py\r\n", "# a comment\n\n  \na.py", "/a.py"])
def test_what_editors_write_around_patterns_is_no_matter(text):
    assert level(text, "a.py") is Level.NEVER


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("ok\n[lcoal]\nx", 2, "no section [lcoal]"),
        ("[local\nx", 1, "a [ has no ]"),
        ("ok\n\n\n!", 4, "no pattern"),
        ("a\\", 1, "no pattern"),
        ("src\\secret", 1, "separated by /"),
        ("./secret", 1, "relative to the file's own folder"),
        ("../other/x", 1, "relative to the file's own folder"),
        ("~/x", 1, "relative to the file's own folder"),
        ("C:/x", 1, "relative to the file's own folder"),
        ("[anywhere]\n!x", 2, "[never] or [local]"),
        ("x[z-a]", 1, "no pattern"),
        ("x[[:upper:]]", 1, "is not understood"),
        ("a\0b", 1, "control character"),
        ("/", 1, "matches nothing"),
        ("a*b*c*d*e*f", 1, "more than 4 *"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_its_line(text, line, why):
    fault = private(text).fault
    assert (fault.line, why in fault.why) == (line, True), fault
    assert private(text).rules == ()


@pytest.mark.parametrize("data", ["ab\nä".encode("utf-16"), b"ok\n\xe4\n", b"x\n" * 600_000, None])
def test_a_file_that_is_no_text_is_an_error(data):
    assert ignores.read("", ".monkeycodeignore", data).fault is not None


@pytest.mark.parametrize("data", [b"[abc\n./x\n!\na*b*c*d*e*f*g", b"\xff\xfe", None])
def test_in_a_file_of_git_a_line_that_git_does_not_understand_matches_nothing(data):
    file = ignores.read("", ".gitignore", data)
    assert (file.fault, file.last_match("a/x")) == (None, None)


@pytest.mark.parametrize(
    ("name", "says"), [(".gitignore", False), (".dockerignore", False), (".monkeycodeignore", True), (".aiexclude", True)]
)
def test_the_name_tells_whether_a_file_keeps_something_private(name, says):
    assert ignores.is_private(name) is says


def test_a_hostile_pattern_and_name_cost_no_time():
    file = private("\n".join(["*a*a*a*b"] * 50 + ["**/" * 40 + "x"]))
    began = time.perf_counter()
    for path in ("a" * 250, "a/" * 400 + "a", "a" * 60):
        file.after({}, path)
    assert time.perf_counter() - began < 5
