"""The server as real editors meet it: with their `initialize` messages (`tests/data/initialize`), through pytest-lsp."""

import json
import sys
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import converters
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = [
    pytest.mark.e2e,
    # Helix does not list any format, and shows markdown.
    pytest.mark.filterwarnings("ignore:Client does not support documentation format 'markdown':pytest_lsp.checks.LspSpecificationWarning"),
]

MESSAGES = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in Path(__file__).parents[1].glob("data/initialize/*.json")}
ENCODINGS = {
    "vscode-1.139": "utf-16",
    "neovim-0.12": "utf-8",
    "neovim-0.11": "utf-8",
    "helix-25.07": "utf-8",
    "emacs-30-lsp-mode-10": "utf-32",
}
GHOST_TEXT = ["vscode-1.139", "neovim-0.12", "emacs-30-lsp-mode-10"]
"""They ask for inline completion; Emacs does so without having said that it can."""
MENU = ["helix-25.07", "neovim-0.11", "emacs-30-lsp-mode-10"]
COMMAND = [sys.executable, "-m", "monkeycode_lsp", "serve", "--stdio"]
URI = "file:///w/a.py"


@pytest_lsp.fixture(params=sorted(ENCODINGS), config=ClientServerConfig(server_command=COMMAND))
async def client(lsp_client: LanguageClient, request):
    message = MESSAGES[request.param]
    lsp_client.says = scenes.Says()
    async with servers.CompletionServer(lsp_client.says) as backend:
        options = scenes.endpoint(backend.url) | {"debounce": {"mode": "off"}}
        params = converters.get_converter().structure(message | {"initializationOptions": options}, lsp.InitializeParams)
        lsp_client.editor = request.param
        lsp_client.answer = await lsp_client.initialize_session(params)
        yield
        assert lsp_client.messages == []
        await lsp_client.shutdown_session()


def units(client, text):
    encoding = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[ENCODINGS[client.editor]]
    return len(text.encode(encoding)) // {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[encoding]


def put(client, marked, said):
    """Open a document; the place of `‸`."""
    client.says.script = servers.reply(said)
    document = lsp.TextDocumentItem(URI, "python", 0, marked.replace("‸", ""))
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
    before = marked[: marked.index("‸")]
    return lsp.Position(before.count("\n"), units(client, before.rpartition("\n")[2]))


def editors(*names):
    return pytest.mark.parametrize("client", names, indirect=True)


async def ghost_text(client, position, kind=lsp.InlineCompletionTriggerKind.Automatic):
    document = lsp.TextDocumentIdentifier(URI)
    params = lsp.InlineCompletionParams(context=lsp.InlineCompletionContext(trigger_kind=kind), text_document=document, position=position)
    return await client.text_document_inline_completion_async(params)


async def menu(client, position):
    context = lsp.CompletionContext(trigger_kind=lsp.CompletionTriggerKind.Invoked)
    params = lsp.CompletionParams(text_document=lsp.TextDocumentIdentifier(URI), position=position, context=context)
    return await client.text_document_completion_async(params)


async def test_what_the_server_says_it_can(client):
    able = client.answer.capabilities
    assert able.position_encoding == ENCODINGS[client.editor]
    assert able.inline_completion_provider is not None
    assert (able.completion_provider is not None) == (client.editor in MENU)
    assert able.text_document_sync.change == lsp.TextDocumentSyncKind.Incremental
    assert able.text_document_sync.open_close
    assert (able.notebook_document_sync is not None) == ("notebookDocument" in MESSAGES[client.editor]["capabilities"])
    assert list(able.execute_command_provider.commands) == [
        "monkeycode.accepted",
        "monkeycode.rejected",
        "monkeycode.forget",
        "monkeycode.why",
        "monkeycode.stats",
    ]
    assert client.answer.server_info.name == "monkeycode-lsp"


@editors(*GHOST_TEXT)
async def test_ghost_text(client):
    position = put(client, "имя = '😋'\ndef f(a):\n    ‸\n", "if a:\n        return 'é'\n    return a")
    (item,) = (await ghost_text(client, position)).items
    assert item.insert_text == "if a:\n        return 'é'\n    return a"
    assert item.range == lsp.Range(position, position)
    assert item.command.command == "monkeycode.accepted"
    assert item.filter_text is None
    command = lsp.ExecuteCommandParams(item.command.command, arguments=item.command.arguments)
    await client.workspace_execute_command_async(command)
    (outcome,) = await client.workspace_execute_command_async(lsp.ExecuteCommandParams("monkeycode.why", arguments=[1]))
    assert outcome["accepted"]


@editors(*GHOST_TEXT)
async def test_ghost_text_after_characters_of_every_width(client):
    position = put(client, "имя = '😋漢' + ‸", "x")
    (item,) = (await ghost_text(client, position)).items
    assert item.range == lsp.Range(position, position)
    after = lsp.Position(0, position.character + 1)
    change = lsp.TextDocumentContentChangePartial(lsp.Range(position, position), "y")
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(5, URI), [change]))
    client.says.script = servers.reply("[0]")
    (item,) = (await ghost_text(client, after, lsp.InlineCompletionTriggerKind.Invoked)).items
    assert (item.insert_text, item.range) == ("[0]", lsp.Range(after, after))


@editors(*GHOST_TEXT)
async def test_line_ends_are_the_documents_but_for_vim(client):
    position = put(client, "def f(a):\r\n    ‸\r\n", "a += 1\n    return a")
    (item,) = (await ghost_text(client, position)).items
    assert item.insert_text == ("a += 1\n    return a" if "neovim" in client.editor else "a += 1\r\n    return a")


@editors(*MENU)
async def test_the_menu(client):
    position = put(client, "def f(a):\n    ret‸\n", "urn a + 1")
    answer = await menu(client, position)
    (item,) = answer.items
    assert answer.is_incomplete
    assert (item.label, item.filter_text) == ("return a + 1", "return a + 1")
    assert item.text_edit.new_text == "return a + 1"
    assert item.text_edit.range == lsp.Range(lsp.Position(1, 4), position)


@editors(*MENU)
async def test_a_menu_item_of_several_lines_applies_whole(client):
    position = put(client, "def f(a):\n    ‸\n", "if a:\n        return {'$': 1}\n    return a")
    (item,) = (await menu(client, position)).items
    assert "\n" not in item.label
    assert item.filter_text == "if a:"
    assert item.text_edit.range == lsp.Range(position, position)
    if client.editor == "neovim-0.11":
        # Its own completion keeps only the first line of plain text, and indents the lines of a snippet itself.
        assert item.insert_text_format == lsp.InsertTextFormat.Snippet
        assert item.text_edit.new_text == "if a:\n    return {'\\$': 1\\}\nreturn a"
    else:
        assert item.insert_text_format == lsp.InsertTextFormat.PlainText
        assert item.text_edit.new_text == "if a:\n        return {'$': 1}\n    return a"
    assert "return {'$': 1}" in (item.documentation if isinstance(item.documentation, str) else item.documentation.value)


@editors("helix-25.07")
async def test_what_is_typed_while_the_menu_is_on_its_way_still_matches(client):
    position = put(client, "def f(total):\n    ret‸\n", "urn total")
    (item,) = (await menu(client, position)).items
    assert item.filter_text.startswith("retu")


async def test_nothing_to_say_is_empty_and_no_error(client):
    position = put(client, "x = ‸", "")
    assert (await ghost_text(client, position)).items == ()
    if client.editor in MENU:
        assert (await menu(client, position)).items == ()


@pytest.mark.parametrize("name", sorted(MESSAGES))
async def test_no_editor_is_asked_for_what_it_does_not_offer(home, name):
    """Nothing is registered dynamically, and only what was announced is requested."""
    message = MESSAGES[name]
    async with servers.CompletionServer(servers.reply("1")) as backend, driver.server(home, initialize=False) as lsp_:
        lsp_.answers["workspace/configuration"] = [None]
        await lsp_.initialize(message, scenes.endpoint(backend.url) | {"debounce": {"mode": "off"}})
        assert await lsp_.complete(URI, marked="x = ‸") == "1"
        await lsp_.shutdown()
        asked = {request["method"] for request in lsp_.requests}
        assert asked == ({"workspace/configuration"} if message["capabilities"]["workspace"]["configuration"] else set())
        assert lsp_.shown_messages == []
