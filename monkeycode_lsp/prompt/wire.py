"""A prompt as one string, for engines that read control tokens out of text.

Whatever in the user's text looks like a control token gets one invisible character after its
first one, so that no tokenizer takes it for one; the answer is freed of it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from monkeycode_lsp.domain import Control, Plain, Prompt
from monkeycode_lsp.prompt.families import FAMILIES

_SHAPES = (
    r"<\|[^\s<>|]{1,64}\|?>",  # <|im_start|>, and <|tool_call>, which a few vocabularies have
    r"<\uff5c[^\s<>]{1,64}>",  # DeepSeek's, with full-width bars
    r"<\[[^\s<>\[\]]{1,64}\]>",  # Seed-Coder's
    r"</?(?:PRE|SUF|MID|EOT|PAD|REPO|FILL_ME)>",
    r"</?(?:fim|repo|file|gh|issue|jupyter|commit|start|end)[_-]\w{1,32}>",
    r"</?(?:s|bos|eos|pad|unk|mask|filename|reponame|think|tool_call|tool_response|sop|eop)>",
    r"\[/?(?:PREFIX|SUFFIX|MIDDLE|INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END|THINK)\]",
    r"\[gMASK\]",
    r"<unused\d{1,4}>",
)


def _known() -> Iterable[str]:
    for family in FAMILIES:
        yield from msgspec.structs.astuple(family.markers)
        yield from (text for text in family.stop if text.startswith("<"))


_SHAPED = re.compile("|".join(_SHAPES))
_LOOKS_LIKE_CONTROL = re.compile(
    "|".join([*_SHAPES, *sorted({re.escape(text) for text in _known() if text and not _SHAPED.search(text)}, reverse=True)])
)

_INVISIBLE = "\u2060\u200b\u200c\u200d\u2061\u2062\u2063\u2064"


class Wire(msgspec.Struct, frozen=True):
    """A prompt for the wire, and the way back for its answer."""

    text: str
    inserted: str = ""
    """The invisible character that was put into the user's text; empty: nothing looked like a control token."""

    def restore(self, answer: str) -> str:
        """Undo it.  Works on any piece of a stream."""
        return answer.replace(self.inserted, "") if self.inserted else answer


def as_text(prompt: Prompt) -> Wire:
    """Control tokens raw, plain text so that no part of it can be taken for one."""
    pattern = _pattern(prompt)
    if not any(isinstance(segment, Plain) and pattern.search(segment.text) for segment in prompt.segments):
        return Wire("".join(segment.text for segment in prompt.segments))
    inserted = _absent("".join(segment.text for segment in prompt.segments))

    def neutral(match: re.Match[str]) -> str:
        text: str = match.group()
        return f"{text[0]}{inserted}{text[1:]}"

    pieces = [segment.text if isinstance(segment, Control) else pattern.sub(neutral, segment.text) for segment in prompt.segments]
    return Wire("".join(pieces), inserted)


def _pattern(prompt: Prompt) -> re.Pattern[str]:
    """What must not stand in plain text: the shapes that we know, and this prompt's own control tokens."""
    own = {segment.text for segment in prompt.segments if isinstance(segment, Control) and not _LOOKS_LIKE_CONTROL.search(segment.text)}
    if not own:
        return _LOOKS_LIKE_CONTROL
    return re.compile("|".join([*map(re.escape, sorted(own, reverse=True)), _LOOKS_LIKE_CONTROL.pattern]))


def _absent(text: str) -> str:
    """An invisible character that `text` does not hold.  Who holds all of them loses one in the answer, not more."""
    present = set(text)
    candidates: list[str] = [*_INVISIBLE, *map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))]
    return next((char for char in candidates if char not in present), candidates[0])
