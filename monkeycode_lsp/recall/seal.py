"""Names and seals for what is kept where others can read and write it (pure).

Invariant: what is opened was sealed under the same name with the same secret, unless the secret is known to somebody else.
"""

from __future__ import annotations

import hashlib
import hmac

BYTES = 16
"""A sealed value is so much longer."""


class Seal:
    """Of one place."""

    def __init__(self, secret: bytes, *, name_bytes: int) -> None:
        self._secret = secret
        self._name_bytes = name_bytes

    def name(self, key: bytes) -> bytes:
        """Tells nothing of `key` to who does not know the secret."""
        return hashlib.blake2b(key, key=self._secret, digest_size=self._name_bytes, person=b"name").digest()

    def sealed(self, name: bytes, data: bytes) -> bytes:
        return self._of(name, data) + data

    def opened(self, name: bytes, value: bytes) -> bytes | None:
        """What was sealed; None for a value that is cut off, changed, or another name's."""
        data = value[BYTES:]
        return data if hmac.compare_digest(value[:BYTES], self._of(name, data)) else None

    def _of(self, name: bytes, data: bytes) -> bytes:
        return hashlib.blake2b(name + data, key=self._secret, digest_size=BYTES, person=b"seal").digest()
