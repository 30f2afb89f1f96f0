"""LSP types ↔ values of ours.  No decisions about completion are made here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import cattrs
import msgspec
from lsprotocol import converters
from lsprotocol import types as lsp

from monkeycode_lsp.documents import Cell
from monkeycode_lsp.domain import Ask, Selected, Snapshot, Suggestion, Trigger
from monkeycode_lsp.text import Change, Encoding, column_to_units, units_to_column

ACCEPTED = "monkeycode.accepted"
_WORD = re.compile(r"\w+\Z")
_LABEL_LENGTH = 80
_NEOVIM_WAITS_MS = 200.0
"""Its fixed delay; the edits are held back by it too."""
_MOST = 2**31 - 1
"""The largest number that the framework's types take."""


class Client(msgspec.Struct, frozen=True):
    """What the editor can do and wants, as far as replies depend on it."""

    encoding: Encoding = Encoding.UTF16
    keeps_cr: bool = True
    """Takes text literally; Vim and its kin keep CR out of buffer lines and get LF only."""
    inline: bool = False
    """Announced inline completion."""
    wants_snippets: bool = False
    """Its completion menu loses lines of multi-line plain text (Neovim's own)."""
    markdown: bool = True
    """Shows markdown beside a menu's item.  Helix does so without saying; who lists other formats only gets plain text."""
    configuration: bool = False
    """Answers `workspace/configuration`."""
    progress: bool = False
    waits_ms: float = 0.0
    """What it waits after a key before it asks, where its edits come as late as its asks do and do not tell."""


def client(params: lsp.InitializeParams, encoding: str) -> Client:
    """What `initialize` says of the editor."""
    name = params.client_info.name.lower() if params.client_info else ""
    document, workspace, window = params.capabilities.text_document, params.capabilities.workspace, params.capabilities.window
    item = document.completion.completion_item if document and document.completion else None
    return Client(
        encoding=Encoding(encoding),
        keeps_cr="vim" not in name,
        inline=bool(document and document.inline_completion),
        wants_snippets="neovim" in name and bool(item and item.snippet_support),
        markdown=not (item and item.documentation_format) or lsp.MarkupKind.Markdown in item.documentation_format,
        configuration=bool(workspace and workspace.configuration),
        progress=bool(window and window.work_done_progress),
        waits_ms=_NEOVIM_WAITS_MS if "neovim" in name else 0.0,
    )


def converter() -> cattrs.Converter:
    """The framework's converter, but lenient where editors are.

    A position beyond every number means the end, old editors send no version, and some write a null
    range for the whole text: refusing such an edit would leave the document wrong from then on.
    """
    lenient = converters.get_converter()

    def position(data: Mapping[str, Any], _type: Any) -> lsp.Position:
        return lsp.Position(*(min(max(int(data[key]), 0), _MOST) for key in ("line", "character")))

    def version(data: Mapping[str, Any]) -> int:
        value = data.get("version")
        return value if isinstance(value, int) and abs(value) <= _MOST else 0

    def text(data: Mapping[str, Any], key: str = "text") -> str:
        value = data[key]
        if not isinstance(value, str):
            raise TypeError(key)  # the framework would write None as text
        return value

    def item(data: Mapping[str, Any], _type: Any) -> lsp.TextDocumentItem:
        return lsp.TextDocumentItem(text(data, "uri"), text(data, "languageId"), version(data), text(data))

    def versioned(data: Mapping[str, Any], _type: Any) -> lsp.VersionedTextDocumentIdentifier:
        return lsp.VersionedTextDocumentIdentifier(version(data), text(data, "uri"))

    def change(data: Mapping[str, Any], _type: Any) -> lsp.TextDocumentContentChangeEvent:
        if data.get("range") is None:
            return lsp.TextDocumentContentChangeWholeDocument(text(data))
        return lsp.TextDocumentContentChangePartial(lenient.structure(data["range"], lsp.Range), text(data))

    lenient.register_structure_hook(lsp.Position, position)
    lenient.register_structure_hook(lsp.TextDocumentItem, item)
    lenient.register_structure_hook(lsp.VersionedTextDocumentIdentifier, versioned)
    lenient.register_structure_hook(lsp.TextDocumentContentChangePartial | lsp.TextDocumentContentChangeWholeDocument, change)
    return lenient


def document_uri(params: Any) -> str:
    """The document that raw parameters are about; empty if they do not say."""
    document = params.get("textDocument") if isinstance(params, Mapping) else None
    uri = document.get("uri") if isinstance(document, Mapping) else None
    return uri if isinstance(uri, str) else ""


def changes(events: Sequence[lsp.TextDocumentContentChangeEvent]) -> list[Change]:
    """The edits of one notification, in order."""
    return [
        Change(event.text, (event.range.start.line, event.range.start.character), (event.range.end.line, event.range.end.character))
        if isinstance(event, lsp.TextDocumentContentChangePartial)
        else Change(event.text)
        for event in events
    ]


def cells(notebook_cells: Sequence[lsp.NotebookCell] | None) -> list[Cell]:
    """A notebook's cells."""
    return [Cell(cell.document, cell.kind == lsp.NotebookCellKind.Code) for cell in notebook_cells or []]


def ask(snapshot: Snapshot, context: lsp.InlineCompletionContext, edited: tuple[float | None, str], editor: Client) -> Ask:
    """An inline-completion request.  `edited`: how long ago the last edit was, and what it put in."""
    trigger = Trigger.INVOKED if context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked else Trigger.AUTOMATIC
    info = context.selected_completion_info
    since_edit_ms, inserted = edited
    if since_edit_ms is not None:
        since_edit_ms = max(since_edit_ms, editor.waits_ms)
    return Ask(snapshot, trigger, _selected(snapshot, info, editor.encoding) if info else None, since_edit_ms, inserted)


def _selected(snapshot: Snapshot, info: lsp.SelectedCompletionInfo, encoding: Encoding) -> Selected | None:
    start, end = info.range.start, info.range.end
    if not (start.line == end.line == snapshot.line):
        return None
    line = snapshot.lines[snapshot.line]
    text = info.text
    first, last = units_to_column(line, start.character, encoding), units_to_column(line, end.character, encoding)
    if "\n" in text or "\r" in text or not first <= snapshot.column <= max(last, snapshot.column):
        return None
    return Selected(text, snapshot.line, first, last)


def menu_ask(snapshot: Snapshot, context: lsp.CompletionContext | None, edited: tuple[float | None, str]) -> Ask:
    """A request of the completion menu."""
    since_edit_ms, inserted = edited
    by_hand = context is not None and context.trigger_kind == lsp.CompletionTriggerKind.Invoked and since_edit_ms is None
    return Ask(snapshot, Trigger.INVOKED if by_hand else Trigger.AUTOMATIC, None, since_edit_ms, inserted)


def _accepted(suggestion: Suggestion) -> lsp.Command:
    return lsp.Command(title="Accepted", command=ACCEPTED, arguments=[suggestion.id])


def _literal(text: str, snapshot: Snapshot, editor: Client) -> str:
    return text.replace("\n", snapshot.eol) if editor.keeps_cr and snapshot.eol != "\n" else text


def _range(snapshot: Snapshot, start: int, end: int, encoding: Encoding) -> lsp.Range:
    line = snapshot.lines[snapshot.line]
    return lsp.Range(
        start=lsp.Position(snapshot.line, column_to_units(line, start, encoding)),
        end=lsp.Position(snapshot.line, column_to_units(line, end, encoding)),
    )


def inline_list(asked: Ask, suggestions: list[Suggestion], editor: Client) -> lsp.InlineCompletionList:
    """The reply of inline completion: an empty range at the cursor, or the pop-up entry's range with its text taken in."""
    snapshot, selected = asked.snapshot, asked.selected
    taken = selected.text if selected else ""
    start, end = (selected.start, max(selected.end, snapshot.column)) if selected else (snapshot.column, snapshot.column)
    where = _range(snapshot, start, end, editor.encoding)
    return lsp.InlineCompletionList(
        items=[
            lsp.InlineCompletionItem(
                insert_text=_literal(taken + suggestion.text, snapshot, editor), range=where, command=_accepted(suggestion)
            )
            for suggestion in suggestions
        ]
    )


def menu_list(asked: Ask, suggestions: list[Suggestion], editor: Client) -> lsp.CompletionList:
    """The reply of the completion menu: one line as label, the edit on the cursor's line, always incomplete."""
    return lsp.CompletionList(is_incomplete=True, items=[_menu_item(asked.snapshot, suggestion, editor) for suggestion in suggestions])


def _menu_item(snapshot: Snapshot, suggestion: Suggestion, editor: Client) -> lsp.CompletionItem:
    match = _WORD.search(snapshot.line_before)
    word = match.group() if match else ""
    new_text = word + suggestion.text
    first = new_text.split("\n", 1)[0]
    label, *more = [line.strip() for line in new_text.split("\n") if line.strip()] or [""]
    shown = label[:_LABEL_LENGTH] + (" …" if more or len(label) > _LABEL_LENGTH else "")
    text_format = lsp.InsertTextFormat.PlainText
    if editor.wants_snippets and "\n" in new_text:
        indent = snapshot.line_before[: len(snapshot.line_before) - len(snapshot.line_before.lstrip())]
        new_text = re.sub(r"([\\$}])", r"\\\1", new_text.replace("\n" + indent, "\n"))
        text_format = lsp.InsertTextFormat.Snippet
    else:
        new_text = _literal(new_text, snapshot, editor)
    whole = word + suggestion.text
    return lsp.CompletionItem(
        label=shown,
        kind=lsp.CompletionItemKind.Text,
        detail="MonkeyCode",
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, f"```{snapshot.language}\n{whole}\n```") if editor.markdown else whole,
        filter_text=first or shown,
        sort_text="\0",
        insert_text_format=text_format,
        insert_text_mode=lsp.InsertTextMode.AsIs,
        text_edit=lsp.TextEdit(_range(snapshot, snapshot.column - len(word), snapshot.column, editor.encoding), new_text),
        command=_accepted(suggestion),
    )
