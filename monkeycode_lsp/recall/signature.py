"""What "the same place" means (pure).

Two places are the same when the text around the cursor is, in the same language and scope; the
scope holds the workspace, the model and every setting that could change the answer.
"""

from __future__ import annotations

import hashlib

import msgspec

from monkeycode_lsp.domain import Window


class Place(msgspec.Struct, frozen=True):
    """One place, whatever the scope."""

    digest: bytes
    """16 bytes that are equal for the same place only."""
    indent: str
    """White space that the cursor's line begins with: what is remembered elsewhere is indented like it."""


def place(window: Window) -> Place:
    """Where the cursor stands."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (window.language, window.repository, window.prefix, window.suffix):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    line = window.line_before
    return Place(digest.digest(), line[: len(line) - len(line.lstrip(" \t"))])


def key(scope: str, place: Place) -> bytes:
    """16 bytes that are equal for the same place in the same scope only."""
    digest = hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(place.digest)
    return digest.digest()
