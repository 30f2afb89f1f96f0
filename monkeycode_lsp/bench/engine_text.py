"""What the engine is asked in benchmarks: real code, the same on every run with the same Python."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Prompt, Window
from monkeycode_lsp.prompt import Family

_LEAST_BYTES = 24_000
_LICENCE = 2_000
"""Characters at a file's start that are licences and lists more often than code."""
_TOKEN_CHARACTERS = 4.3
"""Of Python code, roughly, in a vocabulary for code."""


def library() -> tuple[Path, ...]:
    """The larger files of the standard library, in a fixed order."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return tuple(path for path in files if not path.name.startswith("_") and path.stat().st_size >= _LEAST_BYTES)


def code(files: Sequence[Path], number: int, n_tokens: int) -> str:
    """About so many tokens of whole lines.  No two numbers begin alike."""
    n_characters = int(n_tokens * _TOKEN_CHARACTERS)
    lap, at = divmod(number, len(files))
    text = files[at].read_text(encoding="utf-8", errors="replace")
    start = text.find("\n", _LICENCE + lap * 3_000) + 1
    while len(text) < start + n_characters:
        at = (at + 1) % len(files)
        text += files[at].read_text(encoding="utf-8", errors="replace")
    end = text.rfind("\n", start, start + n_characters) + 1
    return f"# part {number}\n{text[start:end]}"


def ask(
    before: str,
    family: Family | None,
    *,
    max_tokens: int,
    session: str = "",
    draft: str = "",
    after: str = "\n",
    stop: tuple[str, ...] = (),
) -> Prompt:
    """A prompt whose cursor is behind `before`.  `stop` is in place of the family's texts: all systems end with the model's own tokens."""
    window = Window(prefix=before, suffix=after, language="python", path="bench.py")
    made = prompt.render(window, (), family, max_tokens=max_tokens, session=session, draft=draft)
    return msgspec.structs.replace(made, stop=stop)


HEADS = (
    "def read_settings(path, defaults):\n    ",
    "def merge_sorted(first, second):\n    ",
    "class Inventory:\n    def __init__(self, items):\n        ",
    "def parse_header(line):\n    ",
    "def write_report(rows, stream):\n    ",
    "def retry(function, attempts):\n    ",
    "def count_words(text):\n    ",
    "def flatten(tree):\n    ",
)
"""Beginnings that a model goes on with for a while."""
