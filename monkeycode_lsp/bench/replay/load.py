"""Reads traces of real typing: `{startContent, endContent, txns: [{time, patches: [[position, deleted, inserted], …]}]}`.

What is loaded is whole: replaying it gives the text that the file says it ends with.
"""

from __future__ import annotations

import gzip
import math
import random
import stat
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from pathlib import Path

import msgspec

from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace

MOST_BYTES = 256 * 1024 * 1024
"""Of the unpacked file; years of typing are smaller."""
MOST_CHARACTERS = 8 * 1024 * 1024
"""Of the document, at any time."""
_GZIP = b"\x1f\x8b"
_SIGMA = 0.45
"""Spread of the spacing inside a second (log-normal); typing has runs and hesitations even there."""
_LEAST_GAP_S = 0.001
MOST_GAP_S = 600.0
"""A longer pause counts as this: whatever waits in the pipeline has ended by then, except that cached text goes out of date."""
_MOST_IN_A_SECOND = 60
"""Nobody types more; a trace that says so has no usable times."""
_PASTE_CHARACTERS = 200
"""A first transaction as long is the file that was opened, not typing."""
_LANGUAGES = {
    "c": "c", "cpp": "cpp", "cs": "csharp", "css": "css", "go": "go", "html": "html", "java": "java", "js": "javascript",
    "json": "json", "jsx": "javascriptreact", "kt": "kotlin", "lua": "lua", "md": "markdown", "php": "php", "py": "python",
    "rb": "ruby", "rs": "rust", "sh": "shellscript", "sql": "sql", "svelte": "svelte", "swift": "swift", "tex": "latex",
    "toml": "toml", "ts": "typescript", "tsx": "typescriptreact", "vue": "vue", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
_BY_NAME = {"svelte": "svelte", "rust": "rust", "json-crdt": "markdown", "automerge": "latex", "blog": "markdown"}
"""Traces that are named after what they are."""


class TraceError(ValueError):
    """The file cannot be replayed; the message says why, for the user."""


class _Transaction(msgspec.Struct, frozen=True):
    patches: tuple[Patch, ...]
    time: str | int | float | None = None
    """ISO 8601, or milliseconds since 1970."""


class _File(msgspec.Struct, frozen=True, rename="camel"):
    txns: tuple[_Transaction, ...]
    start_content: str = ""
    end_content: str | None = None
    kind: str = ""
    language: str = ""


def load(path: Path, *, seed: int = 0, language: str = "") -> Trace:
    """The trace in the file, with a time of its own for every key.  Raises `TraceError`.  Blocking file read.

    Times that are given in whole seconds are spread inside each second; `seed` decides how.  A pause of more than ten minutes
    counts as ten, so nothing that is cached for longer goes out of date in it.
    """
    file = _decode(path)
    if file.kind == "concurrent" or not file.txns:
        why = "several authors type at the same time in it" if file.txns else "nothing is typed in it"
        raise TraceError(f"{path.name} cannot be replayed: {why}.")
    start, transactions = _opened(file)
    transactions = [typed for typed in transactions if typed.patches]
    if not transactions:
        raise TraceError(f"{path.name} cannot be replayed: it is one paste and nothing is typed after it.")
    times = _spread([_seconds(path, transaction.time) for transaction in transactions], path, random.Random(seed))  # noqa: S311 - no secret
    keys = tuple(Key(at, transaction.patches) for at, transaction in zip(times, transactions, strict=True))
    _check(path, start, keys, file.end_content)
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return Trace(name=name, language=language or file.language or _language(name), start=start, keys=keys)


def _decode(path: Path) -> _File:
    data = _read(path)
    try:
        return msgspec.json.decode(data, type=_File)
    except UnicodeDecodeError as exc:
        raise TraceError(f"{path.name} is not a trace: it is not UTF-8 ({exc.reason} at byte {exc.start}).") from exc
    except msgspec.ValidationError as exc:
        raise TraceError(f"{path.name} is not a trace in the editing-traces format: {exc}.") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise TraceError(f"{path.name} is not a trace: it is damaged or not JSON ({exc}).") from exc


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe may never end, or never begin
            raise TraceError(f"{path} cannot be read: it is not a plain file.")
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            data = (gzip.GzipFile(fileobj=file) if packed else file).read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise TraceError(f"{path.name} is damaged: it cannot be unpacked ({exc}).") from exc
    except OSError as exc:
        raise TraceError(f"{path} cannot be read: {exc.strerror or exc}.") from exc
    if len(data) > MOST_BYTES:
        raise TraceError(f"{path.name} is too large: unpacked it has more than {MOST_BYTES // 1024 // 1024} MiB.")
    return data


def _opened(file: _File) -> tuple[str, Sequence[_Transaction]]:
    """The text that typing begins with, and what is typed: a first transaction may paste the whole file."""
    first = file.txns[0].patches
    if not file.start_content and len(first) == 1 and first[0].position == first[0].deleted == 0:
        pasted = first[0].inserted
        if len(pasted) >= _PASTE_CHARACTERS:
            return pasted, file.txns[1:]
    return file.start_content, file.txns


def _seconds(path: Path, time: str | float | None) -> float:
    try:
        if isinstance(time, str):
            moment = datetime.fromisoformat(time)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        seconds = math.nan if time is None else time / 1e3
    except (ValueError, OverflowError) as exc:
        raise TraceError(f"{path.name} cannot be replayed: {time!r} is not a time.") from exc
    if not math.isfinite(seconds):
        raise TraceError(f"{path.name} cannot be replayed: it does not say when each key was typed.")
    return seconds


def _spread(seconds: list[float], path: Path, chance: random.Random) -> list[float]:
    """One time for each key since the first, each later than the one before."""
    whole = all(second == int(second) for second in seconds)
    at, spread = 0.0, [0.0]
    for before, now in pairwise(_inside_seconds(seconds, path, chance) if whole else seconds):
        at += min(MOST_GAP_S, max(_LEAST_GAP_S, now - before))
        spread.append(at)
    return spread


def _inside_seconds(seconds: Iterable[float], path: Path, chance: random.Random) -> Iterable[float]:
    for second, group in groupby(seconds):
        n_keys = sum(1 for _ in group)
        if n_keys > _MOST_IN_A_SECOND:
            raise TraceError(f"{path.name} cannot be replayed: {n_keys} keys in one second are not typing; its times are of no use.")
        weights = [chance.lognormvariate(0.0, _SIGMA) for _ in range(n_keys + 1)]
        total, at = sum(weights), 0.0
        for weight in weights[:-1]:
            at += weight
            yield second + at / total


def _check(path: Path, start: str, keys: Iterable[Key], end: str | None) -> None:
    text = GapText(start)
    if "\r" in start:
        raise TraceError(f"{path.name} cannot be replayed: its lines end with CR; convert it to LF.")
    for index, key in enumerate(keys):
        for patch in key.patches:
            if patch.position < 0 or patch.deleted < 0 or patch.position + patch.deleted > len(text):
                raise TraceError(f"{path.name} is damaged: transaction {index + 1} edits what is not there (position {patch.position}).")
            if "\r" in patch.inserted:
                raise TraceError(f"{path.name} cannot be replayed: its lines end with CR; convert it to LF.")
            text.apply(patch)
        if len(text) > MOST_CHARACTERS:
            raise TraceError(f"{path.name} cannot be replayed: its document grows beyond {MOST_CHARACTERS // 1024 // 1024} Mi characters.")
    if end is not None and text.text != end:
        raise TraceError(f"{path.name} is damaged: replaying it does not give the text that it says it ends with.")


def _language(name: str) -> str:
    extension = name.rsplit(".", 1)[-1].lower()
    if extension in _LANGUAGES and extension != name:
        return _LANGUAGES[extension]
    return next((language for word, language in _BY_NAME.items() if word in name), "plaintext")
