"""What lies where others can write is believed only under the name that it was sealed for."""

from __future__ import annotations

from monkeycode_lsp.recall import seal
from monkeycode_lsp.recall.seal import Seal

OURS = Seal(b"secret", name_bytes=20)
NAME = OURS.name(b"key")
SEALED = OURS.sealed(NAME, b"data")


def test_what_was_sealed_is_opened():
    assert OURS.opened(NAME, SEALED) == b"data"
    assert OURS.opened(NAME, OURS.sealed(NAME, b"")) == b""
    assert len(SEALED) == len(b"data") + seal.BYTES


def test_a_name_tells_nothing_of_its_key_and_is_another_with_another_secret():
    assert len(NAME) == 20
    assert b"key" not in NAME
    assert len({NAME, OURS.name(b"other"), Seal(b"other", name_bytes=20).name(b"key")}) == 3


def test_nothing_else_is_opened():
    for n in range(len(SEALED)):
        assert OURS.opened(NAME, SEALED[:n]) is None
        assert OURS.opened(NAME, SEALED[:n] + bytes([SEALED[n] ^ 1]) + SEALED[n + 1 :]) is None
    assert OURS.opened(OURS.name(b"other"), SEALED) is None
    assert Seal(b"other", name_bytes=20).opened(NAME, SEALED) is None
