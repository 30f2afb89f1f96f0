"""Kind I: documents — schemes, paths, notebooks."""

import os
from pathlib import Path

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


async def test_an_unsaved_document_is_served_and_nothing_is_written(tmp_path):
    # openlawlibrary/pygls#209
    folder = tmp_path / "cwd"
    folder.mkdir()
    async with scenes.running(tmp_path / "home", cwd=folder) as scene:
        shown = await scene.show("x = ‸", "1", uri="untitled:Untitled-1")
        assert shown.text == "1"
        assert str(tmp_path) not in shown.requests[0].body.decode()
        assert str(Path.cwd()) not in shown.requests[0].body.decode()
        scene.lsp.change(shown.uri, (0, 4), (0, 4), "2")
        assert (await scene.ask(shown.uri, 0, 5)).text == "1"
        scene.lsp.close_document(shown.uri)
        await scene.lsp.settled()
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "scheme", ["file:///w/a.py", "untitled:a.py", "vscode-notebook-cell:/w/n.ipynb#W0", "vscode-remote://ssh-remote+host/w/a.py"]
)
async def test_these_kinds_of_document_are_served(scene, scheme):
    # Decision 6
    shown = await scene.show("x = ‸", "1", uri=scheme)
    assert (shown.text, len(shown.requests)) == ("1", 1)
    scene.lsp.close_document(scheme)


@pytest.mark.parametrize(
    "uri",
    [
        "git:/w/a.py?ref",
        "output:extension-output",
        "vscode-scm:git/scm0/input",
        "comment://x/a.py",
        "http://h/a.py",
        "a.py",
        "",
        "walkThrough:x",
        "://",
        "file",
    ],
)
async def test_other_kinds_of_document_are_not_served(scene, uri):
    shown = await scene.show("x = ‸", "1", uri=uri, invoked=True)
    assert (shown.text, shown.requests) == (None, [])
    assert scene.lsp.shown_messages == []
    await scene.alive()


@pytest.mark.parametrize(
    ("opened", "spellings"),
    [
        ("file:///c%3A/w/a%20b.py", ["file:///C:/w/a b.py", "file:///c:/w/a%20b.py", "file:///C%3a/w/a%20b.py", "FILE:///c:/w/a%20b.py"]),
        ("file:///w/ä.py", ["file:///w/%C3%A4.py", "file:///w/%c3%a4.py"]),
        ("file:///w/a+b(1).py", ["file:///w/a%2Bb%281%29.py"]),
        ("file://server/share/a.py", ["file://server/share/a.py"]),
        ("untitled:Untitled-1", ["untitled:Untitled-1", "untitled:Untitled%2D1"]),
    ],
)
async def test_every_spelling_of_a_uri_is_the_same_document(scene, opened, spellings):
    # marimo-team/marimo-lsp#441, swyddfa/esbonio#60
    uri, line, column = scene.put("x = ‸", uri=opened)
    for n, spelling in enumerate(spellings, 1):
        scene.lsp.texts[spelling], scene.lsp.versions[spelling] = scene.lsp.texts[uri], n
        scene.lsp.change(spelling, (0, column), (0, column), "y")
        column += 1
        scene.lsp.texts[uri] = scene.lsp.texts[spelling]
        shown = await scene.ask(spelling, line, column, invoked=True)
        assert shown.halves == ("x = " + "y" * n, "")
    scene.lsp.close_document(spellings[-1])
    assert (await scene.ask(uri, 0, 0, invoked=True)).requests == []


async def test_names_that_differ_are_different_documents(scene):
    for uri in ("file:///w/A.py", "file:///w/a.py", "file:///w/a%2525.py", "file:///w/a%25.py"):
        scene.put(f"{uri[8:]} = ‸", uri=uri)
    for uri in ("file:///w/A.py", "file:///w/a.py", "file:///w/a%2525.py", "file:///w/a%25.py"):
        assert (await scene.ask(uri, 0, len(uri) - 8 + 3, invoked=True)).halves[0] == f"{uri[8:]} = "


async def test_a_document_that_was_never_opened_is_quiet(scene):
    # palantir/python-language-server#293, openlawlibrary/pygls#168
    uri = "file:///w/never.py"
    at = {"line": 0, "character": 0}
    changed = {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [{"range": {"start": at, "end": at}, "text": "x"}]}
    scene.lsp.notify("textDocument/didChange", changed)
    scene.lsp.notify("textDocument/didChange", changed | {"contentChanges": [{"text": "x = "}]})
    scene.lsp.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    scene.lsp.texts[uri] = ""
    shown = await scene.ask(uri, 0, 1, invoked=True)
    assert (shown.text, shown.requests) == (None, [])
    assert scene.lsp.shown_messages == []
    await scene.alive()


async def test_a_closed_document_is_quiet_and_can_be_opened_again(scene):
    shown = await scene.show("x = ‸", "1")
    scene.lsp.close_document(shown.uri)
    assert (await scene.ask(shown.uri, 0, 4)).text is None
    scene.lsp.open(shown.uri, "y = ")
    assert (await scene.ask(shown.uri, 0, 4)).halves == ("y = ", "")


async def test_opening_again_without_closing_takes_the_new_text_and_language(scene):
    uri, _, _ = scene.put("x = ‸")
    scene.lsp.open(uri, "y = ", "ruby")
    assert (await scene.ask(uri, 0, 4)).halves == ("y = ", "")


# Notebooks

NOTEBOOK = "file:///w/n.ipynb"


def cell(number):
    return f"vscode-notebook-cell:/w/n.ipynb#W{number}"


def cells_of(texts):
    kinds = [{"kind": 1 if text.startswith("# ") else 2, "document": cell(n)} for n, text in enumerate(texts)]
    documents = [
        {"uri": cell(n), "languageId": "markdown" if text.startswith("# ") else "python", "version": 0, "text": text}
        for n, text in enumerate(texts)
    ]
    return kinds, documents


def open_notebook(scene, *texts):
    kinds, documents = cells_of(texts)
    for n, text in enumerate(texts):
        scene.lsp.texts[cell(n)], scene.lsp.versions[cell(n)] = text, 0
    notebook = {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": kinds}
    scene.lsp.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})


def close_notebook(scene, n_cells):
    closed = {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": [{"uri": cell(n)} for n in range(n_cells)]}
    scene.lsp.notify("notebookDocument/didClose", closed)


def change_notebook(scene, change):
    scene.lsp.notify("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": change})


async def test_a_cell_is_seen_between_the_others(scene):
    # continuedev/continue#1400, openlawlibrary/pygls#394
    open_notebook(scene, "df = load()", "# The *data*\nis here", "df.", "end()")
    scene.says.script = servers.reply("head()")
    shown = await scene.ask(cell(2), 0, 3)
    before, after = shown.halves
    assert before.startswith("df = load()\n")
    assert before.endswith("\ndf.")
    assert before.index("load") < before.index("data")
    assert all(line.startswith("#") for line in before.split("\n")[1:-1])
    assert "end()" in after
    assert shown.range == ((0, 3), (0, 3))
    assert (await scene.ask(cell(0), 0, 11)).halves[0] == "df = load()"
    close_notebook(scene, 4)
    assert (await scene.ask(cell(2), 0, 3)).requests == []


async def test_cells_follow_the_edits_of_the_notebook(scene):
    open_notebook(scene, "a = 1", "b = 2", "c = ")
    at = {"line": 0, "character": 5}
    edit = {"document": {"uri": cell(0), "version": 1}, "changes": [{"range": {"start": at, "end": at}, "text": "00"}]}
    change_notebook(scene, {"cells": {"textContent": [edit]}})
    assert (await scene.ask(cell(2), 0, 4)).halves[0] == "a = 100\nb = 2\nc = "
    new = {"uri": cell(9), "languageId": "python", "version": 0, "text": "n = 0"}
    structure = {
        "array": {"start": 1, "deleteCount": 1, "cells": [{"kind": 2, "document": cell(9)}]},
        "didOpen": [new],
        "didClose": [{"uri": cell(1)}],
    }
    change_notebook(scene, {"cells": {"structure": structure}})
    assert (await scene.ask(cell(2), 0, 4)).halves[0] == "a = 100\nn = 0\nc = "
    moved = {"array": {"start": 0, "deleteCount": 3, "cells": [{"kind": 2, "document": cell(n)} for n in (9, 2, 0)]}}
    change_notebook(scene, {"cells": {"structure": moved}})
    before, after = (await scene.ask(cell(2), 0, 4)).halves
    assert (before, after.strip()) == ("n = 0\nc = ", "a = 100")
    close_notebook(scene, 3)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"metadata": {}},
        {"cells": {"data": [{"kind": 2, "document": "vscode-notebook-cell:/w/n.ipynb#W0", "metadata": {}}]}},
        {"cells": {"structure": {"array": {"start": 99, "deleteCount": 99}}}},
        {
            "cells": {
                "textContent": [{"document": {"uri": "vscode-notebook-cell:/w/n.ipynb#W77", "version": 1}, "changes": [{"text": "x"}]}]
            }
        },
    ],
)
async def test_odd_notebook_changes_do_no_harm(scene, change):
    open_notebook(scene, "a = 1", "b = ")
    change_notebook(scene, change)
    assert (await scene.ask(cell(1), 0, 4)).halves[0] == "a = 1\nb = "
    close_notebook(scene, 2)
    await scene.alive()


async def test_a_change_of_a_notebook_that_was_never_opened_does_no_harm(scene):
    change_notebook(scene, {"cells": {"structure": {"array": {"start": 0, "deleteCount": 0, "cells": [{"kind": 2, "document": cell(0)}]}}}})
    close_notebook(scene, 1)
    await scene.alive()


# Binary files, no folder


async def test_a_binary_file_is_not_served(tmp_path):
    # LaBatata101/sith-language-server#15
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "lib.pyd").write_bytes(os.urandom(1 << 20))
    params = driver.VSCODE | {"rootUri": folder.as_uri(), "workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}]}
    async with scenes.running(tmp_path / "home", params=params) as scene:
        shown = await scene.show("\0" * 2_000 + "‸", uri=(folder / "lib.so").as_uri(), invoked=True)
        assert (shown.text, shown.requests) == (None, [])
        shown = await scene.show("import lib\nlib.‸", "run()", uri=(folder / "a.py").as_uri())
        assert shown.text == "run()"
        assert shown.halves == ("import lib\nlib.", "")


async def test_a_text_that_becomes_binary_is_no_longer_served(scene):
    uri, _, _ = scene.put("x = ‸")
    scene.lsp.change(uri, (0, 0), (0, 0), "\0" * 2_000)
    assert (await scene.ask(uri, 0, 2_004, invoked=True)).requests == []
    scene.lsp.whole(uri, "x = ")
    assert len((await scene.ask(uri, 0, 4, invoked=True)).requests) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"rootUri": None, "workspaceFolders": None},
        {"rootUri": None},
        {"rootUri": None, "workspaceFolders": []},
        {"rootUri": "file://[", "workspaceFolders": None},
        {"rootUri": "file://[", "workspaceFolders": [{"uri": "file://[", "name": "odd"}]},
    ],
)
async def test_no_folder_is_open(tmp_path, params):
    # openlawlibrary/pygls#395, openlawlibrary/pygls#51
    base = {key: value for key, value in driver.VSCODE.items() if key not in {"rootUri", "workspaceFolders"}}
    async with scenes.running(tmp_path, params=base | params) as scene:
        shown = await scene.show("x = ‸", "1", uri="file:///elsewhere/deep/a.py")
        assert shown.text == "1"
        assert "elsewhere" not in shown.requests[0].body.decode()


async def test_folders_come_and_go(tmp_path):
    async with scenes.running(tmp_path) as scene:
        folder = {"uri": "file:///v", "name": "v"}
        for event in ({"added": [folder], "removed": []}, {"added": [], "removed": [folder]}, {"added": [], "removed": [folder]}):
            scene.lsp.notify("workspace/didChangeWorkspaceFolders", {"event": event})
            assert (await scene.show("x = ‸", "1", uri="file:///v/a.py")).text == "1"
            scene.lsp.close_document("file:///v/a.py")
