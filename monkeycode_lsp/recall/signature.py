"""What "the same place" means (pure).

Two places are the same when the text around the cursor is, in the same language and scope; the
scope holds the workspace, the model and every setting that could change the answer.
"""

from __future__ import annotations

import hashlib

from monkeycode_lsp.domain import Window


def signature(scope: str, window: Window) -> bytes:
    """16 bytes that are equal for the same place only."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (scope, window.language, window.repository, window.prefix, window.suffix):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()
