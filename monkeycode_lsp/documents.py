"""The open documents and notebooks, and snapshots of them.

Knows nothing of LSP messages; the same document is found under every spelling of its URI.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import msgspec

from monkeycode_lsp.context.comments import commented
from monkeycode_lsp.domain import Snapshot
from monkeycode_lsp.syntax import language_ids
from monkeycode_lsp.text import Change, Document, Encoding, Span, lf


@lru_cache(maxsize=4096)
def normal(uri: str) -> str:
    """One spelling for all: percent-encoding and the case of scheme and drive letter do not matter.  It can always be split again."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return f"unreadable:{quote(uri)}"  # a scheme that nobody serves
    path = unquote(parts.path)
    if len(path) > 2 and path[0] == "/" and path[2] == ":":  # noqa: PLR2004 - a drive: /C:/…
        path = f"/{path[1].lower()}{path[2:]}"
    rest = (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    slashes = f"//{parts.netloc}" if parts.netloc or path.startswith("/") else ""
    return f"{parts.scheme.lower()}:{slashes}{quote(path)}{rest}"


def file_path(uri: str) -> Path | None:
    """Where a document lies on this machine; None: it is no file here.  `uri` as `normal` spells it."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or "\0" in (path := unquote(parts.path)):
        return None
    return Path(path[1:] if len(path) > 2 and path[2] == ":" else path)  # noqa: PLR2004 - a drive: /c:/…


class Cell(msgspec.Struct, frozen=True):
    """One notebook cell; its text is a document of its own."""

    uri: str
    is_code: bool


class Edited(msgspec.Struct, frozen=True):
    """What one notification of the editor changed."""

    uri: str
    """As it is spelt in snapshots."""
    lines: Sequence[str]
    """The document's lines after it, to be looked at before the next edit."""
    gap_ms: float | None
    """Since the edit before; None for the document's first."""
    inserted: str
    """What the last of its changes put in, LF only."""
    spans: tuple[Span, ...] | None
    """The lines that its changes replaced, in turn; None: the whole text came anew."""


class _Open(msgspec.Struct):
    document: Document
    edited_at: float | None = None
    inserted: str = ""


class Documents:
    """Everything that the editor has opened.

    The mutable state is the documents, the notebooks' cell lists and the workspace folders; it
    changes in the methods that follow the editor's notifications only.
    """

    def __init__(self, encoding: Encoding = Encoding.UTF16, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.encoding = encoding
        self._clock = clock
        self._documents: dict[str, _Open] = {}
        self._notebooks: dict[str, list[Cell]] = {}
        self._notebook_of: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def open(self, uri: str, language: str, version: int, text: str) -> None:
        """A document came, or came again with another text or language."""
        self._documents[normal(uri)] = _Open(Document(uri, language_ids.canonical(language), version, text, self.encoding))

    def change(self, uri: str, version: int, changes: list[Change]) -> Edited | None:
        """Follow the edits; None for an unknown document."""
        key = normal(uri)
        entry = self._documents.get(key)
        if entry is None:
            return None
        spans = [entry.document.apply(change) for change in changes]
        entry.document.version = version
        before, entry.edited_at = entry.edited_at, self._clock()
        entry.inserted = lf(changes[-1].text) if changes else ""
        gap_ms = None if before is None else (entry.edited_at - before) * 1e3
        known = tuple(span for span in spans if span is not None)
        return Edited(key, entry.document.lines, gap_ms, entry.inserted, known if len(known) == len(spans) else None)

    def close(self, uri: str) -> None:
        """The editor closed the document."""
        self._documents.pop(normal(uri), None)

    def all_open(self) -> list[Snapshot]:
        """Every document as it is now, with the cursor at its beginning."""
        snapshots = [self.snapshot(uri, 0, 0) for uri in self._documents]
        return [snapshot for snapshot in snapshots if snapshot is not None]

    def n_nuls(self, uri: str) -> int:
        entry = self._documents.get(normal(uri))
        return entry.document.n_nuls if entry else 0

    def last_edit(self, uri: str) -> tuple[float | None, str]:
        """How many milliseconds ago the document was last edited (None: never), and what that put in."""
        entry = self._documents.get(normal(uri))
        if entry is None or entry.edited_at is None:
            return None, ""
        return (self._clock() - entry.edited_at) * 1e3, entry.inserted

    def snapshot(self, uri: str, line: int, units: int) -> Snapshot | None:
        """The document as it is now with the cursor there; None if it is not open."""
        key = normal(uri)
        entry = self._documents.get(key)
        if entry is None:
            return None
        document = entry.document
        at_line, column = document.locate(line, units)
        before, after = self._cells_around(key, document.language)
        return Snapshot(
            uri=key,
            language=document.language,
            version=document.version,
            lines=document.share(),
            line=at_line,
            column=column,
            eol=document.eol,
            workspace=self.workspace_of(self._notebook_of.get(key, key)),
            cells_before=before,
            cells_after=after,
            n_bytes=document.n_chars,
        )

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether the document still says what `snapshot` says."""
        entry = self._documents.get(normal(snapshot.uri))
        return entry is not None and entry.document.is_same_as(snapshot.lines)

    def has_line_of(self, snapshot: Snapshot) -> bool:
        """Whether what stood left of the snapshot's cursor still stands there."""
        entry = self._documents.get(normal(snapshot.uri))
        if entry is None:
            return False
        lines = entry.document.share()
        return snapshot.line < len(lines) and lines[snapshot.line].startswith(snapshot.line_before)

    # Workspace folders

    def add_folder(self, uri: str) -> None:
        self._folders[normal(uri).rstrip("/")] = uri

    def remove_folder(self, uri: str) -> None:
        self._folders.pop(normal(uri).rstrip("/"), None)

    def folders(self) -> list[str]:
        """The workspace's folders, by their URIs."""
        return list(self._folders)

    def workspace_of(self, uri: str) -> str:
        """The innermost folder that holds `uri`; without one, the only folder there is (for unsaved documents)."""
        key = normal(uri)
        holding = [folder for folder in self._folders if key.startswith(folder + "/")]
        if holding:
            return max(holding, key=len)
        if len(self._folders) == 1 and not key.startswith("file:"):
            return next(iter(self._folders))
        return ""

    # Notebooks

    def open_notebook(self, uri: str, cells: list[Cell]) -> None:
        """A notebook came with its cells in order."""
        self._set_cells(normal(uri), [Cell(normal(cell.uri), cell.is_code) for cell in cells])

    def splice_notebook(self, uri: str, start: int, n_removed: int, cells: list[Cell]) -> None:
        """Cells were added, removed or moved."""
        key = normal(uri)
        if key in self._notebooks:
            new = list(self._notebooks[key])
            new[start : start + n_removed] = [Cell(normal(cell.uri), cell.is_code) for cell in cells]
            self._set_cells(key, new)

    def close_notebook(self, uri: str) -> None:
        key = normal(uri)
        for cell in self._notebooks.pop(key, []):
            self._notebook_of.pop(cell.uri, None)

    def _set_cells(self, key: str, cells: list[Cell]) -> None:
        for cell in self._notebooks.get(key, []):
            self._notebook_of.pop(cell.uri, None)
        self._notebooks[key] = cells
        for cell in cells:
            self._notebook_of[cell.uri] = key

    def _cells_around(self, key: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        notebook = self._notebook_of.get(key)
        if notebook is None:
            return (), ()
        cells = self._notebooks[notebook]
        at = next(index for index, cell in enumerate(cells) if cell.uri == key)
        texts = [self._cell_text(cell, language) for cell in cells]
        return tuple(text for text in texts[:at] if text), tuple(text for text in texts[at + 1 :] if text)

    def _cell_text(self, cell: Cell, language: str) -> str:
        entry = self._documents.get(cell.uri)
        if entry is None:
            return ""
        text = entry.document.text
        return text if cell.is_code else commented(text, language)
