"""What of other places goes into a prompt, and when."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp import clock, config
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.context.window import around
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.gathering import FRESH_S, Gathering
from monkeycode_lsp.text import Change
from tests.unit.places import snapshot
from tests.unit.test_completer import until
from tests.unit.virtual import on_virtual_time

W = "file:///w"
OTHER = 'def to_celsius(fahrenheit):\n    """Convert a temperature."""\n    return (fahrenheit - 32) * 5 / 9\n'
HERE = "from weather import to_celsius\n\n\ndef report(reading):\n    ‸\n"


class Defined(msgspec.Struct, frozen=True):
    path: str
    text: str
    score: float = 1.0


class Index:
    def __init__(self, *defined, takes_s=0.0):
        self.defined, self.takes_s = defined, takes_s
        self.asked, self.told, self.is_started, self.is_closed = [], [], False, False

    def start(self):
        self.is_started = True

    async def definitions(self, names, language, imported, *, path=""):
        self.asked.append((tuple(names), language, tuple(imported), path))
        await asyncio.sleep(self.takes_s)
        return [one for one in self.defined if any(name in one.text for name in names)]

    def changed(self, paths):
        self.told += paths

    async def aclose(self):
        self.is_closed = True


CELSIUS = Defined("weather.py", "def to_celsius(fahrenheit): ...")


def gathering(index=None, /, *, said=None, **settings):
    """`said`: verdicts by URI."""
    decoded, problems = config.decode({"context": settings})
    assert not problems

    async def judge(uri, _workspace):
        await asyncio.sleep(0.001)
        return (said or {}).get(uri, ANYWHERE)

    return Gathering(decoded.context, make_index=lambda _workspace: index, judge=judge)


def opened(gathered, marked, uri="file:///w/app.py", version=1):
    found = msgspec.structs.replace(snapshot(marked, uri=uri), version=version)
    gathered.opened(found)
    return found


async def gather(gathered, here, *, is_here=True, explicit=False, wait_s=1.0):
    window = around(here, gathered.settings)
    gathered.begin(here, window, scale=1.0, is_here=is_here, explicit=explicit)
    await gathered.ready(here.uri, clock.now() + wait_s)
    return gathered.current(here, is_here=is_here)


@on_virtual_time
async def test_definitions_of_names_at_the_cursor_come_from_the_index_and_imports_say_where_to_look():
    index = Index(CELSIUS)
    gathered = gathering(index)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    (snippet,) = await gather(gathered, here)
    assert (snippet.path, snippet.kind, snippet.text) == ("weather.py", "definition", CELSIUS.text)
    ((names, language, imported, path),) = index.asked
    assert index.is_started
    assert "to_celsius" in names
    assert (language, path) == ("python", "app.py")
    assert [one.module for one in imported] == ["weather"]


@on_virtual_time
async def test_what_is_not_found_in_time_is_left_out_and_is_there_for_the_next_ask():
    gathered = gathering(Index(CELSIUS, takes_s=5.0))
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert await gather(gathered, here, wait_s=0.1) == ()
    await asyncio.sleep(6.0)
    assert len(gathered.current(here, is_here=True)) == 1


@on_virtual_time
async def test_within_a_line_nothing_is_looked_up_again_and_in_the_next_one_it_is():
    index = Index(CELSIUS)
    gathered = gathering(index)
    await gather(gathered, opened(gathered, HERE.replace("‸", "x‸")))
    await gather(gathered, snapshot(HERE.replace("‸", "x = to_celsius(‸")))
    assert len(index.asked) == 1
    await gather(gathered, snapshot(HERE.replace("‸", "x = to_celsius(1)\n    ‸")))
    assert len(index.asked) == 2


@on_virtual_time
async def test_an_engine_that_reads_fast_gets_what_a_name_means_as_soon_as_it_is_typed():
    index = Index(CELSIUS)
    gathered = gathering(index)
    gathered.learn(2_000, 50.0)
    document = "def report(reading):\n    ‸\n"
    await gather(gathered, opened(gathered, document.replace("‸", "x‸")))
    (snippet,) = await gather(gathered, snapshot(document.replace("‸", "x = to_celsius(‸")))
    assert snippet.path == "weather.py"


@on_virtual_time
async def test_asked_by_key_it_is_looked_up_in_the_middle_of_a_line():
    index = Index(CELSIUS)
    gathered = gathering(index)
    await gather(gathered, opened(gathered, HERE.replace("‸", "x‸")))
    await gather(gathered, snapshot(HERE.replace("‸", "x = to_celsius(‸")), explicit=True)
    assert len(index.asked) == 2


@on_virtual_time
async def test_passages_of_documents_that_were_open_are_quoted_but_not_those_of_another_workspace():
    gathered = gathering()
    opened(gathered, OTHER + "‸", "file:///w/weather.py")
    elsewhere = snapshot(OTHER + "x = 1\n‸", uri="file:///v/weather.py", workspace="file:///v")
    gathered.opened(elsewhere)
    await asyncio.sleep(1.0)
    gathered.closed("file:///w/weather.py")
    here = opened(gathered, "def convert(fahrenheit):\n    # fahrenheit to celsius, the temperature\n    return (fahrenheit ‸\n")
    (snippet,) = await gather(gathered, here)
    assert (snippet.path, snippet.kind) == ("weather.py", "similar")
    assert "x = 1" not in snippet.text


@on_virtual_time
async def test_recent_edits_elsewhere_are_quoted_as_they_are_now():
    documents, gathered = Documents(), gathering()
    documents.add_folder(W)
    documents.open("file:///w/settings.py", "python", 1, "TIMEOUT = 5\n" + "\n" * 50)
    for found in documents.all_open():
        gathered.opened(found)
    edited = documents.change("file:///w/settings.py", 2, [Change("30", (0, 10), (0, 11))])
    gathered.edited(edited)
    (snippet,) = await gather(gathered, opened(gathered, "def wait():\n    ‸\n"))
    assert (snippet.kind, snippet.path) == ("edit", "settings.py")
    assert "TIMEOUT = 30" in snippet.text


@pytest.mark.parametrize(
    ("verdict", "is_here", "n_quoted"),
    [
        (Verdict(Level.NEVER, is_quoted=False), True, 0),
        (Verdict(Level.ANYWHERE, is_quoted=False), True, 0),
        (Verdict(Level.LOCAL), True, 1),
        (Verdict(Level.LOCAL), False, 0),
        (ANYWHERE, False, 1),
    ],
)
@on_virtual_time
async def test_the_ignore_files_decide_what_is_quoted_and_for_whom(verdict, is_here, n_quoted):
    gathered = gathering(Index(CELSIUS), said={"file:///w/weather.py": verdict})
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert len(await gather(gathered, here, is_here=is_here)) == n_quoted


@on_virtual_time
async def test_what_was_chosen_is_not_quoted_any_more_once_the_ignore_files_say_so():
    said = {}
    gathered = gathering(Index(CELSIUS), said=said)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert len(await gather(gathered, here)) == 1
    said["file:///w/weather.py"] = Verdict(Level.NEVER, is_quoted=False)
    gathered.forget()
    assert gathered.current(here, is_here=True) == ()
    assert await gather(gathered, here) == ()


@on_virtual_time
async def test_what_was_chosen_for_an_engine_on_this_machine_is_not_sent_to_another():
    gathered = gathering(Index(CELSIUS), said={"file:///w/weather.py": Verdict(Level.LOCAL)})
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert len(await gather(gathered, here, is_here=True)) == 1
    assert gathered.current(here, is_here=False) == ()


@on_virtual_time
async def test_documents_without_a_workspace_are_quoted_beside_each_other_and_unsaved_ones_nowhere():
    for uri, n_quoted in (("file:///home/me/notes/weather.py", 1), ("file:///home/me/other/weather.py", 0), ("untitled:Untitled-1", 0)):
        gathered = gathering()
        gathered.opened(snapshot(OTHER + "‸", uri=uri, workspace=""))
        await asyncio.sleep(1.0)
        marked = "def convert(fahrenheit):\n    # fahrenheit to celsius, the temperature\n    return (fahrenheit ‸\n"
        here = snapshot(marked, uri="file:///home/me/notes/app.py", workspace="")
        gathered.opened(here)
        assert len(await gather(gathered, here)) == n_quoted, uri


@on_virtual_time
async def test_files_that_were_written_are_told_to_the_index_and_looked_up_anew():
    index = Index(CELSIUS)
    gathered = gathering(index)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    await gather(gathered, here)
    index.defined = (Defined("weather.py", "def to_celsius(fahrenheit, digits): ..."),)
    gathered.saved("file:///w/weather.py", W, Path("/w/weather.py"))
    (snippet,) = await gather(gathered, here)
    assert "digits" in snippet.text
    assert index.told == [Path("/w/weather.py")]


@on_virtual_time
async def test_without_a_budget_or_an_index_nothing_is_looked_for():
    index = Index(CELSIUS)
    for settings in ({"snippetTokens": 0}, {"index": False}):
        gathered = gathering(index, **settings)
        here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
        assert await gather(gathered, here) == ()
    assert not index.is_started
    assert not index.asked


async def test_an_index_that_fails_costs_its_definitions_only():
    class Broken(Index):
        async def definitions(self, names, language, imported, *, path=""):
            raise RuntimeError("a fault of ours")

    gathered = gathering(Broken())
    opened(gathered, OTHER + "‸", "file:///w/weather.py")
    await until(lambda: True)
    assert await gather(gathered, opened(gathered, HERE)) == ()


@on_virtual_time
async def test_closing_ends_everything_that_runs():
    index = Index(CELSIUS, takes_s=60.0)
    gathered = gathering(index)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    await gather(gathered, here, wait_s=0.1)
    await gathered.aclose()
    assert index.is_closed
    assert len(asyncio.all_tasks()) == 1


@on_virtual_time
async def test_a_document_that_is_closed_leaves_nothing_behind_but_what_it_said():
    gathered = gathering(Index(CELSIUS, takes_s=60.0))
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    await gather(gathered, here, wait_s=0.1)
    gathered.closed(here.uri)
    await asyncio.sleep(0.1)
    assert gathered.current(here, is_here=True) == ()
    await gathered.aclose()


@on_virtual_time
async def test_what_was_edited_since_it_was_quoted_is_quoted_as_it_is_now():
    gathered = gathering()
    opened(gathered, OTHER + "‸", "file:///w/weather.py")
    await asyncio.sleep(1.0)
    here = opened(gathered, "def convert(fahrenheit):\n    # fahrenheit to celsius, the temperature\n    return (fahrenheit ‸\n")
    (snippet,) = await gather(gathered, here)
    assert "Convert a temperature" in snippet.text
    changed = snapshot(OTHER.replace("Convert a temperature", "Convert the temperature") + "‸", uri="file:///w/weather.py")
    gathered.left(changed)
    await asyncio.sleep(1.0)
    (snippet,) = await gather(gathered, here)
    assert "Convert the temperature" in snippet.text


@on_virtual_time
async def test_what_is_imported_and_not_used_yet_is_looked_up_before_what_is_only_near():
    index = Index(CELSIUS)
    gathered = gathering(index)
    document = "from weather import to_celsius, to_kelvin\n\n\ndef report(reading):\n    other_thing(reading, to_kelvin)\n    ‸\n"
    await gather(gathered, opened(gathered, document))
    await gather(gathered, snapshot(document.replace("‸", "another(‸")), explicit=True)
    (first, *_), (second, *_) = index.asked
    assert first[0] == "to_celsius"
    assert second[:2] == ("another", "to_celsius")


@on_virtual_time
async def test_what_became_private_is_not_quoted_two_seconds_later_also_in_the_same_line():
    said = {}
    gathered = gathering(Index(CELSIUS), said=said)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert len(await gather(gathered, here)) == 1
    said["file:///w/weather.py"] = Verdict(Level.NEVER, is_quoted=False)
    await asyncio.sleep(FRESH_S + 0.1)
    assert await gather(gathered, here) == ()


@on_virtual_time
async def test_what_became_private_is_not_kept_at_the_next_line():
    said = {}
    gathered = gathering(Index(CELSIUS), said=said)
    assert len(await gather(gathered, opened(gathered, HERE.replace("‸", "return to_celsius(‸")))) == 1
    said["file:///w/weather.py"] = Verdict(Level.NEVER, is_quoted=False)
    assert await gather(gathered, snapshot(HERE.replace("‸", "return to_celsius(1)\n    ‸"))) == ()


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-notebook-cell:/w/book.ipynb#W1"])
@on_virtual_time
async def test_a_document_that_is_no_file_obeys_the_ignore_files_of_its_workspace(uri):
    for verdict, n_quoted in ((ANYWHERE, 1), (Verdict(Level.LOCAL), 0), (Verdict(Level.NEVER, is_quoted=False), 0)):
        gathered = gathering(Index(CELSIUS), said={"file:///w/weather.py": verdict})
        here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"), uri=uri)
        assert len(await gather(gathered, here, is_here=False)) == n_quoted


@on_virtual_time
async def test_a_closed_document_whose_file_is_gone_is_quoted_no_more():
    there = {"file:///w/weather.py"}

    async def find(uris):
        return [uri for uri in uris if uri in there]

    for is_there in (True, False):
        gathered = Gathering(config.Context(), there=find)
        opened(gathered, OTHER + "‸", "file:///w/weather.py")
        await asyncio.sleep(1.0)
        gathered.closed("file:///w/weather.py")
        if not is_there:
            there.clear()
        here = opened(gathered, "def convert(fahrenheit):\n    # fahrenheit to celsius, the temperature\n    return (fahrenheit ‸\n")
        assert bool(await gather(gathered, here)) is is_there


@on_virtual_time
async def test_an_engine_that_turns_out_to_be_slow_gets_no_snippets_any_more():
    gathered = gathering(Index(CELSIUS))
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert len(await gather(gathered, here)) == 1
    gathered.begin(here, around(here, gathered.settings), scale=0.0, is_here=True)
    assert gathered.current(here, is_here=True) == ()
