"""Kind H, and what is like it: what happens to a document while an answer for it is on its way."""

import asyncio

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

CANCELLED = -32800
CLOSED_S = 0.2
HELIX = driver.VSCODE | {
    "clientInfo": {"name": "helix", "version": "25.07.1"},
    "capabilities": {"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}}},
}


def held(text):
    """Says `text` once it is released."""

    async def script(exchange):
        await exchange.hold()
        await servers.reply(text)(exchange)

    return script


async def begun(scene, marked, *, language="python", uri=None):
    """An ask whose generation is running."""
    n_before = len(scene.backend.requests)
    uri, line, column = scene.put(marked, language=language, uri=uri)
    asked = scene.lsp.ask(uri, line, column)
    await asyncio.wait_for(scene.backend.request(n_before), 10)
    return uri, line, column, asked


async def reply(asked):
    return await asyncio.wait_for(asked, 10)


async def is_stopped(request, since):
    await asyncio.wait_for(request.closed.wait(), 5)
    assert request.closed_at - since < CLOSED_S


def now():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("asks_between", [False, True], ids=["quietly", "asking"])
async def test_what_was_typed_and_undone_is_answered_for_the_text_as_it_is(start, asks_between):
    async with start(held("ar()")) as scene:
        uri, line, column, old = await begun(scene, "foob‸")
        scene.lsp.change(uri, (line, column), (line, column), "x")
        between = scene.lsp.ask(uri, line, column + 1) if asks_between else None
        scene.lsp.change(uri, (line, column), (line, column + 1), "")
        new = scene.lsp.ask(uri, line, column)
        await scene.lsp.settled()
        scene.backend.release()
        assert (await reply(old))["result"] is None
        if between is not None:
            assert (await reply(between))["result"] is None
        (item,) = (await reply(new)).items_
        assert scene.lsp.apply(uri, item) == "foobar()"


async def test_what_was_undone_before_the_answer_came_costs_no_second_request(start):
    async with start(held("ar()")) as scene:
        uri, line, column, asked = await begun(scene, "foob‸")
        scene.lsp.change(uri, (line, column), (line, column), "x")
        scene.lsp.change(uri, (line, column), (line, column + 1), "")
        await scene.lsp.settled()
        scene.backend.release()
        for item in (await reply(asked)).items_:  # it may also be null: an edit is an edit
            assert scene.lsp.apply(uri, item) == "foobar()"
        again = await scene.ask(uri, line, column)
        assert (again.result, again.requests) == ("foobar()", [])


@pytest.mark.parametrize(
    "edits",
    [
        [((0, 0), (0, 0), "# above\n")],
        [((1, 4), (1, 4), "x")],
        [((1, 4), (1, 4), "x"), ((2, 0), (2, 0), "y")],
        [((2, 0), (3, 0), "")],
    ],
    ids=["a line above", "at the cursor", "around the cursor", "a line below"],
)
async def test_whatever_changes_the_older_answer_is_not_shown_in_the_newer_text(start, edits):
    async with start(held("pass")) as scene:
        uri, *_, asked = await begun(scene, "if a:\n    ‸\nb()\nc()\n")
        scene.lsp.changes(uri, edits)
        await scene.lsp.settled()
        scene.backend.release()
        assert (await reply(asked))["result"] is None


async def test_a_menu_for_a_line_that_is_gone_is_empty(home):
    # neovim/neovim#35971, for a client that takes the menu: no range past the end
    async with scenes.running(home, held("1"), params=HELIX) as scene:
        uri, line, column = scene.put("a = 1\nb = 2\nc = ‸")
        asked = scene.lsp.menu(uri, line, column, {"triggerKind": 1})
        await asyncio.wait_for(scene.backend.request(0), 10)
        scene.lsp.change(uri, (0, 5), (2, 4), "")
        await scene.lsp.settled()
        scene.backend.release()
        assert (await reply(asked)).items_ == []


@pytest.mark.parametrize(
    ("closes", "text", "language"),
    [
        (True, "v = other + ", "python"),
        (True, "v = ", "ruby"),
        (False, "v = other + ", "python"),
        (False, "v = ", "ruby"),
    ],
)
async def test_a_document_that_is_opened_again_is_another_one(start, closes, text, language):
    async with start(held("first")) as scene:
        uri, *_, old = await begun(scene, "v = ‸")
        if closes:
            scene.lsp.close_document(uri)
        scene.lsp.open(uri, text, language)
        await scene.lsp.settled()
        scene.says.script = servers.reply("second")
        new = scene.lsp.ask(uri, 0, len(text))
        scene.backend.release()
        assert not (await reply(old)).items_
        assert [item["insertText"] for item in (await reply(new)).items_] == ["second"]


async def test_two_documents_with_the_same_text_are_both_answered(start):
    async with start(held("1")) as scene:
        one, *_, first = await begun(scene, "same = ‸")
        scene.says.script = servers.reply("2")
        other, line, column = scene.put("same = ‸")
        (item,) = (await reply(scene.lsp.ask(other, line, column))).items_
        assert scene.lsp.apply(other, item) == "same = 2"
        scene.backend.release()
        (item,) = (await reply(first)).items_
        assert scene.lsp.apply(one, item) == "same = 1"


async def test_closing_one_of_two_documents_with_the_same_text_leaves_the_other_alone(start):
    async with start(held("1")) as scene:
        one, *_, first = await begun(scene, "same = ‸")
        other, *_, second = await begun(scene, "same = ‸")
        scene.lsp.close_document(one)
        assert not (await reply(first)).items_
        scene.backend.release()
        (item,) = (await reply(second)).items_
        assert scene.lsp.apply(other, item) == "same = 1"


async def test_a_document_that_was_renamed_is_asked_for_under_its_new_name(start):
    async with start(held("1")) as scene:
        old_uri, *_, old = await begun(scene, "named = ‸")
        scene.lsp.close_document(old_uri)
        new_uri = scene.uri("renamed.py")
        scene.says.script = servers.reply("2")
        shown = await scene.show("named = ‸", "2", uri=new_uri)
        assert (shown.text, len(shown.requests)) == ("2", 1)
        scene.backend.release()
        assert not (await reply(old)).items_


async def test_the_settings_may_forbid_a_document_while_it_is_answered(start):
    async with start(held("1")) as scene:
        *_, asked = await begun(scene, "a = ‸")
        request = scene.backend.requests[0]
        scene.lsp.configure(scenes.merged(scenes.endpoint(scene.backend.url), {"enabled": False}))
        await asyncio.wait_for(request.closed.wait(), 5)
        assert not (await reply(asked)).items_


async def test_a_folder_may_go_while_one_of_its_documents_is_answered(start):
    async with start(held("1")) as scene:
        *_, asked = await begun(scene, "a = ‸")
        event = {"added": [], "removed": [{"uri": "file:///w", "name": "w"}]}
        scene.lsp.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        await scene.lsp.settled()
        scene.backend.release()
        assert (await reply(asked)).items_[0]["insertText"] == "1"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///w/plain.py",
        "file:///C:/w/drive.py",
        "file:///w/(group)/a+b.py",
        "untitled:Untitled-1",
    ],
)
async def test_closing_stops_and_forgets_however_the_address_is_spelled(start, uri):
    async with start(servers.reply("for_python")) as scene:
        shown = await scene.show("v = ‸", "for_python", uri=uri)
        assert shown.text == "for_python"
        scene.lsp.close_document(uri)
        shown = await scene.show("v = ‸", "for_ruby", uri=uri, language="ruby")
        assert (shown.text, len(shown.requests)) == ("for_ruby", 1)
        scene.lsp.close_document(uri)
        scene.says.script = servers.hold
        *_, asked = await begun(scene, "another = ‸", uri=uri)
        since = now()
        scene.lsp.close_document(uri)
        assert not (await reply(asked)).items_
        await is_stopped(scene.backend.requests[-1], since)


@pytest.mark.parametrize("what", ["the cell", "the notebook"])
async def test_a_cell_may_go_while_it_is_answered(start, what):
    notebook, cells = "file:///w/n.ipynb", [f"vscode-notebook-cell:/w/n.ipynb#W{n}" for n in range(2)]
    documents = [
        {"uri": uri, "languageId": "python", "version": 0, "text": text} for uri, text in zip(cells, ("a = 1", "b = "), strict=True)
    ]
    opened = {"uri": notebook, "notebookType": "jupyter-notebook", "version": 1, "cells": [{"kind": 2, "document": uri} for uri in cells]}
    async with start(held("1")) as scene:
        scene.lsp.notify("notebookDocument/didOpen", {"notebookDocument": opened, "cellTextDocuments": documents})
        asked = scene.lsp.ask(cells[1], 0, 4)
        request = await asyncio.wait_for(scene.backend.request(0), 10)
        since = now()
        if what == "the cell":
            structure = {"array": {"start": 1, "deleteCount": 1}, "didClose": [{"uri": cells[1]}]}
            change = {"notebookDocument": {"uri": notebook, "version": 2}, "change": {"cells": {"structure": structure}}}
            scene.lsp.notify("notebookDocument/didChange", change)
        else:
            closed = {"notebookDocument": {"uri": notebook}, "cellTextDocuments": [{"uri": uri} for uri in cells]}
            scene.lsp.notify("notebookDocument/didClose", closed)
        assert not (await reply(asked)).items_
        await is_stopped(request, since)
        await scene.alive()


# What nobody can want any more is stopped, at the backend too


async def test_going_back_to_what_is_known_stops_what_was_begun_since(start):
    async with start(servers.reply("1")) as scene:
        known = await scene.show("a = ‸", "1")
        scene.says.script = servers.hold
        scene.lsp.change(known.uri, (0, 4), (0, 4), "x")
        begun_since = scene.lsp.ask(known.uri, 0, 5)
        request = await asyncio.wait_for(scene.backend.request(1), 10)
        scene.lsp.change(known.uri, (0, 4), (0, 5), "")
        at = now()
        again = await scene.ask(known.uri, 0, 4)
        assert (again.text, again.requests) == ("1", [])
        assert (await reply(begun_since))["result"] is None
        await is_stopped(request, at)


@pytest.mark.parametrize(
    ("edit", "at"),
    [(None, (0, 2)), (((0, 0), (0, 0), "\0" * 2_000), (1, 4))],
    ids=["inside a word", "a text that became binary"],
)
async def test_an_ask_where_nothing_may_be_shown_stops_what_runs(start, edit, at):
    async with start(servers.hold) as scene:
        uri, *_, asked = await begun(scene, "name = 1\nb = ‸\n")
        if edit is not None:
            scene.lsp.changes(uri, [edit])
        since = now()
        assert (await scene.ask(uri, *at)).text is None
        assert (await reply(asked))["result"] is None
        await is_stopped(scene.backend.requests[0], since)


async def test_what_contradicts_is_stopped_at_once_and_not_only_when_the_next_one_begins(start):
    async def script(exchange):
        await exchange.head()
        await exchange.text("abc")
        await exchange.hold()

    async with start(script, options={"debounce": {"mode": "fixed", "maxMs": 1_000}}) as scene:
        uri, line, column, old = await begun(scene, "y = ‸")
        await asyncio.sleep(0.2)  # the text has arrived by then; nothing tells us
        scene.lsp.change(uri, (line, column), (line, column), "x")
        since = now()
        scene.says.script = servers.reply("z")
        new = scene.lsp.ask(uri, line, column + 1)
        assert (await reply(old))["result"] is None
        await is_stopped(scene.backend.requests[0], since)
        assert len(scene.backend.requests) == 1
        assert (await reply(new)).items_[0]["insertText"] == "z"


async def test_what_runs_for_one_document_is_not_stopped_by_what_is_done_in_another(start):
    async with start(held("1")) as scene:
        *_, first = await begun(scene, "a = ‸")
        other, line, column, second = await begun(scene, "b = ‸")
        scene.lsp.change(other, (line, column), (line, column), "x")
        scene.lsp.close_document(other)
        assert not (await reply(second)).items_
        scene.backend.release()
        assert (await reply(first)).items_[0]["insertText"] == "1"


# What is known is never debounced


async def test_what_is_known_is_shown_without_a_wait_for_the_next_key(start):
    async with start(servers.reply("one + two"), options={"debounce": {"mode": "fixed", "maxMs": 1_500}}) as scene:
        await scene.ready()
        shown = await scene.show("a = ‸", "one + two")
        column = 4
        for letter in "one +":
            scene.lsp.change(shown.uri, (0, column), (0, column), letter)
            column += 1
            again = await scene.ask(shown.uri, 0, column)
            assert again.requests == []
            assert again.text == "one + two"[column - 4 :]
            (outcome,) = await scene.lsp.why(1)
            assert outcome["origin"] == "typed-through"
            assert "debounce" not in outcome["stagesMs"]
            assert outcome["totalMs"] < 750


async def test_the_disk_is_asked_while_the_debounce_runs_and_ends_it(start, tmp_path):
    options = {"cache": {"directory": str(tmp_path / "cache")}, "debounce": {"mode": "fixed", "maxMs": 3_000}}
    async with start(options=options) as scene:
        await scene.ready()
        assert (await scene.show("kept = ‸", "1")).text == "1"
        port = scene.backend.port
    async with start(options=options, backend=servers.CompletionServer(servers.reply("2"), port=port)) as scene:
        await scene.ready()
        uri, line, column = scene.put("kept =‸")
        scene.lsp.change(uri, (line, column), (line, column), " ")
        shown = await scene.ask(uri, line, column + 1)
        assert (shown.text, shown.requests) == ("1", [])
        (outcome,) = await scene.lsp.why(1)
        assert outcome["origin"] == "disk"
        assert outcome["totalMs"] < 1_500


# Each id has one reply


async def replies_by_id(lsp):
    await lsp.settled()
    ids = [one["id"] for one in lsp.all_replies]
    assert len(ids) == len(set(ids)), "an id was answered twice"
    return {one["id"]: one for one in lsp.all_replies}


async def test_cancels_of_what_is_not_asked_or_answered_already_change_nothing(start):
    async with start(servers.reply("1")) as scene:
        scene.lsp.notify("$/cancelRequest", {"id": 4711})
        scene.lsp.notify("$/cancelRequest", {"id": "no such one"})
        uri, line, column = scene.put("a = ‸")
        asked = scene.lsp.ask(uri, line, column)
        assert (await reply(asked)).items_
        for _ in range(3):
            scene.lsp.cancel(asked)
        again = scene.lsp.ask(uri, line, column)
        assert (await reply(again)).items_
        assert {asked.id, again.id} <= set(await replies_by_id(scene.lsp))


async def test_a_cancel_that_comes_twice_is_answered_once(start):
    async with start(servers.hold) as scene:
        *_, asked = await begun(scene, "a = ‸")
        scene.lsp.cancel(asked)
        scene.lsp.cancel(asked)
        assert (await reply(asked))["error"]["code"] == CANCELLED
        await replies_by_id(scene.lsp)


async def test_a_cancel_right_behind_the_ask_never_reaches_the_backend(start):
    async with start(servers.reply("1"), options={"debounce": {"mode": "fixed", "maxMs": 200}}) as scene:
        await scene.ready()
        n_before = len(scene.backend.requests)
        uri, *_ = scene.put("a =‸")
        scene.lsp.change(uri, (0, 3), (0, 3), " ")
        asked = scene.lsp.ask(uri, 0, 4)
        scene.lsp.cancel(asked)
        assert (await reply(asked))["error"]["code"] == CANCELLED
        await asyncio.sleep(0.4)  # longer than the debounce: nothing must have come of it
        assert len(scene.backend.requests) == n_before


async def test_an_id_may_be_used_again_after_its_reply(start):
    async with start(servers.reply("1")) as scene:
        uri, line, column = scene.put("a = ‸")
        for _ in range(3):
            asked = scene.lsp.ask(uri, line, column, id_="mine")
            assert (await reply(asked)).items_[0]["insertText"] == "1"
        scene.says.script = servers.hold
        uri, line, column = scene.put("b = ‸")
        asked = scene.lsp.ask(uri, line, column, id_="mine")
        scene.lsp.cancel(asked)
        assert (await reply(asked))["error"]["code"] == CANCELLED
        assert [one["id"] for one in scene.lsp.all_replies].count("mine") == 4


async def test_every_ask_that_waits_is_answered_when_the_editor_shuts_down(start):
    async with start(servers.hold) as scene:
        asked = [(await begun(scene, f"a{n} = ‸"))[-1] for n in range(5)]
        done = scene.lsp.request("shutdown", None)
        answers = [await reply(one) for one in asked]
        assert all(not answer.items_ for answer in answers)
        assert (await reply(done))["result"] is None
        ids = [one["id"] for one in scene.lsp.all_replies]
        assert sorted(ids, key=str) == sorted(set(ids), key=str)
        for request in scene.backend.requests:
            await asyncio.wait_for(request.closed.wait(), 5)


async def test_every_ask_that_waits_is_answered_when_the_backend_dies(start):
    async def dies(exchange):
        await exchange.head()
        await exchange.text("ret")
        await exchange.hold()
        exchange.reset()

    async with start(dies) as scene:
        asked = [(await begun(scene, f"a{n} = ‸"))[-1] for n in range(5)]
        scene.backend.release()
        answers = [await reply(one) for one in asked]
        assert all(not answer.items_ for answer in answers)
        ids = [one["id"] for one in scene.lsp.all_replies]
        assert len(ids) == len(set(ids))
