"""Small GGUF files and catalogue entries that the tests make themselves."""

from __future__ import annotations

import hashlib
import struct

from monkeycode_lsp.models.catalogue import Entry, Packages

CONTENT = bytes(range(256)) * 1200  # 307,200 bytes: several network blocks


def entry(content: bytes = CONTENT, **changes) -> Entry:
    values = {
        "id": "tiny-coder-0.1b-q4_k_m",
        "name": "Tiny-Coder-0.1B",
        "family": "tiny-coder",
        "size": "0.1B",
        "parameters": 100_000_000,
        "quantization": "Q4_K_M",
        "licence": "Apache-2.0",
        "repository": "Tiny/Tiny-Coder-GGUF",
        "file": "tiny-coder-0.1b-q4_k_m.gguf",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return Entry(**{**values, **changes})


def in_packages(content: bytes = CONTENT, *, count: int = 4) -> Entry:
    part_bytes = -(-len(content) // count)
    rule = Packages(name="tiny-part{n}", version="1.0", blob="tiny_part{n}/data/part{n:02}.bin", count=count, part_bytes=part_bytes)
    return entry(content, packages=rule)


def gguf(values: dict[str, object] | None = None, *, n_tensors: int = 1, version: int = 3, data: bytes = b"\0" * 64) -> bytes:
    """A whole GGUF file; lists of text and of numbers become arrays."""
    given = {"general.architecture": "qwen2", "general.name": "Tiny", **(values or {})}
    out = [b"GGUF", struct.pack("<IQQ", version, n_tensors, len(given))]
    for key, value in given.items():
        out += [_string(key), _value(value)]
    for n in range(n_tensors):
        out += [_string(f"blk.{n}"), struct.pack("<IQIQ", 1, 16, 0, 0)]
    head = b"".join(out)
    return head + b"\0" * (-len(head) % 32) + data


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if all(isinstance(item, str) for item in value):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(item) for item in value)
    return struct.pack("<IIQ", 9, 5, len(value)) + b"".join(struct.pack("<i", item) for item in value)
