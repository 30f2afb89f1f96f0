"""Prompts for models that fill in the middle.

A prompt is a list of segments: control tokens and plain text.  Plain text never becomes a control
token, whatever it says.  Read `family`, then `families` (the data), then `rendering`.
"""

from __future__ import annotations

from monkeycode_lsp.prompt.detection import by_name, by_setting, by_vocabulary, markers_in
from monkeycode_lsp.prompt.families import FAMILIES
from monkeycode_lsp.prompt.family import Family, Files, Markers
from monkeycode_lsp.prompt.rendering import render
from monkeycode_lsp.prompt.wire import Wire, as_text

__all__ = ["FAMILIES", "Family", "Files", "Markers", "Wire", "as_text", "by_name", "by_setting", "by_vocabulary", "markers_in", "render"]
