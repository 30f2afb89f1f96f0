"""Writes small LoRA adapters: GGUF files of one pair of matrices of rank 1."""

from __future__ import annotations

import struct

_STRING, _FLOAT32 = 8, 6
_ALIGNMENT = 32
_TENSOR = "blk.0.ffn_down.weight"
_N_IN, _N_OUT = 4864, 896
"""Of that tensor in the model of the tests."""


def write(path, *, architecture="qwen2", value=0.0):
    """An adapter that adds `value` to each of its tensor's weights."""
    values = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": architecture, "adapter.lora.alpha": 1.0}
    matrices = {f"{_TENSOR}.lora_a": (_N_IN, 1), f"{_TENSOR}.lora_b": (1, _N_OUT)}
    header = b"GGUF" + struct.pack("<IQQ", 3, len(matrices), len(values))
    for key, told in values.items():
        header += _string(key) + (
            struct.pack("<If", _FLOAT32, told) if isinstance(told, float) else struct.pack("<I", _STRING) + _string(told)
        )
    data = b""
    for name, (n_in, n_out) in matrices.items():
        header += _string(name) + struct.pack("<IQQIQ", 2, n_in, n_out, 0, len(data))
        number = 1.0 if name.endswith("a") else value
        data += _padded(struct.pack("<f", number) * (n_in * n_out))
    path.write_bytes(_padded(header) + data)
    return str(path)


def _string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def _padded(data):
    return data + bytes(-len(data) % _ALIGNMENT)
