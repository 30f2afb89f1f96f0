"""What was shown in each document, so that typing through it needs no engine."""

from __future__ import annotations

from collections import OrderedDict, deque

import msgspec

from monkeycode_lsp.domain import Suggestion, Window

LOOK_BACK = 128
"""Characters of a suggestion that may have been typed already."""
PER_DOCUMENT = 64
DOCUMENTS = 64
_ENOUGH = 400
"""Characters before the cursor that must agree where two windows start at different lines."""


class Shown(msgspec.Struct, frozen=True):
    """One suggestion and the place it was made for."""

    scope: str
    window: Window
    suggestion: Suggestion


class Table:
    """Suggestions by document, newest last."""

    # The mutable state is the documents' entries; it changes in `put` and `forget` only.

    def __init__(self) -> None:
        self._documents: OrderedDict[str, deque[Shown]] = OrderedDict()

    def put(self, uri: str, shown: Shown) -> None:
        """Remember what was made for a place in `uri`."""
        entries = self._documents.setdefault(uri, deque(maxlen=PER_DOCUMENT))
        self._documents.move_to_end(uri)
        entries.append(shown)
        if len(self._documents) > DOCUMENTS:
            self._documents.popitem(last=False)

    def typed_through(self, uri: str, scope: str, window: Window) -> Suggestion | None:
        """What is left of the newest suggestion that the user has typed a part of."""
        for shown in reversed(self._documents.get(uri, ())):
            if shown.scope != scope or shown.window.suffix != window.suffix:
                continue
            rest = continues(shown.window, shown.suggestion.text, window)
            if rest:
                return msgspec.structs.replace(shown.suggestion, text=rest)
        return None

    def forget(self, uri: str) -> None:
        """Drop what was kept for a closed document."""
        self._documents.pop(uri, None)


def continues(then: Window, text: str, now: Window) -> str | None:
    """What of `text`, made for `then`, is still to come at `now`; None if something else was typed."""
    prefix = now.prefix
    for n_typed in range(min(LOOK_BACK, len(text)) + 1):
        if n_typed and not (text[n_typed - 1] == prefix[-1:] and prefix.endswith(text[:n_typed])):
            continue
        if _same_end(then.prefix, prefix[: len(prefix) - n_typed], whole=then.whole_prefix and now.whole_prefix):
            return text[n_typed:]
    return None


def _same_end(a: str, b: str, *, whole: bool) -> bool:
    if len(a) == len(b):
        return a == b
    if whole:
        return False
    # The windows start at different lines of the same document.
    short, long = sorted((a, b), key=len)
    return len(short) >= _ENOUGH and long.endswith(short)
