"""What makes two servers share an engine process, and what makes two answers comparable.  Blocking: reads the model's file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp import __version__
from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.host import jsontext

_KEY_CHARACTERS = 12
_FINGERPRINT_BYTES = 65_536


def key(kind: str, options: Options, *, command: Sequence[str], build: Sequence[str], loopback: bool) -> str:
    """Names a process: model file, every option that matters once it is loaded, program and library.

    `options` are those of the settings' own attempt: who asks for the same shares what came of it.  Raises `OSError`.
    """
    stat = options.model.stat()
    file = f"{options.model.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    parts = [kind, str(wire.VERSION), __version__, str(loopback), *command, *build, file]
    text = "\n".join([*parts, jsontext.dump(msgspec.structs.replace(options, nice=0))])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_KEY_CHARACTERS]


def fingerprint(kind: str, model: Path, *, adapters: Sequence[tuple[str, float]] = (), kv_type: str = "f16") -> str:
    """Names what answers: the model file and its adapters, wherever they lie, and how its KV cache is kept.  Raises `OSError`."""
    digest = hashlib.sha256()
    _add_file(digest, model)
    for path, strength in adapters:
        _add_file(digest, Path(path))
        digest.update(f"{strength:g}".encode())
    if kv_type != "f16":
        digest.update(kv_type.encode())
    return f"{kind}:{digest.hexdigest()[:16]}"


def _add_file(digest: hashlib._Hash, path: Path) -> None:
    """By its size, head and tail."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        digest.update(str(size).encode())
        for start in (0, max(0, size - _FINGERPRINT_BYTES)):
            file.seek(start)
            digest.update(file.read(_FINGERPRINT_BYTES))
