"""What is known by key, in a file that only grows: whatever was put in before a run was killed is there for the next."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Ledger(Generic[T]):
    """One file of JSON lines; the last word on a key counts.

    The mutable state is what is known, in memory and in the file; it changes in `put` only.
    """

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path = path
        self._known: dict[str, T] = {}
        if path.is_file():
            for line in path.read_bytes().splitlines():
                try:
                    name, value = msgspec.json.decode(line, type=tuple[str, kind])  # type: ignore[valid-type] # a type at run time
                except msgspec.MsgspecError:
                    continue  # the end of a run that was killed while it wrote
                self._known[name] = value

    def get(self, name: str) -> T | None:
        """None: nothing is known."""
        return self._known.get(name)

    def put(self, name: str, value: T) -> None:
        """Remember it, here and in the file."""
        self._known[name] = value
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"\n" * self._is_cut() + msgspec.json.encode((name, value)) + b"\n")

    def _is_cut(self) -> bool:
        """Whether the file ends inside a line."""
        if not self._path.stat().st_size:
            return False
        with self._path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"
