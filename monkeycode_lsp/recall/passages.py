"""The text in which drafts are looked for, each kind within its bounds: what was said, open documents, the window itself."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall.blocks import Block
from monkeycode_lsp.recall.shape import LONGEST

MOST_LINES = 20_000
"""Of all documents together."""
DOCUMENT_LINES = 4_000
GROUPS = 16
"""Pairs of scope and language of which suggestions are kept."""
PASSAGES = 64
"""Suggestions in one block; two blocks of each group are kept."""
SUGGESTION_LINES = 20
_CONTEXT_LINES = 6
_WINDOW_LINES = 600


class Said:
    """Finished suggestions, each with the lines above it."""

    # The mutable state is the blocks of each group, the newest last, and how many suggestions that one holds; it
    # changes in `add` only.

    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[str, str], deque[Block]] = OrderedDict()
        self._n_newest: dict[tuple[str, str], int] = {}

    def add(self, scope: str, window: Window, text: str) -> None:
        """Keep it; the oldest ones make room."""
        group = (scope, window.language)
        blocks = self._groups.setdefault(group, deque(maxlen=2))
        self._groups.move_to_end(group)
        n = self._n_newest.get(group, PASSAGES)
        if n >= PASSAGES:
            blocks.append(Block())
            n = 0
        self._n_newest[group] = n + 1
        above = window.prefix[-_CONTEXT_LINES * LONGEST :].split("\n")[:-1][-_CONTEXT_LINES:]
        blocks[-1].add((*above, *f"{window.line_before}{text}{window.line_after}".split("\n")[:SUGGESTION_LINES]))
        blocks[-1].end()
        if len(self._groups) > GROUPS:
            oldest, _ = self._groups.popitem(last=False)
            del self._n_newest[oldest]

    def blocks(self, scope: str, language: str) -> Iterator[Block]:
        """The newest first."""
        return reversed(self._groups.get((scope, language), deque()))


class _Document(msgspec.Struct):
    language: str
    digest: int
    n_lines: int
    unread: deque[str]
    block: Block


class Documents:
    """Texts of open documents, read slice by slice."""

    # The mutable state is the documents, the latest learned last, and how many lines they have together.  It changes
    # in `learn`, `read` and `forget` only.

    def __init__(self) -> None:
        self._documents: OrderedDict[tuple[str, str], _Document] = OrderedDict()
        self._n_lines = 0

    @property
    def n_lines(self) -> int:
        return self._n_lines

    def learn(self, scope: str, uri: str, language: str, lines: Sequence[str]) -> None:
        """Take a text to be read, in place of what the document was before."""
        taken = [line.rstrip("\r\n") for line in islice(lines, DOCUMENT_LINES)]
        digest = hash(tuple(taken))
        known = self._documents.get((scope, uri))
        if known is not None and (known.digest, known.language) == (digest, language):
            self._documents.move_to_end((scope, uri))
            return
        self._drop((scope, uri))
        self._documents[scope, uri] = _Document(language, digest, len(taken), deque(taken), Block())
        self._n_lines += len(taken)
        while self._n_lines > MOST_LINES:
            self._drop(next(iter(self._documents)))

    def read(self, n_lines: int) -> bool:
        """Read a little of what was learned, the latest first; whether something is left."""
        for document in reversed(self._documents.values()):
            n = min(n_lines, len(document.unread))
            document.block.add([document.unread.popleft() for _ in range(n)])
            n_lines -= n
            if document.unread:
                return True
        return False

    def forget(self, uri: str) -> None:
        """The document is no longer open."""
        for key in [key for key in self._documents if key[1] == uri]:
            self._drop(key)

    def blocks(self, scope: str, language: str) -> Iterator[Block]:
        """The latest learned first."""
        for (of_scope, _), document in reversed(self._documents.items()):
            if of_scope == scope and document.language == language:
                yield document.block

    def _drop(self, key: tuple[str, str]) -> None:
        document = self._documents.pop(key, None)
        if document is not None:
            self._n_lines -= document.n_lines


class Surroundings:
    """The window's own lines, without the cursor's: read once while the user types in one line."""

    # The mutable state is the latest text before and after the cursor's line with their blocks; it changes in `of` only.

    def __init__(self) -> None:
        self._before, self._after = "", ""
        self._block_before, self._block_after = Block(), Block()

    def of(self, window: Window) -> tuple[Block, Block]:
        """The lines above and those below the cursor's line."""
        before = window.prefix[: window.prefix.rfind("\n") + 1]
        if before != self._before:
            if not (self._before and before.startswith(self._before)):
                self._before, self._block_before = "", Block()
            self._block_before.add(before[len(self._before) :].split("\n")[:-1][-_WINDOW_LINES:])
            self._before = before
        after = window.suffix[len(window.line_after) + 1 :]
        if after != self._after:
            self._after, self._block_after = after, Block()
            self._block_after.add(after.split("\n")[:_WINDOW_LINES])
        return self._block_before, self._block_after
