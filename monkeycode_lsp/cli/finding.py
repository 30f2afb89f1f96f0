"""What one check of `monkeycode doctor` found."""

from __future__ import annotations

import enum

import msgspec


class State(enum.Enum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"
    """Nothing that is needed."""
    WARNING = "warning"
    """It works, and could work better."""
    BROKEN = "broken"
    """Suggestions do not come, or not as the user wants them."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """For people, and for programs with `--json`."""

    subject: str
    state: State
    found: str
    remedy: str = ""
