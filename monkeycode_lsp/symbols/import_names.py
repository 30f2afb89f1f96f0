"""Lists of imported names: `a, b as c`."""

from __future__ import annotations

Names = tuple[tuple[str, str], ...]
"""(name there, name here) of each."""


def renamed(part: str, sign: str = " as ") -> tuple[str, str]:
    """(name there, name here) of `a` or `a as b`."""
    there, _, here = " ".join(part.split()).partition(sign)
    return there.strip(), here.strip() or there.strip()


def listed(names: str, sign: str = " as ") -> Names:
    pairs = (renamed(part, sign) for part in names.split(","))
    return tuple((there, here) for there, here in pairs if there == "*" or there.isidentifier())
