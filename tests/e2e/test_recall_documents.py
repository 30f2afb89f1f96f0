"""Kind F, and what is like it: which documents, cells and folders share what is remembered, and what the cursor and the user say to it."""

import itertools

import pytest

from tests import servers

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"cache": {"enabled": True}}
NUMBERS = itertools.count()


async def made_anew(scene, uri, line, column, said):
    """Asks; the backend must be asked, and its text be shown."""
    scene.says.script = servers.reply(said)
    shown = await scene.ask(uri, line, column)
    assert (shown.text, len(shown.requests)) == (said, 1)


async def remembered(scene, uri, line, column, text):
    """Asks; `text` must be shown without the backend."""
    scene.says.script = servers.reply("something_else")
    shown = await scene.ask(uri, line, column)
    assert (shown.text, shown.requests) == (text, [])


async def command(scene, name, *arguments):
    assert "error" not in await scene.lsp.call("workspace/executeCommand", {"command": name, "arguments": list(arguments)})


def number_of(shown):
    """What the editor sends to say what became of it."""
    return shown.reply["result"]["items"][0]["command"]["arguments"][0]


# The cursor and the text around it


@pytest.mark.parametrize(
    ("edits", "at"),
    [
        ([((1, 3), (1, 4), "")], (1, 3)),
        ([((0, 0), (0, 5), "n = 2")], (1, 4)),
        ([((1, 4), (1, 4), ")")], (1, 4)),
        ([((2, 0), (2, 0), "z")], (1, 4)),
        ([((2, 0), (3, 0), "")], (1, 4)),
        ([((1, 4), (2, 0), "")], (1, 4)),
        ([], (1, 3)),
        ([], (0, 5)),
        ([], (2, 5)),
    ],
    ids=["left of it", "above", "right of it", "below", "a line below gone", "line end gone", "cursor left", "cursor above", "cursor below"],
)  # fmt: skip
async def test_it_is_not_shown_where_the_cursor_or_the_text_is_another(scene, edits, at):
    uri, line, column = scene.put(f"n = 1\ny = ‸\na = b{next(NUMBERS)}\nc()\n")
    await made_anew(scene, uri, line, column, "n + n")
    if edits:
        scene.lsp.changes(uri, edits)
    scene.says.script = servers.reply("something_else")
    shown = await scene.ask(uri, *at)
    assert shown.text in {"something_else", None}
    assert "n + n" not in shown.result


@pytest.mark.parametrize("how", ["backspaced and typed again", "left and came back", "undone", "pasted and cut", "whole text"])
async def test_it_is_shown_again_where_everything_is_as_it_was(scene, how):
    uri, line, column = scene.put(f"w{next(NUMBERS)} = ‸\nend()\n")
    await made_anew(scene, uri, line, column, "value()")
    end = (line, column)
    if how == "backspaced and typed again":
        scene.lsp.change(uri, (line, column - 2), end, "")
        scene.lsp.change(uri, (line, column - 2), (line, column - 2), "= ")
    elif how == "left and came back":
        scene.says.script = servers.reply("")
        await scene.ask(uri, 1, 5)
    elif how == "undone":
        scene.lsp.change(uri, end, end, "x")
        scene.says.script = servers.reply("")
        await scene.ask(uri, line, column + 1)
        scene.lsp.change(uri, end, (line, column + 1), "")
    elif how == "pasted and cut":
        scene.lsp.change(uri, (0, 0), (0, 0), "import os\nimport sys\n")
        scene.lsp.change(uri, (0, 0), (2, 0), "")
    else:
        scene.lsp.whole(uri, scene.lsp.texts[uri])
    await remembered(scene, uri, line, column, "value()")


async def test_it_is_typed_through_over_what_the_editor_closes_and_over_line_ends(scene):
    uri, line, column = scene.put("def f(a):\n    ‸\n")
    said = 'log("x", [a])\n    return a'
    await made_anew(scene, uri, line, column, said)
    at, typed = column, ""
    for char, closes in (("l", ""), ("o", ""), ("g", ""), ("(", ")"), ('"', '"')):
        scene.lsp.change(uri, (line, at), (line, at), char + closes)
        at, typed = at + 1, typed + char
        scene.says.script = servers.reply("something_else")
        shown = await scene.ask(uri, line, at)
        assert shown.requests == []
        assert shown.text is not None
        assert said.startswith(typed + shown.text)
    uri, line, column = scene.put("def g(a):\n    ‸\n")
    await made_anew(scene, uri, line, column, "b = a\n    return b")
    scene.lsp.change(uri, (line, column), (line, column), "b = a\n    ")
    await remembered(scene, uri, line + 1, 4, "return b")


async def test_it_is_taken_word_by_word(scene):
    uri, line, column = scene.put(f"words_{next(NUMBERS)} = ‸")
    await made_anew(scene, uri, line, column, "one + two")
    for word, left in (("one", " + two"), (" +", " two"), (" ", "two")):
        scene.lsp.change(uri, (line, column), (line, column), word)
        column += len(word)
        await remembered(scene, uri, line, column, left)


# Documents


async def test_a_renamed_document_is_the_same_place(scene):
    shown = await scene.show("renamed_1 = ‸", "1", uri="file:///w/before.py")
    assert shown.text == "1"
    scene.lsp.close_document("file:///w/before.py")
    uri, line, column = scene.put("renamed_1 = ‸", uri="file:///w/after.py")
    await remembered(scene, uri, line, column, "1")


@pytest.mark.parametrize("uri", ["file:///w/after.pyi", "file:///w/after", "untitled:Untitled-7", "file:///elsewhere/after.py"])
async def test_a_document_saved_as_another_kind_or_elsewhere_is_another_place(scene, uri):
    name = f"saved_{next(NUMBERS)} = ‸"
    assert (await scene.show(name, "1", uri="file:///w/saved.py")).text == "1"
    scene.lsp.close_document("file:///w/saved.py")
    uri, line, column = scene.put(name, uri=uri)
    await made_anew(scene, uri, line, column, "2")
    scene.lsp.close_document(uri)


async def test_what_was_typed_in_one_document_is_not_typed_in_its_twin(scene):
    one, line, column = scene.put("twin_1 = ‸", uri="file:///w/one.py")
    other, *_ = scene.put("twin_1 = ‸", uri="file:///w/other.py")
    await made_anew(scene, one, line, column, "left + right")
    scene.lsp.change(one, (line, column), (line, column), "left")
    await remembered(scene, one, line, column + 4, " + right")
    await remembered(scene, other, line, column, "left + right")
    scene.lsp.change(other, (line, column), (line, column), "x")
    await made_anew(scene, other, line, column + 1, "yz")
    await remembered(scene, one, line, column + 4, " + right")


async def test_a_document_that_was_closed_and_opened_again_is_remembered(scene):
    uri, line, column = scene.put("closed_1 = ‸", uri="file:///w/closed.py")
    await made_anew(scene, uri, line, column, "1")
    scene.lsp.close_document(uri)
    scene.put("closed_1 = ‸", uri=uri)
    await remembered(scene, uri, line, column, "1")


# Notebooks


def cell(notebook, number):
    return f"vscode-notebook-cell:/w/{notebook}.ipynb#W{number}"


def open_notebook(scene, name, *texts):
    documents = [{"uri": cell(name, n), "languageId": "python", "version": 0, "text": text} for n, text in enumerate(texts)]
    for document in documents:
        scene.lsp.texts[document["uri"]], scene.lsp.versions[document["uri"]] = document["text"], 0
    kinds = [{"kind": 2, "document": document["uri"]} for document in documents]
    notebook = {"uri": f"file:///w/{name}.ipynb", "notebookType": "jupyter-notebook", "version": 1, "cells": kinds}
    scene.lsp.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})


def change_cell(scene, name, number, text):
    """The cell's whole text."""
    uri = cell(name, number)
    scene.lsp.texts[uri] = text
    edit = {"document": {"uri": uri, "version": 1}, "changes": [{"text": text}]}
    notebook = {"uri": f"file:///w/{name}.ipynb", "version": 2}
    scene.lsp.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": {"textContent": [edit]}}})


async def test_a_cell_is_another_place_when_the_cells_around_it_are_others(scene):
    open_notebook(scene, "one", "a = 1", "b = a + ", "c = 3")
    await made_anew(scene, cell("one", 1), 0, 8, "1")
    change_cell(scene, "one", 0, "a = 2")
    await made_anew(scene, cell("one", 1), 0, 8, "2")
    change_cell(scene, "one", 2, "c = 4")
    await made_anew(scene, cell("one", 1), 0, 8, "3")
    change_cell(scene, "one", 0, "a = 1")
    change_cell(scene, "one", 2, "c = 3")
    await remembered(scene, cell("one", 1), 0, 8, "1")


async def test_a_cell_is_typed_through_and_two_cells_of_the_same_text_are_two_places(scene):
    open_notebook(scene, "two", "x = load()", "y = ", "y = ")
    await made_anew(scene, cell("two", 1), 0, 4, "x.first")
    await made_anew(scene, cell("two", 2), 0, 4, "x.second")
    change_cell(scene, "two", 2, "y = x.")
    await remembered(scene, cell("two", 2), 0, 6, "second")


# Folders


async def test_a_folder_that_goes_takes_its_suggestions_along_and_brings_them_back(scene):
    folder = {"uri": "file:///v", "name": "v"}

    def folders(**event):
        scene.lsp.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []} | event})

    folders(added=[folder])
    uri, line, column = scene.put("in_v = ‸", uri="file:///v/deep/a.py")
    await made_anew(scene, uri, line, column, "1")
    folders(removed=[folder])
    await made_anew(scene, uri, line, column, "2")
    folders(added=[folder])
    await remembered(scene, uri, line, column, "1")
    folders(removed=[folder])


async def test_a_folder_inside_a_folder_is_a_workspace_of_its_own(scene):
    inner = {"uri": "file:///w/inner", "name": "inner"}
    uri, line, column = scene.put("nested = ‸", uri="file:///w/inner/a.py")
    await made_anew(scene, uri, line, column, "1")
    scene.lsp.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [inner], "removed": []}})
    await made_anew(scene, uri, line, column, "2")
    scene.lsp.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [inner]}})
    await remembered(scene, uri, line, column, "1")


# What the user says to it


async def test_what_was_rejected_is_not_shown_there_again_until_it_is_forgotten(scene):
    uri, line, column = scene.put("said_no = ‸")
    scene.says.script = servers.reply("nonsense()")
    await command(scene, "monkeycode.rejected", number_of(await scene.ask(uri, line, column)))
    for _ in range(2):
        assert (await scene.ask(uri, line, column)).text is None
    assert (await scene.ask(uri, line, column, invoked=True)).text == "nonsense()"
    elsewhere, line_there, column_there = scene.put("import os\n\nsaid_no = ‸")
    assert (await scene.ask(elsewhere, line_there, column_there)).text == "nonsense()"
    await command(scene, "monkeycode.forget")
    assert (await scene.ask(uri, line, column)).text == "nonsense()"


async def test_what_was_passed_over_three_times_is_not_shown_there_again(scene):
    uri, line, column = scene.put("passed = ‸")
    scene.says.script = servers.reply("nonsense()")
    for n in range(3):
        assert (await scene.ask(uri, line, column)).text == "nonsense()", n
        scene.lsp.change(uri, (line, column), (line, column), "z")
        scene.says.script = servers.reply("")
        await scene.ask(uri, line, column + 1)
        scene.lsp.change(uri, (line, column), (line, column + 1), "")
    assert (await scene.ask(uri, line, column)).text is None
    assert "cache.showings" in (await scene.lsp.why(1))[-1]["reason"]
    assert (await scene.ask(uri, line, column, invoked=True)).text == "nonsense()"


async def test_what_was_undone_three_times_is_not_shown_there_again(scene):
    uri, line, column = scene.put("above\n‸\nundone = below")
    scene.says.script = servers.reply("nonsense()")
    for n in range(4):
        scene.lsp.change(uri, (line, 0), (line, 0), "undone = ")
        assert (await scene.ask(uri, line, column + 9)).text == (None if n == 3 else "nonsense()"), n
        scene.lsp.change(uri, (line, 0), (line, 9), "")


async def test_what_was_accepted_counts_as_never_passed_over(scene):
    uri, line, column = scene.put("taken = ‸")
    scene.says.script = servers.reply("good()")
    for n in range(6):
        shown = await scene.ask(uri, line, column)
        assert shown.text == "good()", n
        if n % 2 == 0:
            scene.lsp.change(uri, (line, column), (line, column), "z")
        else:
            scene.lsp.change(uri, (line, column), (line, column), "good()")
            await command(scene, "monkeycode.accepted", number_of(shown))
            scene.lsp.change(uri, (line, column + 6), (line, column + 6), " + 1")
            scene.says.script = servers.reply("")
            await scene.ask(uri, line, column + 10)
        length = len(scene.lsp.texts[uri])
        scene.says.script = servers.reply("")
        await scene.ask(uri, line, length)
        scene.lsp.change(uri, (line, column), (line, length), "")


@pytest.mark.parametrize("arguments", [[], ["1"], [None], [10**9], [-1], [1.5], [[1]]])
@pytest.mark.parametrize("name", ["monkeycode.rejected", "monkeycode.forget"])
async def test_a_command_with_odd_arguments_does_no_harm(scene, name, arguments):
    await command(scene, name, *arguments)
    await scene.alive()


async def test_what_was_forgotten_is_asked_for_anew(scene):
    uri, line, column = scene.put("forgotten = ‸")
    await made_anew(scene, uri, line, column, "1")
    await remembered(scene, uri, line, column, "1")
    await command(scene, "monkeycode.forget")
    scene.says.script = servers.reply("2")
    shown = await scene.ask(uri, line, column)
    assert (shown.text, len(shown.requests)) in {("2", 1), ("1", 0)}  # the disk may still know it


async def test_a_rejection_that_comes_late_is_not_taken_for_what_stands_there_by_then(scene):
    uri, line, column = scene.put("late = ‸")
    scene.says.script = servers.reply("first()")
    first = await scene.ask(uri, line, column)
    scene.lsp.change(uri, (line, column), (line, column), "b\n")
    await made_anew(scene, uri, 1, 0, "second()")
    await command(scene, "monkeycode.rejected", number_of(first))
    assert (await scene.ask(uri, 1, 0)).text == "second()"


async def test_what_another_document_taught_is_typed_through_here(scene):
    one, line, column = scene.put("taught = ‸", uri="file:///w/teacher.py")
    await made_anew(scene, one, line, column, "one + two")
    scene.lsp.close_document(one)
    other, *_ = scene.put("taught = ‸", uri="file:///w/pupil.py")
    await remembered(scene, other, line, column, "one + two")
    scene.lsp.change(other, (line, column), (line, column), "one")
    await remembered(scene, other, line, column + 3, " + two")
