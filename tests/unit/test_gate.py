"""What is never served, and what keeps an automatic ask quiet."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import Verdict
from monkeycode_lsp.gate import Gate
from tests.unit.places import ask, at


def gate(**completion):
    return Gate(config.decode({"completion": completion})[0])


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        "id_rsa",
        "server.pem",
        "ID_RSA",
        "x.KEY",
        "terraform.tfvars",
        ".npmrc",
        "secrets.yaml",
        "credentials.json",
        "db.secret.yml",
        "monkeycode.toml",
    ],
)
@pytest.mark.parametrize("language", ["shellscript", "plaintext", "python"])
@pytest.mark.parametrize("invoked", [True, False])
def test_secret_files_are_never_served(name, language, invoked):
    assert "secrets" in gate().refuses(ask("a‸", uri=f"file:///w/{name}", language=language, invoked=invoked))


@pytest.mark.parametrize("uri", ["file:///w/.ssh/config", "file:///w/secrets/a.txt", "file:///w/.AWS/x"])
def test_secret_folders_are_never_served(uri):
    assert gate().refuses(ask("a‸", uri=uri))


@pytest.mark.parametrize(
    "uri",
    [
        "file:///w/environment.py",
        "file:///w/id_rsa.pub",
        "file:///w/secrets.py",
        "file:///w/credentials.ts",
        "file:///w/notes.txt",
        "file:///w/.env.example",
        "untitled:Untitled-1",
        "vscode-remote://ssh/w/a.py",
    ],
)
def test_ordinary_files_are_served(uri):
    assert gate().refuses(ask("a‸", uri=uri)) == ""


def test_the_users_own_patterns_are_secret_too():
    assert Gate(config.decode({"privacy": {"secretFiles": ["*.vault"]}})[0]).refuses(ask("a‸", uri="file:///w/a.vault"))


@pytest.mark.parametrize("scheme", ["git", "output", "http", "search-editor"])
def test_other_schemes_are_not_served(scheme):
    assert scheme in gate().refuses(ask("a‸", uri=f"{scheme}:/w/a.py"))


def test_a_language_and_a_glob_can_be_switched_off():
    assert gate(disabledLanguages=["markdown"]).refuses(ask("a‸", language="markdown"))
    assert gate(disabledLanguages=["cs"]).refuses(ask("a‸", language="csharp"))
    assert gate(disabledGlobs=["**/*.md"]).refuses(ask("a‸", uri="file:///w/docs/a.md"))
    assert gate(disabledGlobs=["docs/"]).refuses(ask("a‸", uri="file:///w/docs/a.py"))
    assert not gate(disabledGlobs=["**/*.md"]).refuses(ask("a‸", uri="file:///w/docs/a.py"))


def test_large_and_binary_documents_are_not_served():
    assert Gate(config.decode({"context": {"maxDocumentBytes": 10}})[0]).refuses(ask("a" * 11 + "‸"))
    assert gate().refuses(ask("a‸"), n_nuls=1_001)
    assert not gate().refuses(ask("a‸"), n_nuls=1_000)


@pytest.mark.parametrize(
    ("marked", "quiet"), [("pri‸nt(x)", True), ("print‸(x)", False), ("x = ‸y", False), ("‸", True), ("naï‸ve", True), ("a\n‸", False)]
)
def test_the_middle_of_a_word_and_an_empty_document_are_quiet(marked, quiet):
    assert bool(gate().declines(ask(marked), at(marked))) == quiet
    assert gate().declines(ask(marked, invoked=True), at(marked)) == ""


@pytest.mark.parametrize(
    ("marked", "language", "inside"),
    [
        ("x = 1  # todo ‸", "python", True),
        ("x = '#'  ‸", "python", False),
        ("/* a ‸ */", "c", True),
        ("/* a */ ‸", "c", False),
        ("x = 1 // no‸", "typescript", True),
        ("u = 'http://‸'", "javascript", False),
        ("x = 1 // don't‸", "javascript", True),
        ("-- a‸", "sql", True),
        ("<!-- a ‸ -->", "html", True),
        ("a // b‸", "python", False),
    ],
)
def test_comments_can_be_left_alone(marked, language, inside):
    off = gate(inComments=False)
    seen = at(marked, language=language)
    assert bool(off.declines(ask(marked, language=language), seen)) == inside
    assert off.declines(ask(marked, language=language, invoked=True), seen) == ""
    assert gate().declines(ask(marked, language=language), seen) == ""


def test_what_the_ignore_files_forbid_is_not_served_and_the_pattern_is_named():
    private = Verdict(Level.NEVER, is_quoted=False, why="the pattern *.sql in line 3 of .monkeycodeignore")
    rule = gate().refuses(ask("a‸"), verdict=private)
    assert rule == "The file is private: the pattern *.sql in line 3 of .monkeycodeignore (setting privacy.ignoreFiles)."
    assert gate().refuses(ask("a‸"), verdict=Verdict(Level.LOCAL)) == ""
    assert gate().refuses(ask("a‸"), verdict=Verdict(is_quoted=False)) == ""


@pytest.mark.parametrize("glob", ["!", "a[b-a]", "a\\", "["])
def test_a_glob_that_is_no_pattern_names_no_file_and_breaks_nothing(glob):
    off = gate(disabledGlobs=[glob, "*.md"])
    assert off.refuses(ask("a‸", uri="file:///w/a.md"))
    assert not off.refuses(ask("a‸"))


@pytest.mark.parametrize("invoked", [True, False])
def test_nothing_is_asked_in_a_secret_unless_they_are_shown_to_the_model(invoked):
    secret = "kV9mQ2xW7bN5tR8pL1cZ4fH6jG0sYqE3"
    for marked in (
        f'token = "{secret}‸"\n',
        f'token = "{secret}‸\n',
        f'f(token="{secret}‸, 1)\n',
        f'token = "‸{secret}"\n',
        f"A_TOKEN={secret}‸",
    ):
        assert "secret" in gate().declines(ask(marked, invoked=invoked), at(marked))
        shown = Gate(config.decode({"privacy": {"redactSecrets": False}})[0])
        assert "secret" not in shown.declines(ask(marked, invoked=invoked), at(marked))
    marked = f'token = "{secret}"‸\n'
    assert gate().declines(ask(marked, invoked=invoked), at(marked)) == ""
