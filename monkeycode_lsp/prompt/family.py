"""The shape of a model family: its control tokens and where they stand.  Data is in `families`.

A template is text with holes.  `{prefix}` `{suffix}` `{path}` `{text}` `{repository}` `{language}` `{comment}`
are ordinary text, `{PRE}` `{SUF}` `{MID}` `{REPO}` `{SEP}` are the family's markers, and anything else in
braces is a control token by its own text, such as `{<|user|>}`.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Markers(msgspec.Struct, frozen=True):
    """The texts that a vocabulary gives its fill-in-the-middle tokens; empty: it has none."""

    prefix: str = ""
    suffix: str = ""
    middle: str = ""
    pad: str = ""
    repository: str = ""
    separator: str = ""


class Files(msgspec.Struct, frozen=True):
    """How other files are written before the current one.  All are templates."""

    each: str
    """One other file.  `{text}` has lost its last line ends."""
    head: str = ""
    """Before the first of them; left out where it names a repository and there is none."""
    current: str = ""
    """Before the current file, only where other files stand before it."""
    inside: bool = False
    """Whether all of this belongs into the prefix, behind its marker, and not before the first marker."""


class Family(msgspec.Struct, frozen=True):
    """How one family of models is asked to fill in the middle."""

    name: str
    markers: Markers
    order: Literal["psm", "spm"] = "psm"
    fim: str = ""
    """Template of the current file; empty: the plain one of `order`."""
    lead: str = ""
    """Template of what always comes first: a turn's header, a begin-of-text token that no tokenizer adds by itself."""
    files: Files = Files(each="{comment}\n{text}\n", inside=True)
    stop: tuple[str, ...] = ()
    """What ends an answer, as text."""
    names: str = ""
    """Regular expression of model names, lower case with `-` for every other separator; empty: never found by name."""
    architectures: tuple[str, ...] = ()
    """`general.architecture` of GGUF files that tell this family from others with the same markers."""

    @property
    def suffix_first(self) -> bool:
        """Whether the text after the cursor is read before the text that grows with every key."""
        return 0 <= self.template.find("{suffix}") < self.template.find("{prefix}")

    @property
    def template(self) -> str:
        """The current file's template."""
        if self.fim:
            return self.fim
        return "{PRE}{prefix}{SUF}{suffix}{MID}" if self.order == "psm" else "{SUF}{suffix}{PRE}{prefix}{MID}"
