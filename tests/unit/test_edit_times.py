"""How long ago the last edit was, and what it put in, from the editor's notification to the ask."""

import msgspec
import pytest
from lsprotocol import types as lsp

from monkeycode_lsp import config, convert
from monkeycode_lsp.debounce import Rhythm, delay_ms
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.domain import Trigger
from monkeycode_lsp.pause.model import shipped
from monkeycode_lsp.text import Change
from tests.unit.places import ask, at

URI = "file:///w/app.py"
AUTOMATIC = lsp.InlineCompletionContext(lsp.InlineCompletionTriggerKind.Automatic)
BY_KEY = lsp.InlineCompletionContext(lsp.InlineCompletionTriggerKind.Invoked)


class Clock:
    """Stands until it is set."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def documents(clock):
    documents = Documents(clock=clock)
    documents.open(URI, "python", 1, "a = \n")
    return documents


def typed(text, column=4):
    return Change(text, (0, column), (0, column))


def editor(name):
    info = lsp.ClientInfo(name) if name else None
    return convert.client(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), client_info=info), "utf-16")


def asked(documents, client, context=AUTOMATIC):
    return convert.ask(documents.snapshot(URI, 0, 4), context, documents.last_edit(URI), client)


def test_a_gap_is_the_time_between_two_edits_and_the_first_has_none(documents, clock):
    assert documents.change(URI, 2, [typed("1")]).gap_ms is None
    clock.now_s += 0.25
    assert documents.change(URI, 3, [typed("2", 5)]).gap_ms == pytest.approx(250)
    assert documents.change(URI, 4, [typed("3", 6)]).gap_ms == pytest.approx(0)


def test_each_document_has_edits_of_its_own_and_opening_it_again_forgets_them(documents, clock):
    documents.change(URI, 2, [typed("1")])
    documents.open("file:///w/other.py", "python", 1, "b")
    assert documents.last_edit("file:///w/other.py") == (None, "")
    clock.now_s += 1
    assert documents.last_edit(URI) == (pytest.approx(1_000), "1")
    documents.open(URI, "python", 1, "c")
    assert documents.last_edit(URI) == (None, "")
    assert documents.change(URI, 2, [typed("1", 1)]).gap_ms is None
    documents.close(URI)
    assert documents.last_edit(URI) == (None, "")
    assert documents.change(URI, 3, [typed("1")]) is None


@pytest.mark.parametrize(
    ("changes", "inserted"),
    [
        ([typed("x")], "x"),
        ([typed("\r\n")], "\n"),
        ([typed("a\rb")], "a\nb"),
        ([Change("", (0, 3), (0, 4))], ""),
        ([typed("first"), typed("last", 0)], "last"),
        ([Change("whole text")], "whole text"),
        ([], ""),
    ],
)
def test_what_the_last_change_of_an_edit_put_in_is_told_with_plain_line_ends(documents, changes, inserted):
    assert documents.change(URI, 2, changes).inserted == inserted
    assert documents.last_edit(URI)[1] == inserted
    assert asked(documents, editor("Visual Studio Code")).inserted == inserted


@pytest.mark.parametrize(
    ("name", "waited_s", "since_ms"),
    [
        ("Visual Studio Code", 0.05, 50),
        ("helix", 0.0, 0),
        ("", 0.02, 20),
        ("Neovim", 0.0, 200),  # it holds its edits back as long as its asks
        ("Neovim", 0.15, 200),
        ("Neovim", 0.9, 900),
    ],
)
def test_what_the_editor_has_waited_is_measured_or_known(documents, clock, name, waited_s, since_ms):
    documents.change(URI, 2, [typed("1")])
    clock.now_s += waited_s
    assert asked(documents, editor(name)).since_edit_ms == pytest.approx(since_ms)


@pytest.mark.parametrize("name", ["Visual Studio Code", "Neovim"])
def test_without_an_edit_nothing_was_waited_for(documents, name):
    assert asked(documents, editor(name)).since_edit_ms is None


def test_an_ask_by_key_is_one_however_recent_the_edit(documents):
    documents.change(URI, 2, [typed("1")])
    assert asked(documents, editor("Neovim"), BY_KEY).trigger is Trigger.INVOKED
    assert asked(documents, editor("Neovim")).trigger is Trigger.AUTOMATIC


def test_after_a_deletion_the_ask_goes_out_by_a_threshold_of_its_own():
    rhythm = Rhythm(model=msgspec.structs.replace(shipped(), threshold=0.0, threshold_deleted=1.1))
    settings = config.Debounce(max_ms=300)

    def wait(inserted):
        return delay_ms(ask("x = yes‸", since_edit_ms=0.0, inserted=inserted), at("x = yes‸"), rhythm, settings)

    assert (wait("s"), wait("")) == (0.0, 300.0)
