"""The one question that the pipeline asks: is there something for this place already?"""

from __future__ import annotations

import msgspec

from monkeycode_lsp.domain import Origin, Suggestion, Window
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.signature import signature
from monkeycode_lsp.recall.table import Shown, Table


class Recall:
    """Typed-through first (it knows the document), then the tiers."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._table = Table()

    def find(self, uri: str, scope: str, window: Window) -> Suggestion | None:
        """A finished suggestion that agrees with the text as it is now."""
        kept = self._memory.get(signature(scope, window))
        if kept is not None:
            self._table.put(uri, Shown(scope=scope, window=window, suggestion=kept))
            return msgspec.structs.replace(kept, origin=Origin.MEMORY)
        typed = self._table.typed_through(uri, scope, window)
        return msgspec.structs.replace(typed, origin=Origin.TYPED_THROUGH) if typed is not None else None

    def keep(self, uri: str, scope: str, window: Window, suggestion: Suggestion) -> None:
        """Remember a finished, non-empty, cleaned suggestion."""
        if not suggestion.text:
            return
        self._memory.put(signature(scope, window), suggestion)
        self._table.put(uri, Shown(scope=scope, window=window, suggestion=suggestion))

    def forget(self, uri: str) -> None:
        """Drop what only helps while the document is open."""
        self._table.forget(uri)
