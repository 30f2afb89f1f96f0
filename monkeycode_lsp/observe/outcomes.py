"""The outcomes of the last asks: in memory for the editor's command, in a file for `monkeycode why`."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.domain import Fate, Outcome, OutcomeKind

logger = logging.getLogger(__name__)

FOLDER = "outcomes"
"""Below the user's state folder."""
MOST = 1_000
_FILES_KEPT = 8
_MOST_BYTES = 1_048_576
"""A file that has grown to this is written anew; it has several versions of most outcomes by then."""
_MOST_EARLY = 64
_decode = msgspec.json.Decoder(Outcome).decode
_encode_lines = msgspec.json.Encoder().encode_lines


class Outcomes:
    """The last thousand, newest last.  `save` is called off the loop and rarely, by one thread at a time."""

    # The mutable state is the ring, what of it the file does not have as it is now, how large the file is (below 0: it is
    # not ours yet), and what is known of asks that are not in the ring: mostly of those that are still being answered.

    def __init__(self, folder: Path | None = None) -> None:
        self._ring: deque[Outcome] = deque(maxlen=MOST)
        self._unsaved: dict[int, Outcome] = {}
        self._n_bytes = -1
        self._early: dict[int, dict[str, Any]] = {}
        self._folder = folder

    def add(self, outcome: Outcome) -> None:
        """Record how one ask ended."""
        outcome = msgspec.structs.replace(outcome, **self._early.pop(outcome.id, {}))
        self._ring.append(outcome)
        self._unsaved[outcome.id] = outcome
        logger.debug(
            "ask %d: %s (%s), %.1f ms %s, prefix %d, suffix %d, shown %d",
            outcome.id, outcome.kind.value, outcome.reason, outcome.total_ms,
            {stage: round(ms, 1) for stage, ms in outcome.stages_ms.items()}, outcome.n_prefix, outcome.n_suffix, outcome.n_shown,
        )  # fmt: skip

    def fated(self, ask_id: int, fate: Fate, n_taken: int) -> None:
        """What became of the suggestion of that ask; `n_taken` characters of it were taken."""
        self._correct(ask_id, fate=fate.value, n_taken=n_taken, accepted=fate is Fate.ACCEPTED)

    def kept(self, ask_id: int, after_s: int, share: float) -> None:
        """So much of what was taken of that ask's suggestion was still there after so long."""
        before = next((outcome.kept for outcome in self._ring if outcome.id == ask_id), {})
        self._correct(ask_id, kept={**before, str(after_s): round(share, 3)})

    def unseen(self, ask_id: int) -> None:
        """The suggestion of that ask never came to the screen."""
        self._correct(
            ask_id, kind=OutcomeKind.SUPERSEDED, reason="The text had moved on when the answer was there.", origin="", n_shown=0, fate=""
        )

    def _correct(self, ask_id: int, **changes: Any) -> None:
        for back, outcome in enumerate(reversed(self._ring), 1):  # most are about the newest
            if outcome.id == ask_id:
                self._ring[-back] = self._unsaved[ask_id] = msgspec.structs.replace(outcome, **changes)
                return
        self._early[ask_id] = {**self._early.pop(ask_id, {}), **changes}
        if len(self._early) > _MOST_EARLY:
            del self._early[next(iter(self._early))]

    def last(self, n: int = MOST) -> list[Outcome]:
        """The newest `n`, newest last."""
        return list(self._ring)[-n:] if n > 0 else []

    def save(self) -> None:
        """Add what has changed to the file.  Blocking; a folder that cannot be written costs nothing."""
        if not self._unsaved or self._folder is None:
            return
        changed, self._unsaved = self._unsaved, {}
        file = self._folder / f"{os.getpid()}.jsonl"
        with contextlib.suppress(OSError):
            data = _encode_lines(list(changed.values()))
            if 0 <= self._n_bytes <= _MOST_BYTES - len(data):
                with file.open("ab") as stream:
                    stream.write(data)
                self._n_bytes += len(data)
            else:
                self._write_anew(file)

    def _write_anew(self, file: Path) -> None:
        """Also where there is a file of a process that had our number."""
        data = _encode_lines(list(self._ring))
        part = folders.private(file.parent) / f".{os.getpid()}.part"
        part.write_bytes(data)
        part.replace(file)
        self._n_bytes = len(data)
        for old in sorted(file.parent.glob("*.json*"), key=lambda file: file.stat().st_mtime)[:-_FILES_KEPT]:
            old.unlink()


def load(folder: Path) -> list[Outcome]:
    """What every server of this user has saved, oldest first.  Damaged lines are passed over."""
    found: list[Outcome] = []
    for file in folder.glob("*.jsonl"):
        with contextlib.suppress(OSError):
            found.extend(_newest(file.read_bytes()))
    return sorted(found, key=lambda outcome: outcome.at)


def _newest(data: bytes) -> list[Outcome]:
    """The last version of each."""
    known: dict[int, Outcome] = {}
    for line in data.splitlines():
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            outcome = _decode(line)
            known[outcome.id] = outcome
    return list(known.values())
