"""What the user edited lately, as the code that stands there now.

For each document the regions are kept in which it differs from what it was when it was opened.  Typing
widens a region, undoing it makes it vanish, and what was deleted is never shown: a region is read when it is
asked for.  A key costs what the regions of one document cost, and those are few.

Read `Edits` first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import msgspec

from monkeycode_lsp.context.place import Place
from monkeycode_lsp.domain import Snippet
from monkeycode_lsp.syntax.language_ids import family
from monkeycode_lsp.text import lf

MOST_DOCUMENTS = 20
"""That have edits; the one that was edited longest ago is taken as it is now."""
MOST_REGIONS = 16
"""Of one document; the oldest ones are forgotten."""
QUOTED_LINES = 10
AROUND_LINES = 2
"""Lines around an edit that are quoted with it."""
NEAR_LINES = 30
"""An edit so near to the cursor is in the window, or as good as."""
_JOIN_LINES = 2
"""Regions that are no farther from one another are one."""
_MOST_EDITED_LINES = 60
"""A larger region was not edited by hand: a formatter, a paste, a generated file."""
_LONGEST_LINE = 400
_KEPT_LINES = 5_000
"""A closed document that is longer is forgotten."""
_FOREIGN = 0.7
"""What an edit in another language is worth."""
_FADES = 0.85
"""What an edit is worth beside the one that came after it."""


class _Region(msgspec.Struct):
    """Lines that differ: `first` to `stop` now, `old_first` to `old_stop` before."""

    first: int
    stop: int
    old_first: int
    old_stop: int
    at: int
    """The line of the last edit."""
    order: int
    """Of that edit, among all."""


class _Document(msgspec.Struct):
    path: str
    language: str
    before: list[str]
    """The lines as they were; a region that was forgotten has become part of them."""
    lines: Sequence[str]
    """As they are: the document's own list while it is open."""
    regions: list[_Region]
    """From top to bottom."""
    is_open: bool = True


class Edits:
    """The edits of all documents, as the editor's notifications tell them."""

    # The mutable state is the documents, the one edited last at the end, and how many edits there were; it changes in the
    # methods named after notifications only.  `lines` are looked at later, so each change of a document must be noted.

    def __init__(self) -> None:
        self._documents: OrderedDict[str, _Document] = OrderedDict()
        self._n_edits = 0

    def opened(self, uri: str, path: str, language: str, lines: Sequence[str]) -> None:
        """A document came.  What is remembered of it is kept if it still says the same."""
        known = self._documents.get(uri)
        if known is not None and not known.is_open and list(known.lines) == list(lines):
            known.path, known.language, known.lines, known.is_open = path, language, lines, True
            return
        self._documents[uri] = _Document(path, language, list(lines), lines, [])

    def note(self, uri: str, lines: Sequence[str], first: int, old_stop: int, new_stop: int) -> None:
        """Lines `first` to `old_stop` were replaced; they are now those from `first` to `new_stop` of `lines`."""
        document = self._documents.get(uri)
        if document is None:
            return
        document.lines = lines
        self._n_edits += 1
        _widen(document, first, max(first, old_stop), max(first, new_stop), self._n_edits)
        self._documents.move_to_end(uri)
        self._make_room()

    def replaced(self, uri: str, lines: Sequence[str]) -> None:
        """The whole text came anew, in a new list; what it has in common with the old one is no edit."""
        document = self._documents.get(uri)
        if document is None:
            return
        old, shorter = document.lines, min(len(document.lines), len(lines))
        head = next((at for at in range(shorter) if old[at] != lines[at]), shorter)
        tail = next((at for at in range(shorter - head) if old[-1 - at] != lines[-1 - at]), shorter - head)
        if head < max(len(old), len(lines)) - tail:
            self.note(uri, lines, head, len(old) - tail, len(lines) - tail)
        else:
            document.lines = lines

    def closed(self, uri: str) -> None:
        """The document was closed; its edits are remembered as they were then."""
        document = self._documents.get(uri)
        if document is None:
            return
        if not document.regions or len(document.lines) > _KEPT_LINES:
            del self._documents[uri]
            return
        document.lines, document.is_open = list(document.lines), False

    def forget(self, uri: str) -> None:
        """The file is gone, or another program changed it while it was closed."""
        document = self._documents.get(uri)
        if document is not None and not document.is_open:
            del self._documents[uri]

    def recent(self, place: Place, *, most: int = 8) -> list[Snippet]:
        """The newest edits that are not near the cursor, the latest first."""
        found: list[Snippet] = []
        newest = sorted(self._regions(), key=lambda entry: -entry[2].order)
        for uri, document, region in newest:
            if uri == place.uri and region.first - NEAR_LINES <= place.line < region.stop + NEAR_LINES:
                continue
            text = _quoted(document, region)
            if text and all(text != other.text for other in found):
                score = _FADES ** len(found) * (1.0 if family(document.language) == family(place.language) else _FOREIGN)
                found.append(Snippet(path=document.path, text=text, kind="edit", score=score))
            if len(found) == most:
                break
        return found

    def _regions(self) -> Iterator[tuple[str, _Document, _Region]]:
        for uri, document in self._documents.items():
            for region in document.regions:
                yield uri, document, region

    def _make_room(self) -> None:
        edited = [uri for uri, document in self._documents.items() if document.regions]
        for uri in edited[:-MOST_DOCUMENTS]:
            document = self._documents[uri]
            if document.is_open:
                document.before, document.regions = list(document.lines), []
            else:
                del self._documents[uri]


def _widen(document: _Document, first: int, old_stop: int, new_stop: int, order: int) -> None:
    """Put one change into the regions."""
    above: list[_Region] = []
    touched: list[_Region] = []
    below: list[_Region] = []
    for region in document.regions:
        if region.stop + _JOIN_LINES < first:
            above.append(region)
        elif region.first - _JOIN_LINES > old_stop:
            below.append(region)
        else:
            touched.append(region)
    shift = sum(region.old_stop - region.stop for region in above[-1:])
    # The change as one region: what it replaced stood so far up in the older text.
    moved = new_stop - old_stop
    start = min([first, *(region.first for region in touched)])
    end = max([old_stop, *(region.stop for region in touched)])
    end_shift = touched[-1].old_stop - touched[-1].stop if touched else shift
    joined = _Region(start, end + moved, start + shift, end + end_shift, max(first, new_stop - 1), order)
    for region in below:
        region.first += moved
        region.stop += moved
        region.at += moved
    document.regions = [*above, joined, *below]
    if len(document.regions) > MOST_REGIONS:
        _settle(document, min(document.regions, key=lambda region: region.order))


def _settle(document: _Document, region: _Region) -> None:
    """Forget a region: what stands there is what was there before."""
    document.before[region.old_first : region.old_stop] = document.lines[region.first : region.stop]
    longer = (region.stop - region.first) - (region.old_stop - region.old_first)
    document.regions.remove(region)
    for other in document.regions:
        if other.first >= region.stop:
            other.old_first += longer
            other.old_stop += longer


def _quoted(document: _Document, region: _Region) -> str:
    """The edited lines as they are now and a few around them; empty if there is nothing to be seen."""
    first, stop = region.first, region.stop
    if stop - first > _MOST_EDITED_LINES or stop - first == 0:
        return ""
    lines = document.lines
    if list(lines[first:stop]) == document.before[region.old_first : region.old_stop]:
        return ""  # undone
    if stop - first > QUOTED_LINES:
        first = max(first, min(region.at - QUOTED_LINES // 2, stop - QUOTED_LINES))
        stop = first + QUOTED_LINES
    room = QUOTED_LINES - (stop - first)
    first, stop = max(0, first - min(AROUND_LINES, room // 2)), stop + min(AROUND_LINES, room - room // 2)
    quoted = [lf(line[: _LONGEST_LINE + 3]).rstrip("\n") for line in lines[first:stop]]
    if not "".join(quoted).strip() or any(len(line) > _LONGEST_LINE or "\0" in line for line in quoted):
        return ""
    return "\n".join(quoted).strip("\n")
