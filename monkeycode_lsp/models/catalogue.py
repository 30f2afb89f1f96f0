"""The models that we know by name: data from `catalogue.toml`, and finding one of them.

An entry with `packages` always has `bytes` and `sha256`: what a registry carries is trusted by its hash only.
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Sequence
from importlib import resources

import msgspec

from monkeycode_lsp.errors import ModelError

DEFAULT_ID = "qwen2.5-coder-0.5b-instruct-q4_k_m"


class Package(msgspec.Struct, frozen=True):
    """One package of a registry, and the piece of the model file that its wheel carries."""

    name: str
    version: str
    blob: str
    """Path of the piece inside the wheel."""
    offset: int
    """Where the piece begins in the model file."""
    bytes: int


class Packages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule by which the pieces of one file are named."""

    name: str
    version: str
    blob: str
    count: int
    part_bytes: int

    def parts(self, total: int) -> tuple[Package, ...]:
        """The pieces in order; the last one has what is left of `total` bytes."""
        return tuple(
            Package(
                name=self.name.format(n=n),
                version=self.version,
                blob=self.blob.format(n=n),
                offset=(n - 1) * self.part_bytes,
                bytes=min(self.part_bytes, total - (n - 1) * self.part_bytes),
            )
            for n in range(1, self.count + 1)
        )


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model file."""

    id: str
    name: str
    """The model's name for people, without its quantization."""
    family: str
    size: str
    """As its makers call it: `0.5B`."""
    parameters: int
    quantization: str
    licence: str
    repository: str
    """On the hub: `owner/name`."""
    file: str
    bytes: int | None = None
    approximate_bytes: int = 0
    """Only where `bytes` is not known."""
    sha256: str = ""
    packages: Packages | None = None
    restricted: bool = False
    """The licence does not allow every use, so we never recommend it by ourselves."""

    @property
    def title(self) -> str:
        """For people: `Qwen2.5-Coder-0.5B-Instruct Q4_K_M`."""
        return f"{self.name} {self.quantization}"

    @property
    def about_bytes(self) -> int:
        """The file's size, roughly where it is not known."""
        return self.bytes or self.approximate_bytes

    @property
    def parts(self) -> tuple[Package, ...]:
        """The packages that carry the file; empty where no registry has it."""
        return self.packages.parts(self.bytes) if self.packages and self.bytes else ()


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every model, best default first."""
    text = resources.files("monkeycode_lsp.models").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["model"], list[Entry]))


def default() -> Entry:
    """The model of a first use: small enough for every machine."""
    return next(entry for entry in entries() if entry.id == DEFAULT_ID)


def lookup(name: str, among: Sequence[Entry] | None = None) -> Entry | None:
    """The entry that `name` means, or None.  `0.5b`, `qwen2.5-coder:7b`, `1.5b q8` and file names are understood.

    Where several fit, the first of the catalogue wins: the smallest Q4_K_M.
    """
    models = entries() if among is None else among
    wanted = _words(name)
    if not wanted:
        return None
    for entry in models:
        if wanted == _words(entry.id):
            return entry
    if name.lower().endswith(".gguf"):
        return None  # a file's name is meant exactly
    fitting = [entry for entry in models if all(_has(_words(entry.id), word) for word in wanted)]
    return min(fitting, key=lambda entry: entry.quantization != "Q4_K_M") if fitting else None


def find(name: str) -> Entry:
    """Like `lookup`, but an unknown name is an error that says what is near."""
    entry = lookup(name)
    if entry is None:
        near = difflib.get_close_matches(name.lower(), [known.id for known in entries()], n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ModelError(f"There is no model called {name} in the catalogue.{hint}", remedy="See `monkeycode model list`.")
    return entry


def _words(name: str) -> tuple[str, ...]:
    tail = name.lower().removesuffix(".gguf").rsplit("/", 1)[-1]
    return tuple(word for word in re.split(r"[-_:\s]+", tail) if word not in {"", "gguf", "latest"})


def _has(words: tuple[str, ...], word: str) -> bool:
    # A name may be cut short ("qwen-coder"), a number may not: "1" is not "1.5b".
    return word in words or (word.isalpha() and len(word) > 1 and any(known.startswith(word) for known in words))
