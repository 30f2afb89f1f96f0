"""What is known of the installed llama.cpp and a model on this machine: which attempt lives, or that none does.

Kept in one small file in the cache folder.  A new build, another processor or another model file is another key, and
what may have been a chance holds for a day, so that nothing outlives its reason.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local import hardware
from monkeycode_lsp.engines.local.ladder import Attempt

logger = logging.getLogger(__name__)

_DAY_S = 86_400
_MOST = 64
_MOST_CRASHES = 8


class Verdict(msgspec.Struct, frozen=True):
    """What came out last time."""

    attempt: Attempt | None
    """The attempt that lives; None: none does."""
    at: float
    """Unix time in seconds."""
    message: str = ""
    remedy: str = ""
    is_illegal_instruction: bool = False
    """Whether that is what took the extra buffers from it."""
    crashes: tuple[float, ...] = ()
    """When processes of this attempt crashed while they ran with layers on the GPU, Unix time in seconds."""

    @property
    def is_lasting(self) -> bool:
        """Whether it holds as long as its key.  All but a processor's lack of an instruction may pass: a GPU or a memory that is full."""
        return self.attempt == Attempt() or (self.is_illegal_instruction and self.attempt == Attempt(extra_buffers=False))


def key(model: Path, *, gpu_layers: int, library: Sequence[str] | None = None) -> str:
    """Names build, processor, model file and layers.  `library`: the build of another one than llama-cpp-python."""
    try:
        stat = model.stat()
        file = f"{model.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    except OSError:
        file = str(model)
    text = "\n".join([*(build() if library is None else library), hardware.processor(), file, str(gpu_layers)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def recall(name: str) -> Verdict | None:
    """The verdict under this key, unless it is too old."""
    verdict = _load().get(name)
    if verdict is None or not (verdict.is_lasting or 0 <= time.time() - verdict.at < _DAY_S):
        return None
    return verdict


def remember(name: str, verdict: Verdict) -> None:
    """Keep a verdict; a cache that cannot be written costs only the next start some time."""
    known = _load()
    known.pop(name, None)
    _save(dict(list(known.items())[-(_MOST - 1) :]) | {name: verdict})


def forget() -> None:
    """Try everything anew that may have been a chance."""
    known = _load()
    kept = {name: verdict for name, verdict in known.items() if verdict.is_lasting}
    if kept != known:
        _save(kept)


def _save(kept: dict[str, Verdict]) -> None:
    try:
        folder = folders.private(folders.cache())
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="engine-verdicts-")
        with os.fdopen(handle, "wb") as file:
            # A message may name a file whose name is no text; msgspec has no JSON for that.
            file.write(json.dumps(msgspec.to_builtins(kept)).encode("ascii"))
        Path(temporary).replace(_path())
    except OSError as exc:
        logger.warning("What is known of the engine could not be kept: %s.", exc.strerror)


def crashed(name: str, attempt: Attempt) -> None:
    """Note that a process of this attempt crashed while it ran with layers on the GPU."""
    known = recall(name) or Verdict(attempt=attempt, at=time.time())
    if known.attempt == attempt:
        remember(name, msgspec.structs.replace(known, crashes=(*known.crashes, time.time())[-_MOST_CRASHES:]))


def _load() -> dict[str, Verdict]:
    try:
        return msgspec.convert(json.loads(_path().read_bytes()), dict[str, Verdict])
    except (OSError, ValueError):
        return {}


def _path() -> Path:
    return folders.cache() / "engine-verdicts.json"


def build() -> list[str]:
    """Version and libraries of llama-cpp-python, without importing it; a rebuild changes the libraries' times."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations:
        return ["none"]
    try:
        version = importlib.metadata.version("llama_cpp_python")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    libraries = sorted(Path(spec.submodule_search_locations[0]).glob("lib/*"))
    return [version, *(f"{library.name} {library.stat().st_size} {library.stat().st_mtime_ns}" for library in libraries)]
