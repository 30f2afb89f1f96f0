"""What is known of the installed llama.cpp and a model on this machine: which attempt lives, or that none does.

Kept in one small file in the cache folder.  A new build, another processor or another model file is another key,
so that nothing outlives its reason.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
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
    crashes: tuple[float, ...] = ()
    """When processes of this attempt crashed while they ran with layers on the GPU, Unix time in seconds."""

    @property
    def is_lasting(self) -> bool:
        """Whether it holds as long as its key: other programs fill a GPU too, and leave it again."""
        return self.attempt is not None and self.attempt.gpu_share >= 1


def key(model: Path, *, gpu_layers: int, library: Sequence[str] | None = None) -> str:
    """Names build, processor, model file and layers.  `library`: the build of another one than llama-cpp-python."""
    try:
        stat = model.stat()
        file = f"{model.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    except OSError:
        file = str(model)
    return hashlib.sha256(
        "\n".join([*(build() if library is None else library), hardware.processor(), file, str(gpu_layers)]).encode()
    ).hexdigest()[:32]


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
    kept = dict(list(known.items())[-(_MOST - 1) :]) | {name: verdict}
    try:
        folder = folders.private(folders.cache())
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="engine-verdicts-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(kept))
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
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, Verdict])
    except (OSError, msgspec.MsgspecError):
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
