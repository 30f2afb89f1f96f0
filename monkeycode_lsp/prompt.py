"""Prompt formats (placeholder while the families are written)."""

from __future__ import annotations

import msgspec


class Family(msgspec.Struct, frozen=True):
    """How one family of models is asked to fill in the middle."""

    name: str
