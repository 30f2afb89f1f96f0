"""May a document be asked about, and how far may its text go?  The gate, with what the ignore files say now."""

from __future__ import annotations

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.context import policy
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.domain import Ask, Window
from monkeycode_lsp.gate import Gate
from monkeycode_lsp.privacy.rules import Rules


class Admission:
    """Of one configuration."""

    def __init__(self, settings: config.Config, rules: Rules | None) -> None:
        self._gate = Gate(settings)
        self._rules = rules

    async def admitted(self, ask: Ask, *, n_nuls: int) -> tuple[Ask, str]:
        """The ask with how far its text may go, and the hard rule that forbids it, if one does.

        Waits only if nobody has looked at the ignore files lately.
        """
        snapshot, verdict = ask.snapshot, policy.ANYWHERE
        if self._rules is not None:
            verdict = self._rules.known(snapshot.uri) or await self._rules.judge(snapshot.uri, snapshot.workspace)
        rule = self._gate.refuses(ask, n_nuls=n_nuls, verdict=verdict)
        return (msgspec.structs.replace(ask, stays_here=True) if verdict.level is Level.LOCAL else ask), rule

    def refuses(self, ask: Ask, *, n_nuls: int) -> str:
        """The hard rule that forbids the document, whatever the ignore files say."""
        return self._gate.refuses(ask, n_nuls=n_nuls)

    def declines(self, ask: Ask, window: Window) -> str:
        """The rule of taste that keeps an automatic ask quiet."""
        return self._gate.declines(ask, window)

    def file_written(self, uri: str) -> bool:
        """Whether it was an ignore file, so that nothing that was known counts any more."""
        if self._rules is None or not self._rules.is_ignore_file(uri):
            return False
        self._rules.changed()
        return True
