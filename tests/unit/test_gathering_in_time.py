"""What is gathered while the user goes on: which of two gatherings counts, what is forgotten, and what is never quoted."""

import asyncio
from pathlib import Path

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import Verdict
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.text import Change
from tests.unit.places import snapshot
from tests.unit.test_gathering import CELSIUS, HERE, OTHER, Defined, Index, W, gather, gathering, opened
from tests.unit.virtual import on_virtual_time

ALIKE = "def convert(fahrenheit):\n    # fahrenheit to celsius, the temperature\n    return (fahrenheit ‸\n"
KELVIN = Defined("kelvin.py", "def to_kelvin(celsius): ...")
NEVER = Verdict(Level.NEVER, is_quoted=False)


@on_virtual_time
async def test_the_same_text_in_two_documents_is_quoted_once():
    # continuedev/continue#5336
    gathered = gathering()
    for name in ("a", "b", "a", "b"):
        opened(gathered, OTHER + "‸", f"file:///w/{name}.py")
    await asyncio.sleep(2.0)
    (snippet,) = await gather(gathered, opened(gathered, ALIKE))
    assert snippet.path in {"a.py", "b.py"}


@pytest.mark.parametrize("kind", ["similar", "edit"])
@on_virtual_time
async def test_what_the_window_shows_of_the_document_itself_is_not_quoted(kind):
    documents, gathered = Documents(), gathering()
    documents.add_folder(W)
    documents.open("file:///w/app.py", "python", 1, OTHER + ALIKE.replace("‸", ""))
    for found in documents.all_open():
        gathered.opened(found)
    await asyncio.sleep(1.0)
    if kind == "edit":
        gathered.edited(documents.change("file:///w/app.py", 2, [Change("_degrees", (0, 14), (0, 14))]))
    here = documents.snapshot("file:///w/app.py", 6, 24)
    assert await gather(gathered, here) == ()


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "untitled:/w/weather.py", "vscode-notebook-cell:/w/book.ipynb#W1"])
@on_virtual_time
async def test_what_is_no_file_of_the_workspace_is_quoted_in_no_other_document(uri):
    gathered = gathering()
    opened(gathered, OTHER + "‸", uri)
    await asyncio.sleep(1.0)
    assert await gather(gathered, opened(gathered, ALIKE)) == ()


@on_virtual_time
async def test_an_engine_that_reads_slowly_keeps_what_was_chosen_within_a_line():
    index = Index(CELSIUS)
    gathered = gathering(index)
    gathered.learn(2_000, 20_000.0)
    document = "def report(reading):\n    ‸\n"
    await gather(gathered, opened(gathered, document.replace("‸", "x‸")))
    assert await gather(gathered, snapshot(document.replace("‸", "x = to_celsius(‸"))) == ()
    assert len(index.asked) == 1


@on_virtual_time
async def test_a_prompt_that_was_mostly_known_says_nothing_of_how_fast_the_engine_reads():
    index = Index(CELSIUS)
    gathered = gathering(index)
    gathered.learn(2_000, 20_000.0)
    gathered.learn(40, 0.1)
    document = "def report(reading):\n    ‸\n"
    await gather(gathered, opened(gathered, document.replace("‸", "x‸")))
    await gather(gathered, snapshot(document.replace("‸", "x = to_celsius(‸")))
    assert len(index.asked) == 1


@pytest.mark.parametrize("is_written", [True, False])
@on_virtual_time
async def test_edits_of_a_closed_file_that_another_program_writes_are_forgotten(*, is_written):
    documents, gathered = Documents(), gathering()
    documents.add_folder(W)
    documents.open("file:///w/limits.py", "python", 1, "TIMEOUT = 5\n" + "\n" * 50)
    for found in documents.all_open():
        gathered.opened(found)
    gathered.edited(documents.change("file:///w/limits.py", 2, [Change("30", (0, 10), (0, 11))]))
    gathered.closed("file:///w/limits.py")
    if is_written:
        gathered.saved("file:///w/limits.py", W, Path("/w/limits.py"))
    found = await gather(gathered, opened(gathered, "def wait():\n    ‸\n"))
    assert [snippet.path for snippet in found] == ([] if is_written else ["limits.py"])


@on_virtual_time
async def test_what_was_chosen_for_the_documents_asked_last_is_kept_and_no_more():
    gathered = gathering(Index(CELSIUS))
    marked = HERE.replace("‸", "return to_celsius(‸")
    documents = [opened(gathered, marked, f"file:///w/app{n}.py") for n in range(70)]
    for here in documents:
        assert len(await gather(gathered, here)) == 1
    assert [bool(gathered.current(here, is_here=True)) for here in documents] == [False] * 6 + [True] * 64


@on_virtual_time
async def test_of_two_gatherings_for_a_document_the_newer_one_counts():
    class Uneven(Index):
        async def definitions(self, names, language, imported, *, path=""):
            self.takes_s = 5.0 if not self.asked else 0.1
            return await super().definitions(names, language, imported, path=path)

    gathered = gathering(Uneven(CELSIUS, KELVIN))
    first = opened(gathered, "x = 1\nto_celsius(‸\n" + "\n" * 200)
    assert await gather(gathered, first, wait_s=0.2) == ()
    later = snapshot("x = 1\n" + "\n" * 200 + "to_kelvin(‸\n")
    assert [snippet.path for snippet in await gather(gathered, later)] == ["kelvin.py"]
    await asyncio.sleep(10.0)
    assert [snippet.path for snippet in gathered.current(later, is_here=True)] == ["kelvin.py"]


@on_virtual_time
async def test_what_became_private_while_it_was_gathered_is_not_quoted():
    said = {}

    async def slowly(uri, _workspace):
        verdict = said.get(uri, Verdict(Level.ANYWHERE))
        await asyncio.sleep(0.05)
        return verdict

    gathered = Gathering(config.Context(), make_index=lambda _workspace: Index(CELSIUS), judge=slowly)
    here = opened(gathered, HERE.replace("‸", "return to_celsius(‸"))
    assert await gather(gathered, here, wait_s=0.03) == ()
    said["file:///w/weather.py"] = NEVER
    gathered.forget()
    await asyncio.sleep(1.0)
    assert gathered.current(here, is_here=True) == ()
    assert await gather(gathered, here) == ()
