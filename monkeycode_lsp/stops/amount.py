"""How much is wanted at a cursor."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window
from monkeycode_lsp.syntax import grammars

MOST_LINES = 12
MOST_STATEMENT_LINES = 6
"""A single statement may go on while a bracket is open."""
MOST_BLANK = 3
PATIENCE = 5

OPENS = re.compile(r"(?:[:{(\[]|=>|->|\bdo|\bthen|\bbegin|\belse)\s*\Z")
_WORDY = frozenset({"ruby", "lua", "shellscript", "bash", "sh", "zsh", "fish", "elixir", "julia", "haskell", "pascal", "vb", "sql"})
"""Languages in which a word alone opens a block."""
_BRACED = frozenset(
    {"javascript", "javascriptreact", "typescript", "typescriptreact", "c", "cpp", "csharp", "java", "go", "rust", "php", "swift", "kotlin"}
)
_BESIDE = frozenset(")]}>\"'`:;,{ \t")
"""What may stand after the cursor without being code: closers, most of them put there by the editor."""


_STATEMENT = re.compile(
    r"(?:async\s+)?(?:if|elif|else|for|while|try|except|finally|with|def|class|match|case)\b.*:\Z|\b(?:else|do|then|begin)\Z"
)
_LABEL = re.compile(r"(?:case\b.*|default|public|private|protected|[A-Za-z_]\w*)\s*:\Z")
_ELSE = re.compile(r"(?:\}\s*)?else\Z")
_HEAD_LINES = 40
"""A header of more lines than that is read as what it ends with."""


class Plan(msgspec.Struct, frozen=True):
    """How much is wanted."""

    single: bool
    """One statement; else as much of the block as there is."""
    max_lines: int
    patience: int = PATIENCE
    """Lines that a model may go on beyond a likely end before it is taken for one that does not know how to end."""
    asks: bool = False
    """Whether the cursor ends a comment that may ask for code: what then begins on the next line is a block."""


def plan(window: Window, mode: Literal["auto", "always", "never"], *, accepted: bool = False, patience: int = PATIENCE) -> Plan:
    """One line where there is code after the cursor or a statement has begun; several in an empty place.

    `accepted`: the user has just taken a suggestion that ends at the cursor, so what comes next begins anew.
    """
    if mode == "never":
        return Plan(single=True, max_lines=1)
    several = Plan(single=False, max_lines=MOST_LINES, patience=patience)
    before, after = window.line_before.strip(), window.line_after.strip()
    # `{‸}` wants a body; `print(‸)` wants what goes between.
    is_body = not set(after) - _BESIDE and before.endswith("{") and after.startswith("}")
    if mode == "always" or is_body or not (before or after):
        return several
    if after:
        return Plan(single=True, max_lines=1)
    if comments.at_cursor(window):
        is_alone = before.startswith(comments.marker(window.language) or "\n") and not comments.in_block(window)
        return Plan(single=True, max_lines=MOST_LINES if is_alone else 1, patience=patience, asks=is_alone)
    if accepted or opens(window):
        return several
    return Plan(single=True, max_lines=MOST_STATEMENT_LINES)


def opens(window: Window) -> bool:
    """Whether the text before the cursor ends with what opens a block, a list or a call."""
    before = window.line_before.strip()
    if not OPENS.search(before) or comments.inside(window) != "code":
        return False
    language = window.language
    if before.endswith("else") and language not in _WORDY:
        return _ELSE.match(before) is not None
    if not before.endswith(":"):
        return True
    if language == "python":
        by_tree = _heads_a_body(window.prefix)
        return _STATEMENT.match(before) is not None if by_tree is None else by_tree
    return language not in _BRACED or _LABEL.match(before) is not None


@lru_cache(maxsize=4)
def _heads_a_body(prefix: str) -> bool | None:
    """Whether Python takes a statement after the prefix for the body of what it heads; None: no grammar."""
    lines = prefix.split("\n")[-_HEAD_LINES:]
    text = "\n".join(lines)
    at = len(text.encode("utf-8", errors="replace")) + 1
    tree = grammars.parse(f"{text} pass\n", "python")
    if tree is None:
        return None
    node = tree.root_node.descendant_for_byte_range(at, at + 1)
    while node is not None and node.start_byte >= at:
        if node.type == "pass_statement":
            return node.parent is not None and node.parent.type == "block"
        node = node.parent
    return False
