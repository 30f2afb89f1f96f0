"""Records what is typed while an editor is served: the edits of the document that is edited most.

The recorder stands between the transport and the server and reads along; the server gets every message first, as it came.
Invariant: nothing is recorded of a document that the gate refuses, and what was recorded before it did is taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, BinaryIO

import msgspec

from monkeycode_lsp import transport
from monkeycode_lsp.bench.replay.event import Event, followed
from monkeycode_lsp.bench.replay.recording import MOST_CHARACTERS, MOST_EDITS, Recording, RecordingFile, Transaction
from monkeycode_lsp.bench.replay.trace import Patch
from monkeycode_lsp.documents import Documents, normal
from monkeycode_lsp.domain import Ask, Snapshot
from monkeycode_lsp.gate import Gate
from monkeycode_lsp.server import Server
from monkeycode_lsp.settings import Layers
from monkeycode_lsp.text import Document, Encoding, lf

logger = logging.getLogger(__name__)

SAVE_EVERY_S = 2.0


class _TextDocument(msgspec.Struct, frozen=True, rename="camel"):
    uri: str
    language_id: str = ""
    text: str = ""


class _AboutDocument(msgspec.Struct, frozen=True, rename="camel"):
    text_document: _TextDocument
    content_changes: tuple[Event, ...] = ()


class _Message(msgspec.Struct, frozen=True):
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Open(msgspec.Struct):
    """A document that is open, and its recording so far."""

    uri: str
    document: Document
    start: str | None = None
    """None: nothing is recorded yet."""
    txns: list[Transaction] = []
    n_characters: int = 0
    whole: Recording | None = None
    """The recording, once no more is recorded of this document."""

    def recording(self) -> Recording:
        return self.whole or Recording(self.start or "", self.document.text, self.document.language, tuple(self.txns))


class Recorder:
    """What the transport serves in the server's place.

    The mutable state is the editor's settings and folders, the open documents with their recordings, of those that were closed the one
    with the longest, how long the recording is that was saved last, and what goes on with the file; it changes on one thread.
    """

    def __init__(self, server: transport.Peer, file: RecordingFile, layers: Layers) -> None:
        self._server = server
        self._file = file
        self._layers = layers
        self._gate = _gate(layers)
        self._encoding = Encoding.UTF16
        self._folders = Documents()
        """Knows which workspace folder holds a document: patterns of the settings are relative to it."""
        self._open: dict[str, _Open] = {}
        self._closed: _Open | None = None
        self._n_saved = 0
        self._is_writing = False
        self._must_go = False
        """What lies in the file, or will in a moment, is forbidden by now."""

    def connected(self, writer: transport.Writer, *, framed: bool) -> None:
        """An editor is there."""
        self._server.connected(writer, framed=framed)

    def receive(self, body: bytes) -> None:
        """One message of the editor."""
        self._server.receive(body)
        with contextlib.suppress(msgspec.DecodeError, UnicodeError, RecursionError):  # what is no message, the server has refused
            self._read(msgspec.json.decode(body, type=_Message))

    def save(self) -> None:
        """Write the longest recording if it has grown.  Blocking."""
        longest = self._longest()
        if longest is not None and self._write(longest):
            self._n_saved = len(longest.txns)

    async def save_regularly(self, over: asyncio.Event) -> None:
        """So that little is lost when the editor kills us.  It ends between two writes, never in one."""
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), SAVE_EVERY_S)
            longest = self._longest()
            if longest is not None:
                await self._save_elsewhere(longest)

    async def _save_elsewhere(self, longest: Recording) -> None:
        """On a thread, while the editor goes on and may forbid what is being written."""
        self._is_writing = True
        try:
            is_saved = await asyncio.to_thread(self._write, longest)
        finally:
            self._is_writing = False
        if is_saved and not self._must_go:
            self._n_saved = len(longest.txns)
        self._take_back()

    def _longest(self) -> Recording | None:
        """The recording to be saved; None if it has been."""
        self._forget_what_is_refused()
        if self._must_go:  # it could not be removed, so it cannot be replaced
            return None
        entries = [*self._open.values(), *([self._closed] if self._closed is not None else [])]
        longest = max(entries, key=lambda entry: len(entry.txns), default=None)
        return longest.recording() if longest is not None and len(longest.txns) > self._n_saved else None

    def _write(self, recording: Recording) -> bool:
        try:
            self._file.save(recording)
        except OSError as exc:
            logger.warning("The recording could not be saved: %s.", exc.strerror or exc)
            return False
        return True

    def _take_back(self) -> None:
        """Remove the file if it must go; whatever may be recorded is written with the next save."""
        if self._must_go and not self._is_writing:
            try:
                self._file.remove()
            except OSError as exc:
                logger.warning(
                    "The recording holds text of a document that is not served by now and could not be removed: %s.", exc.strerror or exc
                )
            else:
                self._must_go = False

    # What the editor says

    def _read(self, message: _Message) -> None:
        method = message.method
        if method in {"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"}:
            self._read_document(method, message.params)
        elif method == "initialize":
            self._initialize(msgspec.json.decode(message.params))
        elif method == "workspace/didChangeWorkspaceFolders":
            event = _member(msgspec.json.decode(message.params), "event")
            self._follow_folders(added=_uris(_member(event, "added")), removed=_uris(_member(event, "removed")))
        elif method == "workspace/didChangeConfiguration":
            self._layers.set_pushed(_member(msgspec.json.decode(message.params), "settings"))
            self._follow_settings()
        elif not method and isinstance(answer := msgspec.json.decode(message.result), list):
            self._layers.set_current(next(iter(answer), None))  # only the question for our settings is answered by a list
            self._follow_settings()

    def _initialize(self, params: Any) -> None:
        root = _member(params, "rootUri")
        folders = _uris(_member(params, "workspaceFolders")) or ([root] if isinstance(root, str) and root else [])
        self._follow_folders(added=folders)
        self._layers.read_files(next(iter(folders), ""))
        self._layers.set_client(_member(params, "initializationOptions"))
        self._follow_settings()
        offered = _member(_member(_member(params, "capabilities"), "general"), "positionEncodings")
        known = {encoding.value: encoding for encoding in Encoding}
        names = [name for name in offered if isinstance(name, str)] if isinstance(offered, list) else []
        self._encoding = next((known[name] for name in names if name in known), Encoding.UTF16)  # as the server chooses

    def _follow_folders(self, *, added: Iterable[str], removed: Iterable[str] = ()) -> None:
        for uri in removed:
            self._folders.remove_folder(uri)
        for uri in added:
            self._folders.add_folder(uri)
        self._forget_what_is_refused()

    def _follow_settings(self) -> None:
        self._gate = _gate(self._layers)
        self._forget_what_is_refused()

    def _read_document(self, method: str, params: msgspec.Raw) -> None:
        try:
            about = msgspec.json.decode(params, type=_AboutDocument)
        except msgspec.ValidationError:
            uri = _member(_member(msgspec.json.decode(params), "textDocument"), "uri")
            self._close(normal(uri) if isinstance(uri, str) else "")  # from here on its text is not known
            return
        uri = normal(about.text_document.uri)
        if method == "textDocument/didChange":
            self._change(uri, about.content_changes)
            return
        self._close(uri)
        if method == "textDocument/didOpen":
            opened = about.text_document
            self._open[uri] = _Open(uri, Document(opened.uri, opened.language_id, 0, lf(opened.text), self._encoding))

    def _close(self, uri: str) -> None:
        entry = self._open.pop(uri, None)
        if entry is None or not entry.txns:
            return
        if self._is_refused(entry):
            self._forget(entry)
        elif self._closed is None or len(entry.txns) > len(self._closed.txns):
            self._closed = entry

    def _change(self, uri: str, events: tuple[Event, ...]) -> None:
        entry = self._open.get(uri)
        if entry is None:
            return
        refused = self._is_refused(entry)
        if refused:
            self._forget(entry)
        elif entry.start is None:
            entry.start = entry.document.text
            entry.n_characters = len(entry.start)
        patches = tuple(patch for event in events for patch in followed(entry.document, event))
        if patches and not refused and entry.whole is None:
            self._keep(entry, patches)

    def _keep(self, entry: _Open, patches: tuple[Patch, ...]) -> None:
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry.txns.append(Transaction(now, patches))
        entry.n_characters += sum(len(patch.inserted) for patch in patches)
        if len(entry.txns) >= MOST_EDITS or entry.n_characters >= MOST_CHARACTERS:
            entry.whole = entry.recording()
            logger.warning("A recording is as long as it may be; no more is recorded of that document.")

    def _forget_what_is_refused(self) -> None:
        for entry in self._open.values():
            if entry.txns and self._is_refused(entry):
                self._forget(entry)
        if self._closed is not None and self._is_refused(self._closed):
            self._forget(self._closed)
            self._closed = None
        self._take_back()

    def _forget(self, entry: _Open) -> None:
        if entry.txns:  # it may be on disk
            self._must_go = True
            self._n_saved = 0
        entry.start, entry.txns, entry.n_characters, entry.whole = None, [], 0, None
        self._take_back()

    def _is_refused(self, entry: _Open) -> bool:
        document = entry.document
        workspace = self._folders.workspace_of(entry.uri)
        snapshot = Snapshot(entry.uri, document.language, 0, document.share(), 0, 0, workspace=workspace, n_bytes=document.n_chars)
        return bool(self._gate.refuses(Ask(snapshot), n_nuls=document.n_nuls))


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _uris(folders: Any) -> list[str]:
    uris = [_member(folder, "uri") for folder in folders] if isinstance(folders, list) else []
    return [uri for uri in uris if isinstance(uri, str)]


async def serve(server: Server, stdout: BinaryIO, file: RecordingFile, layers: Layers) -> None:
    """Serve the editor at the other end of our pipes and record, until it goes or ends us."""
    recorder = Recorder(server, file, layers)
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.ended.set)
    over = asyncio.Event()
    saving = asyncio.create_task(recorder.save_regularly(over))
    try:
        await transport.serve_stdio(recorder, stdout, server.ended)
    finally:
        over.set()
        await saving
        recorder.save()


def _gate(layers: Layers) -> Gate:
    """What may not be served may not be recorded; that nothing is served at the moment takes nothing back."""
    return Gate(msgspec.structs.replace(layers.resolve()[0], enabled=True, engine="auto"))
