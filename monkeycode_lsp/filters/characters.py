"""Characters that belong into no source text."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BROKEN = "\ufffd"


def with_lf_only(text: str, _window: Window) -> str:
    """Line ends as everywhere inside: LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_controls(text: str, _window: Window) -> str:
    """No NUL, no escape sequences, no byte order mark in front."""
    return _CONTROLS.sub("", text).removeprefix("\ufeff")


def without_broken_end(text: str, window: Window) -> str:
    """Cut where bytes were not text; the user's own replacement characters are left to the user."""
    if _BROKEN in window.prefix or _BROKEN in window.suffix:
        return text
    return text.partition(_BROKEN)[0]
