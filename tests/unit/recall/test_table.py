"""What was made for a document is found there, as long as it agrees."""

import msgspec
import pytest

from monkeycode_lsp.domain import Scope, Window
from monkeycode_lsp.recall.table import DOCUMENTS, PER_DOCUMENT, Table
from tests.unit.places import URI, at

SCOPE = Scope("engine", "settings", "file:///w")
OTHER = "file:///w/other.py"


class Thing(msgspec.Struct):
    """As a finished suggestion or a running generation."""

    window: Window
    text: str
    scope: Scope = SCOPE
    whole: bool = True
    running: bool = False


def finished(then, text, **more):
    return Thing(at(then), text, **more)


def running(then, text, **more):
    return Thing(at(then), text, **({"whole": False, "running": True} | more))


def table(*things, uri=URI):
    made = Table()
    for thing in things:
        made.put(uri, thing)
    return made


def test_what_is_left_of_a_finished_one_is_found():
    thing = finished("he‸\n", "llo()")
    found = table(thing).find(URI, SCOPE, at("hel‸\n"))
    assert found.made is thing
    assert (found.rest.text, found.rest.n_typed) == ("lo()", 1)


@pytest.mark.parametrize("now", ["hex‸\n", "h‸\n", "hello()‸\n", "hel‸\nx"])
def test_what_contradicts_or_has_nothing_left_is_not_found(now):
    assert table(finished("he‸\n", "llo()")).find(URI, SCOPE, at(now)) is None


def test_the_newest_that_has_something_left_wins():
    older, newer, empty = finished("he‸\n", "llo(1)"), finished("hel‸\n", "lo(2)"), finished("he‸\n", "l")
    assert table(older, newer, empty).find(URI, SCOPE, at("hel‸\n")).made is newer


def test_nothing_is_found_in_another_document_or_scope():
    made = table(finished("he‸\n", "llo()"), running("he‸\n", "llo"))
    other = msgspec.structs.replace(SCOPE, settings="others")
    assert made.find(OTHER, SCOPE, at("hel‸\n")) is None
    assert made.running(OTHER, SCOPE, at("hel‸\n")) is None
    assert made.find(URI, other, at("hel‸\n")) is None
    assert made.running(URI, other, at("hel‸\n")) is None


def test_what_runs_is_no_finished_one_and_what_broke_off_is_neither():
    made = table(running("he‸\n", "llo"), running("he‸\n", "llo", whole=True), finished("he‸\n", "llo", whole=False))
    assert made.find(URI, SCOPE, at("hel‸\n")) is None
    only_broken = table(finished("he‸\n", "llo", whole=False))
    assert only_broken.running(URI, SCOPE, at("hel‸\n")) is None
    assert only_broken.astray(URI, SCOPE, at("hex‸\n")) == []


def test_the_newest_running_one_that_agrees_is_found_decided_or_not():
    older, newer, astray = running("he‸\n", "llo"), running("he‸\n", "l"), running("he‸\n", "x")
    made = table(older, newer, astray)
    found = made.running(URI, SCOPE, at("hell‸\n"))
    assert found.made is newer
    assert not found.rest.decided
    newer.text = "lx"
    assert made.running(URI, SCOPE, at("hell‸\n")).made is older
    assert made.astray(URI, SCOPE, at("hell‸\n")) == [newer, astray]


def test_a_running_one_whose_text_is_whole_cannot_catch_up():
    thing = running("he‸\n", "l", whole=True)
    made = table(thing)
    assert made.running(URI, SCOPE, at("hell‸\n")) is None
    assert made.astray(URI, SCOPE, at("hell‸\n")) == [thing]


def test_what_runs_in_another_scope_is_astray():
    thing = running("he‸\n", "l")
    made = table(thing, finished("he‸\n", "x"))
    assert made.astray(URI, SCOPE, at("he‸\n")) == []
    assert made.astray(URI, msgspec.structs.replace(SCOPE, engine="another"), at("he‸\n")) == [thing]
    assert made.astray(OTHER, SCOPE, at("hex‸\n")) == []


def test_this_very_one_is_discarded():
    one, same = finished("he‸\n", "llo()"), finished("he‸\n", "llo()")
    made = table(one, same)
    made.discard(URI, same)
    assert made.find(URI, SCOPE, at("he‸\n")).made is one
    made.discard(URI, one)
    made.discard(URI, one)
    assert made.find(URI, SCOPE, at("he‸\n")) is None


def test_what_runs_is_told_by_document_or_for_all():
    here, there = running("he‸\n", "l"), running("he‸\n", "l")
    made = table(here, finished("he‸\n", "llo"))
    made.put(OTHER, there)
    assert made.all_running(URI) == [here]
    assert made.all_running() == [here, there]
    assert made.forget(URI) == [here]
    assert made.forget(URI) == []
    assert made.all_running() == [there]
    assert made.find(URI, SCOPE, at("he‸\n")) is None


def test_a_document_keeps_its_newest_and_what_runs():
    thing = running("he‸\n", "l")
    made = table(thing, *(finished(f"a{n}‸\n", "b") for n in range(PER_DOCUMENT + 1)))
    assert made.all_running() == [thing]
    assert made.find(URI, SCOPE, at("a0‸\n")) is None
    assert made.find(URI, SCOPE, at("a1‸\n")) is None
    assert made.find(URI, SCOPE, at("a2‸\n")) is not None


def test_even_what_runs_is_bounded():
    things = [running("he‸\n", "l") for _ in range(PER_DOCUMENT + 1)]
    assert table(*things).all_running() == things[1:]


def test_the_documents_used_last_are_kept_and_those_where_something_runs():
    made = table(running("he‸\n", "l"))
    for n in range(DOCUMENTS):
        made.put(f"file:///w/{n}.py", finished("he‸\n", "llo"))
    assert len(made.all_running()) == 1
    assert made.find("file:///w/0.py", SCOPE, at("he‸\n")) is None
    for uri in ("file:///w/1.py", OTHER):
        made.put(uri, finished("he‸\n", "llo"))
    assert made.find("file:///w/1.py", SCOPE, at("he‸\n")) is not None
    assert made.find("file:///w/2.py", SCOPE, at("he‸\n")) is None
