"""What this user made of what was shown, as counts by model and by how likely it was taken to be; no text.

Windows share one file: each adds what it has seen itself to what the file says by then.  Invariant: a file that is
damaged, missing or cannot be written costs what was learnt, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from pathlib import Path

import msgspec

from monkeycode_lsp import folders

logger = logging.getLogger(__name__)

FILE = "silence.json"
"""Below the user's state folder."""
EDGES = (0.04, 0.08, 0.15, 0.25, 0.35, 0.5, 0.7)
"""Of the bins: the chance that a suggestion was given before anything was learnt of the user."""
N_BINS = len(EDGES) + 1
MOST = 200.0
"""Weight of a bin from which on older experience fades."""
MOST_MODELS = 32
_MOST_BYTES = 262_144

Count = tuple[float, float]
"""Weight of what was taken and of what was not."""


class Counts(msgspec.Struct, frozen=True):
    """Of one model."""

    bins: tuple[Count, ...] = ((0.0, 0.0),) * N_BINS

    @property
    def is_sound(self) -> bool:
        """Whether a program wrote it, and not an accident."""
        return len(self.bins) == N_BINS and all(0 <= part <= 2 * MOST for count in self.bins for part in count)

    def with_one(self, at: int, taken: float, left: float) -> Counts:
        """Another suggestion of bin `at`; what is old weighs less from `MOST` on."""
        before_taken, before_left = self.bins[at]
        whole = before_taken + before_left + taken + left
        fading = min(1.0, MOST / whole) if whole else 1.0
        count = ((before_taken + taken) * fading, (before_left + left) * fading)
        return Counts((*self.bins[:at], count, *self.bins[at + 1 :]))


class _Seen(msgspec.Struct, frozen=True):
    """One suggestion whose fate this process knows and the file does not."""

    model: str
    at: int
    taken: float
    left: float


class _File(msgspec.Struct, frozen=True):
    models: dict[str, Counts]
    """The one that learnt last is the last."""
    version: int = 1


class History:
    """Of one user.  `load` and `save` block and are called off the loop; the rest is quick."""

    # The mutable state is what is known of the models and what the file does not have yet; it changes in `learn`, `load`
    # and `save` only, under the lock.

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._models: dict[str, Counts] = {}
        self._unsaved: list[_Seen] = []

    def counts(self, model: str) -> Counts:
        """What is known of that model (its fingerprint)."""
        return self._models.get(_key(model), Counts())

    def learn(self, model: str, at: int, *, taken: float, left: float) -> None:
        """A suggestion of bin `at` was taken or left, with these weights."""
        seen = _Seen(_key(model), at, taken, left)
        with self._lock:
            _add(self._models, seen)
            self._unsaved.append(seen)

    def load(self) -> None:
        """Read what all windows have learnt so far."""
        if self._file is None:
            return
        models = _read(self._file)
        with self._lock:
            for seen in self._unsaved:
                _add(models, seen)
            self._models = models

    def save(self) -> None:
        """Add what was learnt here to the file, if there is anything."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, []
        if self._file is None or not unsaved:
            return
        models = _read(self._file)
        for seen in unsaved:
            _add(models, seen)
        with contextlib.suppress(OSError):
            folders.private(self._file.parent)
            part = self._file.with_name(f".{self._file.name}.{os.getpid()}.part")
            part.write_bytes(msgspec.json.encode(_File(models)))
            part.replace(self._file)
        with self._lock:
            for seen in self._unsaved:
                _add(models, seen)
            self._models = models


def _key(model: str) -> str:
    """A fingerprint may hold an address or a path."""
    return hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _add(models: dict[str, Counts], seen: _Seen) -> None:
    models[seen.model] = models.pop(seen.model, Counts()).with_one(seen.at, seen.taken, seen.left)
    if len(models) > MOST_MODELS:
        del models[next(iter(models))]


def _read(file: Path) -> dict[str, Counts]:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        known = msgspec.json.decode(data, type=_File).models if len(data) <= _MOST_BYTES else {}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        logger.info("What was learnt of the user's choices cannot be read, and is begun anew.")
        return {}
    sound = [(name, counts) for name, counts in known.items() if counts.is_sound]
    return dict(sound[-MOST_MODELS:])
