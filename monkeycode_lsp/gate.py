"""May this place be asked at all?  (pure)

Hard rules (what must not be served) hold for every ask; rules of taste only for automatic ones.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pathspec

from monkeycode_lsp import config
from monkeycode_lsp.context import comments, redaction, secrets
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.context.window import relative_path
from monkeycode_lsp.domain import Ask, Trigger, Window
from monkeycode_lsp.syntax import language_ids

SCHEMES = frozenset({"file", "untitled", "vscode-notebook-cell", "vscode-remote"})
MOST_NULS = 1_000


class Gate:
    """The rules of one configuration, compiled once."""

    def __init__(self, settings: config.Config) -> None:
        self._settings = settings
        self._globs = pathspec.GitIgnoreSpec.from_lines(filter(_is_pattern, settings.completion.disabled_globs))
        self._languages = frozenset(map(language_ids.canonical, settings.completion.disabled_languages))

    def refuses(self, ask: Ask, *, n_nuls: int = 0, verdict: Verdict = ANYWHERE) -> str:
        """The hard rule that forbids this document, in words; empty if none does.  `verdict`: what the ignore files say of it."""
        settings, snapshot = self._settings, ask.snapshot
        scheme = urlsplit(snapshot.uri).scheme
        rules = (
            (not settings.enabled, "Completion is switched off (setting enabled)."),
            (settings.engine == "off", "The engine is switched off (setting engine)."),
            (scheme not in SCHEMES, f"Documents of the kind {scheme}: are not served."),
            (
                snapshot.language in self._languages,
                f"The language {snapshot.language} is switched off (setting completion.disabledLanguages).",
            ),
            (self.is_disabled(snapshot.uri, snapshot.workspace), "The file matches a pattern of the setting completion.disabledGlobs."),
            (
                secrets.is_secret_uri(snapshot.uri, settings.privacy.secret_files),
                "The file's name says that it holds secrets (setting privacy.secretFiles).",
            ),
            (verdict.level is Level.NEVER, f"The file is private: {verdict.why} (setting privacy.ignoreFiles)."),
            (snapshot.n_bytes > settings.context.max_document_bytes, "The document is too large (setting context.maxDocumentBytes)."),
            (n_nuls > MOST_NULS, "The document looks like a binary file."),
        )
        return next((rule for forbids, rule in rules if forbids), "")

    def is_disabled(self, uri: str, workspace: str) -> bool:
        """Whether a pattern of the user's names the file."""
        path = unquote(urlsplit(uri).path)
        return self._globs.match_file(path.lstrip("/")) or self._globs.match_file(relative_path(uri, workspace))

    def declines(self, ask: Ask, window: Window) -> str:
        """The rule of taste that keeps an automatic ask quiet, in words; empty if none does.

        Whoever asks, nothing is said in a secret: the model does not see it, and could only go on with what stands for it.
        """
        if self._settings.privacy.redact_secrets and redaction.at_cursor(window.prefix, window.suffix):
            return "The cursor stands in what looks like a secret (setting privacy.redactSecrets)."
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


def _is_pattern(text: str) -> bool:
    """Whether it can match anything; what cannot names no file."""
    try:
        pathspec.GitIgnoreSpec.from_lines([text])
    except (ValueError, re.error):
        return False
    return True
