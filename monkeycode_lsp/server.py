"""Every LSP message that this server handles, and nothing else.

A handler takes what it needs from its message at once (the snapshot above all) and returns a
coroutine for the rest.  Decisions about completion are the completer's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

import monkeycode_lsp
from monkeycode_lsp import convert, editor_settings
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.config import Config
from monkeycode_lsp.documents import Documents, file_path, normal
from monkeycode_lsp.domain import Ask, Suggestion
from monkeycode_lsp.editor_settings import EditorSettings
from monkeycode_lsp.errors import ModelMissingError, MonkeyCodeError, SupersededError
from monkeycode_lsp.notices import Notices, PullModel
from monkeycode_lsp.observe import figures
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.protocol import Protocol
from monkeycode_lsp.settings import Layers
from monkeycode_lsp.text import Encoding
from monkeycode_lsp.transport import Writer

logger = logging.getLogger(__name__)

FORGET = "monkeycode.forget"
"""Drops what is remembered in this process, and what was turned down."""
REJECTED = "monkeycode.rejected"
"""Sent with the number that `monkeycode.accepted` would have been sent with."""
WHY = "monkeycode.why"
STATS = "monkeycode.stats"
"""How often something was shown in this window, and what became of it."""
TRIGGER_CHARACTERS = list(".([{,:=/ \"'")
_SAVE_EVERY_S = 1.0

Report = Callable[[MonkeyCodeError], None]
MakeCompleter = Callable[[Config, Report, Completer | None, Callable[[], list[str]]], Completer]
"""A pipeline for new settings; it may take over parts of the one before.  The last argument tells the workspace's folders."""


class Server:
    """One editor's server.

    The mutable state is the open documents, the settings' layers, the pipeline made from them and
    what has been said to the user.
    """

    def __init__(
        self,
        *,
        make_completer: MakeCompleter,
        layers: Layers,
        outcomes: Outcomes,
        save: Callable[[], None],
        pull_model: PullModel | None = None,
    ) -> None:
        self._make_completer = make_completer
        self._outcomes = outcomes
        self._save = save
        self._documents = Documents()
        self._editor = convert.Client()
        self._completer: Completer | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._newest = ""
        self.ended = asyncio.Event()
        """Set when the process should end."""
        self._configured = asyncio.Event()
        self.exit_code = 1
        ls = LanguageServer(
            name="monkeycode-lsp",
            version=monkeycode_lsp.__version__,
            protocol_cls=Protocol,
            converter_factory=convert.converter,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=lsp.NotebookDocumentSyncOptions(
                notebook_selector=[lsp.NotebookDocumentFilterWithNotebook(notebook="*")]
            ),
        )
        self._ls = ls
        assert isinstance(ls.protocol, Protocol)  # noqa: S101 - told to mypy, which sees the framework's type
        self._protocol: Protocol = ls.protocol
        self._protocol.on_exit = self._exit
        self._notices = Notices(ls, self._protocol, pull_model=pull_model, pulled=self._pulled)
        self._protocol.on_unfit = self._unfit
        self._settings = EditorSettings(layers, self._protocol, apply=self._apply, say=self._notices.say, spawn=self._spawn)
        self._register()

    # For the transport

    def connected(self, writer: Writer, *, framed: bool) -> None:
        """An editor is there."""
        self._protocol.connected(writer, framed=framed)

    def receive(self, body: bytes) -> None:
        """One message of the editor."""
        self._protocol.receive(body)

    async def aclose(self) -> None:
        """Leave nothing behind: no generation, no engine, no task."""
        self._notices.close()
        self._protocol.cancel_all()
        for task in list(self._tasks):
            task.cancel()
        if self._completer is not None:
            await self._completer.retire()
        self._save()

    def _exit(self, code: int) -> None:
        self.exit_code = code
        self.ended.set()

    def _register(self) -> None:
        def feature(method: str, options: Any = None) -> Callable[[Callable[[Any], Any]], Any]:
            # The framework sets attributes on handlers, which a bound method does not take.
            return lambda handler: self._ls.feature(method, options)(partial(handler))

        handlers: dict[str, Callable[[Any], Any]] = {
            lsp.INITIALIZE: self._initialize,
            lsp.INITIALIZED: self._on_initialized,
            lsp.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._files_changed,
            lsp.NOTEBOOK_DOCUMENT_DID_OPEN: self._notebook_did_open,
            lsp.NOTEBOOK_DOCUMENT_DID_CHANGE: self._notebook_did_change,
            lsp.NOTEBOOK_DOCUMENT_DID_CLOSE: self._notebook_did_close,
            lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders_changed,
            lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: self._configuration_changed,
        }
        for method, handler in handlers.items():
            feature(method)(handler)
        feature(lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SaveOptions(include_text=False))(self._did_save)
        # Without options the framework would not announce it; Emacs uses it without saying so, hence always.
        feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())(self._inline_completion)
        self._ls.command(convert.ACCEPTED)(partial(self._accepted))
        self._ls.command(REJECTED)(partial(self._rejected))
        self._ls.command(FORGET)(partial(self._forget))
        self._ls.command(WHY)(partial(self._why))
        self._ls.command(STATS)(partial(self._stats))

    # Life

    def _initialize(self, params: lsp.InitializeParams) -> None:
        encoding = self._protocol.workspace.position_encoding or Encoding.UTF16.value
        self._documents = Documents(Encoding(encoding))
        self._editor = convert.client(params, encoding)
        self._notices.shows_progress = self._editor.progress
        folders = [folder.uri for folder in params.workspace_folders or []]
        for uri in folders or [params.root_uri or ""]:
            if uri:
                self._documents.add_folder(uri)
        if not self._editor.inline:
            # Beside inline completion a second, competing list would only disturb.
            self._ls.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=TRIGGER_CHARACTERS))(
                partial(self._completion)
            )
        root = folders[0] if folders else params.root_uri or ""
        self._settings.begin(root, params.initialization_options, answers=self._editor.configuration)
        self._spawn(self._save_regularly())

    def _on_initialized(self, _params: lsp.InitializedParams) -> None:
        self._settings.started()

    async def _save_regularly(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY_S)
            await asyncio.to_thread(self._save)

    # Settings

    def _configuration_changed(self, params: lsp.DidChangeConfigurationParams) -> None:
        self._settings.changed(params.settings)

    def _apply(self, settings: Config) -> None:
        """Put settings in force."""
        before = self._completer
        if before is not None and before.settings == settings:
            return
        self._notices.forget()
        self._notices.mirror = settings.local.mirror
        try:
            self._completer = self._make_completer(settings, self._report, before, self._documents.folders)
        except Exception as exc:
            logger.exception("the settings cannot be used")
            self._notices.say(
                f"These settings cannot be used ({type(exc).__name__}); those before them stay in force. The log has the details."
            )
            return
        self._configured.set()
        if before is not None:
            self._spawn(before.retire(self._completer))
        self._spawn(self._completer.warm())
        if before is None or before.gathering is not self._completer.gathering:
            for snapshot in self._documents.all_open():
                self._completer.met(snapshot, n_nuls=self._documents.n_nuls(snapshot.uri))
        self._read_ahead()

    # Documents

    def _did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        self._close(document.uri)  # some editors open again to change the language, or after a reload
        self._documents.open(document.uri, document.language_id, document.version, document.text)
        self._newest = document.uri
        self._read_ahead()

    def _read_ahead(self) -> None:
        """Tell the completer which document was opened last, as soon as there is a completer."""
        if self._newest and self._completer is not None:
            snapshot = self._documents.snapshot(self._newest, 0, 0)
            self._newest = ""
            if snapshot is not None:
                self._completer.opened(snapshot, n_nuls=self._documents.n_nuls(snapshot.uri))

    def _did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        self._edit(params.text_document, params.content_changes)

    def _edit(self, document: lsp.VersionedTextDocumentIdentifier, events: Sequence[lsp.TextDocumentContentChangeEvent]) -> None:
        edited = self._documents.change(document.uri, document.version, convert.changes(events))
        if edited is None or self._completer is None:
            return
        self._completer.edited(edited)

    def _unfit(self, method: str, params: Any) -> None:
        """An edit that cannot be understood: the text that we have is no longer the user's, so it is not served until it comes anew."""
        if method == lsp.TEXT_DOCUMENT_DID_CHANGE and (uri := convert.document_uri(params)):
            self._close(uri)

    def _did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self._close(params.text_document.uri)

    def _did_save(self, params: lsp.DidSaveTextDocumentParams) -> None:
        self._files_written([params.text_document.uri])

    def _files_changed(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        self._files_written([change.uri for change in params.changes])

    def _files_written(self, uris: Sequence[str]) -> None:
        """By the editor or another program."""
        if self._completer is None:
            return
        for uri in map(normal, uris):
            path = file_path(uri)
            if path is not None:
                self._completer.saved(uri, self._documents.workspace_of(uri), path)

    def _close(self, uri: str) -> None:
        self._documents.close(uri)
        if self._completer is not None:
            self._completer.closed(normal(uri))

    def _notebook_did_open(self, params: lsp.DidOpenNotebookDocumentParams) -> None:
        self._documents.open_notebook(params.notebook_document.uri, convert.cells(params.notebook_document.cells))
        for cell in params.cell_text_documents:
            self._documents.open(cell.uri, cell.language_id, cell.version, cell.text)

    def _notebook_did_change(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        change = params.change.cells
        if change is None:
            return
        if change.structure is not None:
            for opened in change.structure.did_open or []:
                self._documents.open(opened.uri, opened.language_id, opened.version, opened.text)
            splice = change.structure.array
            self._documents.splice_notebook(params.notebook_document.uri, splice.start, splice.delete_count, convert.cells(splice.cells))
            for closed in change.structure.did_close or []:
                self._close(closed.uri)
        for text in change.text_content or []:
            self._edit(text.document, text.changes)

    def _notebook_did_close(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        self._documents.close_notebook(params.notebook_document.uri)
        for cell in params.cell_text_documents:
            self._close(cell.uri)

    def _folders_changed(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            self._documents.remove_folder(folder.uri)
        for folder in params.event.added:
            self._documents.add_folder(folder.uri)
        if self._completer is not None:
            self._completer.folders_changed()

    # Completion

    def _inline_completion(self, params: lsp.InlineCompletionParams) -> Coroutine[Any, Any, Any] | lsp.InlineCompletionList:
        uri, position = params.text_document.uri, params.position
        snapshot = self._documents.snapshot(uri, position.line, position.character)
        if snapshot is None:
            return lsp.InlineCompletionList(items=[])
        asked = convert.ask(snapshot, params.context, self._documents.last_edit(uri), self._editor)
        return self._answer(asked, convert.inline_list)

    def _completion(self, params: lsp.CompletionParams) -> Coroutine[Any, Any, Any] | lsp.CompletionList:
        uri, position = params.text_document.uri, params.position
        snapshot = self._documents.snapshot(uri, position.line, position.character)
        if snapshot is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        asked = convert.menu_ask(snapshot, params.context, self._documents.last_edit(uri))
        return self._answer(asked, convert.menu_list)

    async def _answer(self, asked: Ask, to_reply: Callable[[Ask, list[Suggestion], convert.Client], Any]) -> Any:
        if self._completer is None:  # the editor asks before it has told its settings
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._configured.wait(), editor_settings.ANSWER_S)
        if self._completer is None:
            return to_reply(asked, [], self._editor)
        try:
            suggestions = await self._completer.complete(asked, n_nuls=self._documents.n_nuls(asked.snapshot.uri))
        except SupersededError:
            return None  # leaves the screen to the newer answer
        if not self._documents.is_current(asked.snapshot):
            if to_reply is convert.inline_list:
                self._completer.screen.unseen(suggestions)
                return None  # the text moved on; a menu filters by what was typed since, ghost text cannot
            if not self._documents.has_line_of(asked.snapshot):
                self._completer.screen.unseen(suggestions)
                suggestions = []
        return to_reply(asked, suggestions, self._editor)

    # Commands

    def _accepted(self, *args: Any) -> None:
        if (number := _number(args)) is not None and self._completer is not None:
            self._completer.screen.accepted(number)

    def _rejected(self, *args: Any) -> None:
        if (number := _number(args)) is not None and self._completer is not None:
            self._completer.screen.rejected(number)

    def _forget(self, *_args: Any) -> None:
        if self._completer is not None:
            self._completer.recall.forget_all()

    def _stats(self, *_args: Any) -> Any:
        return figures.value(self._outcomes.last())

    def _why(self, *args: Any) -> list[dict[str, Any]]:
        number = _number(args)
        n = 20 if number is None else number
        return [
            {
                "id": outcome.id,
                "at": outcome.at,
                "outcome": outcome.kind.value,
                "reason": outcome.reason,
                "place": outcome.place,
                "trigger": outcome.trigger,
                "origin": outcome.origin,
                "totalMs": outcome.total_ms,
                "firstMs": outcome.first_ms,
                "stagesMs": outcome.stages_ms,
                "readTokens": outcome.read_tokens,
                "reusedTokens": outcome.reused_tokens,
                "generatedTokens": outcome.generated_tokens,
                "accepted": outcome.accepted,
                "model": outcome.model,
                "confidence": outcome.confidence,
                "odds": outcome.odds,
                "fate": outcome.fate,
            }
            for outcome in self._outcomes.last(n)
        ]  # fmt: skip

    def _report(self, error: MonkeyCodeError) -> None:
        if isinstance(error, ModelMissingError) and self._notices.can_offer(error):
            self._spawn(self._notices.offer(error))
        else:
            self._notices.say(str(error))

    async def _pulled(self) -> None:
        if self._completer is not None:
            await self._completer.warm()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A background task failed.", exc_info=task.exception())


def _number(args: Sequence[Any]) -> int | None:
    return args[0] if args and type(args[0]) is int else None
