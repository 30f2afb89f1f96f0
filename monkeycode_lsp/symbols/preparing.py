"""What a text is parsed as: C headers are often C++, and export macros confuse its grammar.

The prepared text is as long as the original, so that offsets hold for both.
"""

from __future__ import annotations

import re

_IS_CPP = re.compile(r"(?m)^[ \t]*+(?:namespace\b|template[ \t]*+<|class[ \t]++\w|using[ \t]++\w|(?:public|private|protected)[ \t]*+:)")
_EXPORT = re.compile(
    r"\b(?:class|struct|enum|union)[ \t]++(?P<macro>[A-Z][A-Z0-9_]{2,60}(?:\([^()\n]{0,80}\))?)(?=[ \t]++[A-Za-z_]\w*+[ \t]*+(?:final[ \t]*+)?[:{\n])"
)


def prepared(text: str, language: str) -> tuple[str, str]:
    """The text to parse and the language to parse it as."""
    if language == "c" and _IS_CPP.search(text):
        language = "cpp"
    if language == "cpp":
        text = _EXPORT.sub(_blanked, text)
    return text, language


def _blanked(found: re.Match[str]) -> str:
    macro = found["macro"]
    return found[0][: -len(macro)] + " " * len(macro)
