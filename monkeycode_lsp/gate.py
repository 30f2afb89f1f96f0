"""May this place be asked at all?  (pure)

Hard rules (what must not be served) hold for every ask; rules of taste only for automatic ones.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pathspec

from monkeycode_lsp import config
from monkeycode_lsp.context import comments, secrets
from monkeycode_lsp.context.window import relative_path
from monkeycode_lsp.domain import Ask, Trigger, Window

SCHEMES = frozenset({"file", "untitled", "vscode-notebook-cell", "vscode-remote"})
MOST_NULS = 1_000


class Gate:
    """The rules of one configuration, compiled once."""

    def __init__(self, settings: config.Config) -> None:
        self._settings = settings
        self._globs = pathspec.GitIgnoreSpec.from_lines(settings.completion.disabled_globs)
        self._languages = frozenset(settings.completion.disabled_languages)

    def refuses(self, ask: Ask, *, n_nuls: int = 0) -> str:
        """The hard rule that forbids this document, in words; empty if none does."""
        settings, snapshot = self._settings, ask.snapshot
        if not settings.enabled:
            return "Completion is switched off (setting enabled)."
        if settings.engine == "off":
            return "The engine is switched off (setting engine)."
        scheme = urlsplit(snapshot.uri).scheme
        if scheme not in SCHEMES:
            return f"Documents of the kind {scheme}: are not served."
        if snapshot.language in self._languages:
            return f"The language {snapshot.language} is switched off (setting completion.disabledLanguages)."
        path = unquote(urlsplit(snapshot.uri).path)
        if self._globs.match_file(path.lstrip("/")) or self._globs.match_file(relative_path(snapshot.uri, snapshot.workspace)):
            return "The file matches a pattern of the setting completion.disabledGlobs."
        if secrets.is_secret(path, settings.privacy.secret_files):
            return "The file's name says that it holds secrets (setting privacy.secretFiles and the built-in list)."
        if snapshot.n_bytes > settings.context.max_document_bytes:
            return "The document is larger than the setting context.maxDocumentBytes allows."
        if n_nuls > MOST_NULS:
            return "The document looks like a binary file."
        return ""

    def declines(self, ask: Ask, window: Window) -> str:
        """The rule of taste that keeps an automatic ask quiet, in words; empty if none does."""
        if ask.trigger is Trigger.INVOKED:
            return ""
        after = window.line_after[:1]
        before = window.line_before[-1:]
        if after and (after.isalnum() or after == "_") and (before.isalnum() or before == "_"):
            return "The cursor stands inside a word."
        if not self._settings.completion.in_comments and comments.at_cursor(window):
            return "The cursor stands in a comment (setting completion.inComments)."
        if not window.prefix.strip() and not window.suffix.strip():
            return "The document is empty."
        return ""
