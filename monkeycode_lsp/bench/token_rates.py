"""What `context/tokens` begins with: pieces for each token of real code, by kind of file.

`python -m monkeycode_lsp.bench.token_rates MODEL FOLDER…` prints the table.  A window of a hundred lines is taken of up to so many
files of each kind; deterministic for the same folders.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.context import tokens
from monkeycode_lsp.engines.local.decoder import Options

_SEED = 20_261_130
_MOST_FILES = 120
_LINES = 100
_MOST_CHARACTERS = 8_000
_LEAST_CHARACTERS = 300
_LARGEST_BYTES = 300_000
Count = Callable[[Sequence[str]], list[int]]


class Rate(msgspec.Struct, frozen=True):
    """Of one kind of file."""

    suffix: str
    n_files: int
    characters: float
    """For each token."""
    pieces: float
    """For each token."""
    error: float
    """Mean distance of one window's estimate from the truth, once the kind's rate is known."""
    by_line: float
    """Tokens of the lines one by one, as a share of those of the whole."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    from monkeycode_lsp.engines.local.llama.decoder import LlamaDecoder  # noqa: PLC0415 - loads the native library

    model, *folders = sys.argv[1:] if argv is None else argv
    decoder = LlamaDecoder(Options(model=Path(model), context_tokens=256, slots=1, threads=1, drafts=False))
    decoder.build()
    decoder.load()
    try:
        for rate in measure(_files(folders), decoder.count):
            words = f"{rate.characters:.2f} characters, {rate.pieces:.3f} pieces a token, error {rate.error:.1%}, lines {rate.by_line:.3f}"
            sys.stdout.write(f"{rate.suffix:8} {rate.n_files:4} files  {words}\n")
    finally:
        decoder.close()
    return 0


def measure(files: Iterable[Path], count: Count) -> Iterator[Rate]:
    """The rates of each kind, by its suffix; kinds of fewer than two usable files are left out."""
    kinds: dict[str, list[Path]] = {}
    for path in sorted(files):
        kinds.setdefault(path.suffix.lower(), []).append(path)
    chance = random.Random(_SEED)  # noqa: S311 - the same sample on every run
    for suffix, paths in sorted(kinds.items()):
        chance.shuffle(paths)
        windows = [text for path in paths[:_MOST_FILES] if (text := _window(path, chance))]
        if len(windows) > 1:
            yield _rate(suffix, windows, count)


def _rate(suffix: str, windows: Sequence[str], count: Count) -> Rate:
    true = count(windows)
    by_line = [sum(count(text.splitlines(keepends=True))) for text in windows]
    pieces = [tokens.shape_of_lines(text)[0] / n_tokens for text, n_tokens in zip(windows, true, strict=True)]
    mean = statistics.mean(pieces)
    return Rate(
        suffix=suffix,
        n_files=len(windows),
        characters=sum(map(len, windows)) / sum(true),
        pieces=mean,
        error=statistics.mean(abs(1 - one / mean) for one in pieces),
        by_line=sum(by_line) / sum(true),
    )


def _window(path: Path, chance: random.Random) -> str:
    """Some lines of it; empty: it has too few, or letters beyond ASCII, which have a rate of their own."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    start = chance.randrange(max(1, len(lines) - _LINES))
    text = "".join(lines[start : start + _LINES])[:_MOST_CHARACTERS]
    return text if text.isascii() and len(text) >= _LEAST_CHARACTERS else ""


def _files(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for path in (Path(parent, name) for name in names if "." in name and ".min." not in name):
                if path.is_file() and path.stat().st_size <= _LARGEST_BYTES:
                    yield path


if __name__ == "__main__":
    raise SystemExit(main())
