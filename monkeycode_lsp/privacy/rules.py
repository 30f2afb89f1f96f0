"""How far the text of each document may go, as the ignore files say now.

Nothing is read on the event loop.  What is not known yet is not served; what was known is good for two seconds, or until
an ignore file is said to have changed.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from monkeycode_lsp import threads
from monkeycode_lsp.context import secrets
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Verdict, in_words
from monkeycode_lsp.privacy import ignore_files, reading
from monkeycode_lsp.privacy.ignore_files import Read
from monkeycode_lsp.privacy.reading import Found

FRESH_S = 2.0
WITHIN_S = 0.25
"""So long an ask waits for a disk; on a quiet machine it is a millisecond."""
_MOST = 1_024


class _Known(msgspec.Struct, frozen=True):
    verdict: Verdict
    at: float


class Rules:
    """Of one configuration."""

    # The mutable state is what is known of documents, the ignore files as they were read last, who looks just now, of which
    # broken files the user was told, and how often something changed; it changes in `changed`, `_look` and `_tell`.

    def __init__(
        self,
        names: Sequence[str],
        *,
        report: Callable[[str], None],
        secret_files: Sequence[str] = (),
        folders: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names`: of the ignore files; `report` tells the user something once; `folders`: those of the workspace, by URI."""
        self._names = ignore_files.usable(names)
        self._secret_files = tuple(secret_files)
        self._report = report
        self._folders = folders
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._files: dict[Path, Read] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._told: dict[Path, str] = {}
        self._off = threads.Together("ignore files")
        self._n_changes = 0

    def known(self, uri: str) -> Verdict | None:
        """What is known of a document and fresh; None: `judge` has to look.  Costs nothing."""
        known = self._known.get(uri)
        return known.verdict if known is not None and self._clock() - known.at <= FRESH_S else None

    async def judge(self, uri: str, workspace: str = "", *, within_s: float = WITHIN_S) -> Verdict:
        """What the ignore files say of a document; NEVER, and why, if they cannot be read in time for the first time."""
        verdict = self.known(uri)
        if verdict is not None:
            return verdict
        looking = self._looking.get(uri)
        if looking is None:
            looking = self._looking[uri] = asyncio.create_task(self._look(uri, workspace))
        await asyncio.wait({looking}, timeout=within_s)
        known = self._known.get(uri)
        return known.verdict if known is not None else _never("its ignore files have not been read yet")

    def is_ignore_file(self, uri: str) -> bool:
        """Whether a document is one whose patterns count, so that a change of it changes what is served."""
        try:
            return unquote(urlsplit(uri).path).rpartition("/")[2] in self._names
        except ValueError:
            return False

    def changed(self) -> None:
        """An ignore file was saved, created or deleted: nothing that is known counts any more."""
        self._n_changes += 1
        self._known.clear()
        self._files.clear()
        self._looking.clear()

    async def aclose(self) -> None:
        """Wait for no disk."""
        for looking in self._looking.values():
            looking.cancel()

    async def _look(self, uri: str, workspace: str) -> None:
        n_changes, found = self._n_changes, list[Found]()
        folders = [folder for one in dict.fromkeys((workspace, *self._folders())) if (folder := reading.folder_of(one)) is not None]
        try:
            places = reading.places(uri, folders)
            if places:
                found = await self._off.run(partial(_looked, places, folders, self._names, dict(self._files)))
            verdict = _strictest(found)
            if any(secrets.is_secret(one.real, self._secret_files) for one in found):
                verdict = _never("the name of the file that it is, or is a link to, says that it holds secrets")
        except (OSError, ValueError):
            verdict = _never("its name or its folder cannot be read")
        if n_changes != self._n_changes:
            return
        self._looking.pop(uri, None)
        self._known[uri] = _Known(verdict, self._clock())
        self._known.move_to_end(uri)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        for one in found:
            if len(self._files) > _MOST:
                self._files.clear()
            self._files.update(one.files)
            self._tell(one.files)

    def _tell(self, files: dict[Path, Read]) -> None:
        for path, file in ((path, read.file) for path, read in files.items()):
            if file.fault is None:
                self._told.pop(path, None)
            elif self._told.get(path) != file.fault.why:
                self._told[path] = file.fault.why
                self._report(f"{in_words(file)[:1].upper()}{in_words(file)[1:]}. Until that is mended, nothing below its folder is served.")


def _looked(places: Iterable[Path], folders: Sequence[Path], names: Sequence[str], kept: dict[Path, Read]) -> list[Found]:
    return [reading.look(place, reading.outermost(place, folders), names, kept) for place in places]


def _strictest(found: Sequence[Found]) -> Verdict:
    """Of all places where a document may be."""
    verdict = max((one.verdict for one in found), key=lambda verdict: verdict.level, default=ANYWHERE)
    return msgspec.structs.replace(verdict, is_quoted=all(one.verdict.is_quoted for one in found))


def _never(why: str) -> Verdict:
    return Verdict(Level.NEVER, is_quoted=False, why=why)
