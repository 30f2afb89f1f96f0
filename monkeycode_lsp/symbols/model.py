"""The values: what a file defines and what it imports."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["class", "function", "method", "constant", "type", "macro", "module"]
"""class: whatever has members (struct, interface, enum, trait …).  type: an alias.  module: a namespace."""

MAX_TEXT = 1500
MAX_LINES = 40


class Symbol(msgspec.Struct, frozen=True):
    """One definition."""

    name: str
    kind: Kind
    container: str
    """The class (or trait, namespace …) that holds it, innermost name only; empty at the top."""
    start_line: int
    end_line: int
    """Inclusive: the whole definition with its body, not only what `text` quotes."""
    text: str
    """What to show a model: dedented, at most `MAX_LINES` lines and `MAX_TEXT` characters, never empty.

    A short function whole, a longer one as its signature; a class as an outline of its members.
    """
    header: str = ""
    """Of a member: the first line of its class, and below it one step of the file's indentation, for where it is quoted alone.

    Empty where its own text says what it belongs to.
    """


class Import(msgspec.Struct, frozen=True):
    """One thing that a file imports from one module."""

    module: str
    """As written, without quotes: `a.b`, `./util`, `github.com/x/y/z`, `crate::a::b`, `sys/types.h`."""
    names: tuple[tuple[str, str], ...] = ()
    """(name there, name here) of each; ("*", "*") for all; empty: the module itself is what is imported."""
    alias: str = ""
    """What the module itself is called here; empty where the language or the line gives it no name."""
    level: int = 0
    """Python: number of leading dots.  Elsewhere 0."""
    line: int = 0
    """Where the statement begins, 0-based."""

    @property
    def here(self) -> tuple[str, ...]:
        """Every name that it brings into the file."""
        own = (self.alias,) if self.alias else ()
        return own + tuple(alias for _, alias in self.names if alias != "*")
