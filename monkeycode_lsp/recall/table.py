"""What was made for each document, finished or not, so that typing through it needs no other generation.

Invariant: nothing is ever found in another document than the one it was made in, and nothing that
is still being made is forgotten as long as something finished could go instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

import msgspec

from monkeycode_lsp.domain import Scope, Window
from monkeycode_lsp.recall.agreement import Rest, rest

PER_DOCUMENT = 64
DOCUMENTS = 64


class Made(Protocol):
    """A finished suggestion or a running generation."""

    @property
    def scope(self) -> Scope: ...

    @property
    def window(self) -> Window:
        """The place it was made for."""
        ...

    @property
    def text(self) -> str:
        """Cleaned if it is finished, else what has come so far."""
        ...

    @property
    def whole(self) -> bool:
        """Whether nothing will be added to the text."""
        ...

    @property
    def running(self) -> bool: ...


class Found(msgspec.Struct, frozen=True):
    """Something that agrees with the text as it is now."""

    made: Made
    rest: Rest


class Table:
    """By document, newest last."""

    # The mutable state is the documents' entries; it changes in `put`, `discard`, `forget` and `clear` only.

    def __init__(self) -> None:
        self._documents: OrderedDict[str, list[Made]] = OrderedDict()

    def put(self, uri: str, made: Made) -> None:
        """Remember what was made, or is being made, for a place in `uri`."""
        entries = self._documents.setdefault(uri, [])
        self._documents.move_to_end(uri)
        entries.append(made)
        if len(entries) > PER_DOCUMENT:
            del entries[next((n for n, entry in enumerate(entries) if not entry.running), 0)]
        if len(self._documents) > DOCUMENTS:
            others = list(self._documents)[:-1]
            del self._documents[next((other for other in others if not self.all_running(other)), others[0])]

    def discard(self, uri: str, made: Made) -> None:
        """Forget this very one."""
        entries = [entry for entry in self._documents.get(uri, ()) if entry is not made]
        if entries:
            self._documents[uri] = entries
        else:
            self._documents.pop(uri, None)

    def find(self, uri: str, scope: Scope, window: Window) -> Found | None:
        """The newest finished one of which something is still to come."""
        finished = (made for made in self._newest_first(uri) if made.whole and not made.running)
        return next((found for found in _agreeing(finished, scope, window) if found.rest.text), None)

    def running(self, uri: str, scope: Scope, window: Window) -> Found | None:
        """The newest one that is still being made and does not contradict."""
        running = (made for made in self._newest_first(uri) if made.running)
        return next(_agreeing(running, scope, window), None)

    def astray(self, uri: str, scope: Scope, window: Window) -> list[Made]:
        """Those that are still being made, though they contradict the text as it is now."""
        return [made for made in self.all_running(uri) if next(_agreeing((made,), scope, window), None) is None]

    def all_running(self, uri: str = "") -> list[Made]:
        """Those of one document, or of all, that are still being made."""
        documents = [self._documents.get(uri, [])] if uri else list(self._documents.values())
        return [made for entries in documents for made in entries if made.running]

    def forget(self, uri: str) -> list[Made]:
        """Drop a document; what was still being made for it is given back."""
        running = self.all_running(uri) if uri else []
        self._documents.pop(uri, None)
        return running

    def clear(self) -> None:
        """Drop what is finished; what is still being made goes on."""
        for uri, entries in list(self._documents.items()):
            self._documents[uri] = [made for made in entries if made.running]

    def _newest_first(self, uri: str) -> Iterator[Made]:
        return reversed(self._documents.get(uri, []))


def _agreeing(entries: Iterator[Made] | tuple[Made, ...], scope: Scope, window: Window) -> Iterator[Found]:
    for made in entries:
        if made.scope == scope and (made.window.language, made.window.path) == (window.language, window.path):
            left = rest(made.window, made.text, window, whole=made.whole)
            if left is not None:
                yield Found(made, left)
