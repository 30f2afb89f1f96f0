"""Model files that the user has already: in our folder, Ollama's, LM Studio's, llama.cpp's and the hub client's.

Other programs' files are only read.  A file is looked for by the hash in its name, then by size and name;
its content is hashed before it is used as a catalogue model.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import gguf, receipt
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.part import NotHereError
from monkeycode_lsp.models.sources.base import Job

_DEPTHS = ("*.gguf", "*/*.gguf", "*/*/*.gguf")
_OLLAMA_HOST = "registry.ollama.ai"


class Places(msgspec.Struct, frozen=True):
    """The folders to look into; those that do not exist are simply empty."""

    ollama: tuple[Path, ...] = ()
    """Each holds `blobs` and `manifests`."""
    hub_caches: tuple[Path, ...] = ()
    """Each holds `models--OWNER--NAME` folders."""
    folders: tuple[Path, ...] = ()
    """Plain files, up to two folders deep."""


class _Layer(msgspec.Struct, frozen=True):
    digest: str
    media_type: str = msgspec.field(name="mediaType", default="")


class _Manifest(msgspec.Struct, frozen=True):
    layers: tuple[_Layer, ...] = ()


class _LmStudioSettings(msgspec.Struct, frozen=True):
    downloads_folder: str = msgspec.field(name="downloadsFolder", default="")


def places(environ: Mapping[str, str] = os.environ, *, home: Path | None = None, system: str = sys.platform) -> Places:
    """Where other programs keep models on this system, moved by the same variables that move them."""
    at_home = Path.home() if home is None else home
    cache = _cache_folder(environ, at_home, system)
    hub = _first(environ, "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
    hub_home = _first(environ, "HF_HOME")
    xdg = _first(environ, "XDG_CACHE_HOME") or at_home / ".cache"
    return Places(
        ollama=tuple(_ollama_folders(environ, at_home, system)),
        hub_caches=(hub or (hub_home / "hub" if hub_home else xdg / "huggingface" / "hub"),),
        folders=(*_lm_studio_folders(at_home), _first(environ, "LLAMA_CACHE") or cache / "llama.cpp"),
    )


def candidates(entry: Entry, where: Places) -> Iterator[Path]:
    """Files that may be `entry`, likeliest first; none has been read."""
    seen: set[Path] = set()
    for path in _looked_up(entry, where):
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            if path.is_file() and path not in seen and (entry.bytes is None or size == entry.bytes):
                seen.add(path)
                yield path


def ollama_model(tag: str, where: Places) -> Path | None:
    """The file of an Ollama model such as `qwen2.5-coder:1.5b`, or None where Ollama does not have it."""
    name, _, version = tag.partition(":")
    steps = name.split("/")
    if not all(steps) or ".." in steps or "/" in version:
        return None
    by_depth = {1: (_OLLAMA_HOST, "library", *steps), 2: (_OLLAMA_HOST, *steps)}
    manifest = Path("manifests", *by_depth.get(len(steps), tuple(steps)), version or "latest")
    for root in where.ollama:
        try:
            layers = msgspec.json.decode((root / manifest).read_bytes(), type=_Manifest).layers
        except (OSError, msgspec.DecodeError):
            continue
        for layer in layers:
            blob = root / "blobs" / layer.digest.replace(":", "-")
            if layer.media_type.endswith(".model") and blob.is_file():
                return blob
    return None


class LocalFiles:
    """Uses a file that is here already: linked into our folder where the file system can, else where it is."""

    def __init__(self, where: Places | None = None) -> None:
        self._where = where

    @property
    def name(self) -> str:
        """For people."""
        return "files on this machine"

    def deliver(self, job: Job) -> Path:
        """The first candidate with the right content."""
        where = places() if self._where is None else self._where
        where = msgspec.structs.replace(where, folders=(job.folder, *where.folders))
        for path in candidates(job.entry, where):
            try:
                found = _right_hash(path, job)
            except ModelError:  # another user's file, or gone meanwhile
                continue
            if found:
                return _use(path, found, job)
        raise NotHereError("none of them is this model.")


def _looked_up(entry: Entry, where: Places) -> Iterator[Path]:
    repository = f"models--{entry.repository.replace('/', '--')}"
    if entry.sha256:
        yield from (root / "blobs" / f"sha256-{entry.sha256}" for root in where.ollama)
        yield from (root / repository / "blobs" / entry.sha256 for root in where.hub_caches)
    for root in where.hub_caches:
        yield from _sorted(root.glob(f"{repository}/snapshots/*/{entry.file}"))
    plain = [path for root in where.folders for depth in _DEPTHS for path in _sorted(root.glob(depth))]
    yield from (path for path in plain if path.name.casefold().endswith(entry.file.casefold()))
    if entry.bytes is not None:
        yield from plain  # `candidates` keeps those of the right size


def _sorted(paths: Iterable[Path]) -> list[Path]:
    try:
        return sorted(paths)
    except OSError:  # a folder that may not be read
        return []


def _right_hash(path: Path, job: Job) -> str:
    """The file's hash if it is what the catalogue wants, else nothing."""
    found = receipt.sha256(path, lambda done, total: job.progress(f"Checking {path.name}", done, total))
    if job.entry.sha256:
        return found if found == job.entry.sha256 else ""
    gguf.read(path)
    return found


def _use(path: Path, sha256: str, job: Job) -> Path:
    place = path
    try:
        if path != job.target:
            job.target.hardlink_to(path.resolve())
        place = job.target
    except OSError:
        place = path.resolve()  # another disk, or another user's file: used where it is
    receipt.write(job.folder, job.entry.file, place, sha256)
    return place


def _ollama_folders(environ: Mapping[str, str], home: Path, system: str) -> Iterator[Path]:
    moved = _first(environ, "OLLAMA_MODELS")
    if moved:
        yield moved
    yield home / ".ollama" / "models"
    if system.startswith("linux"):  # where its service keeps them
        yield Path("/usr/share/ollama/.ollama/models")
        yield Path("/var/lib/ollama/models")


def _lm_studio_folders(home: Path) -> Iterator[Path]:
    roots = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        pointed = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
        roots[:0] = [Path(pointed)] if pointed else []
    for root in roots:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            settings = msgspec.json.decode((root / "settings.json").read_bytes(), type=_LmStudioSettings)
            if settings.downloads_folder:
                yield Path(settings.downloads_folder)
        yield root / "models"


def _cache_folder(environ: Mapping[str, str], home: Path, system: str) -> Path:
    if system == "darwin":
        return home / "Library" / "Caches"
    if system == "win32":
        return _first(environ, "LOCALAPPDATA") or home / "AppData" / "Local"
    return _first(environ, "XDG_CACHE_HOME") or home / ".cache"


def _first(environ: Mapping[str, str], *names: str) -> Path | None:
    return next((Path(environ[name].strip()).expanduser() for name in names if environ.get(name, "").strip()), None)
