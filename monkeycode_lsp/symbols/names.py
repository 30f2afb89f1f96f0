"""Provisional (lead's, until H4 writes the real one): names near the cursor."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_]\w{2,}")


def near(before: str, after: str, language: str) -> list[str]:
    return list(dict.fromkeys(reversed(_NAME.findall(before[-2_000:]))))[:24]
