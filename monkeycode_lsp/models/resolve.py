"""From the setting `local.model` to a file that an engine can load; and what is installed, checked and removed.

Only files below our own folder are ever deleted.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import catalogue, gguf, hardware, receipt, recommend
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.sources import local_files
from monkeycode_lsp.models.sources.local_files import Places

SETTING = "local.model"
_CALLED = f"The setting {SETTING}"


class Installed(msgspec.Struct, frozen=True):
    """One model file that is here."""

    name: str
    """The catalogue's id, or the file name of a model that the catalogue does not know."""
    path: Path
    bytes: int
    entry: Entry | None = None
    in_place: bool = False
    """The file belongs to another program; removing the model leaves it alone."""
    checked: bool = False
    """Its SHA-256 was checked since it last changed."""


class Verdict(msgspec.Struct, frozen=True):
    """What checking a file showed."""

    path: Path
    sha256: str
    ok: bool
    message: str
    """One sentence for the user."""
    entry: Entry | None = None


class Removed(msgspec.Struct, frozen=True):
    """What was deleted."""

    paths: tuple[Path, ...]
    bytes: int
    left: Path | None = None
    """Another program's file that was used and stays."""


def _recommended() -> Entry:
    return recommend.recommend(hardware.probe()).entry


def resolve(
    setting: str,
    *,
    folder: Path | None = None,
    places: Places | None = None,
    recommended: Callable[[], Entry] = _recommended,
    called: str = _CALLED,
) -> Path:
    """The GGUF file that `setting` means: a path, a catalogue name, an Ollama tag, or empty for the best one that is here.

    `recommended` is asked only when several models are here.  Raises `ModelError` with the remedy; its
    message begins with `called`.
    """
    folder = folders.models() if folder is None else folder
    where = local_files.places() if places is None else places
    text = setting.strip()
    try:
        if not text:
            path = _best(folder, where, recommended)
        elif _is_path(text, folder):
            path = _at(text, folder, called)
        else:
            path = _named(text, folder, where, called)
    except (OSError, RuntimeError) as exc:  # a name longer than the system allows, a home folder of nobody
        raise ModelError(f"{called} cannot be used as a file name: {exc}.") from exc
    try:
        gguf.read(path)
    except ModelError as exc:
        raise ModelError(f"{exc.message} {called} is {text or 'empty'}.", remedy=exc.remedy or _pull_command("")) from exc
    return path


def installed(folder: Path | None = None) -> tuple[Installed, ...]:
    """Every model in our folder, and those of other programs that a pull found, catalogue order first."""
    folder = folders.models() if folder is None else folder
    known = [_installed(entry.id, entry.file, entry, folder) for entry in catalogue.entries()]
    names = {entry.file for entry in catalogue.entries()}
    other = [_installed(path.name, path.name, None, folder) for path in sorted(folder.glob("*.gguf")) if path.name not in names]
    return tuple(model for model in (*known, *other) if model is not None)


def verify(model: str | Path, *, progress: Callable[[int, int], None] | None = None, folder: Path | None = None) -> Verdict:
    """Read the whole file, a path or a name, and compare it with what its makers published."""
    folder = folders.models() if folder is None else folder
    path = Path(model) if isinstance(model, Path) else resolve(model, folder=folder, called="The argument")
    gguf.read(path)
    found = receipt.sha256(path, progress)
    by_hash = next((entry for entry in catalogue.entries() if entry.sha256 == found), None)
    by_name = next((entry for entry in catalogue.entries() if entry.file == path.name), None)
    if by_hash is not None:
        if path.parent == folder:
            receipt.write(folder, by_hash.file, path, found)
        return Verdict(path=path, sha256=found, ok=True, entry=by_hash, message=f"{path} is {by_hash.title} as published.")
    if by_name is not None and by_name.sha256:
        receipt.remove(folder, by_name.file)
        message = f"{path} is not {by_name.title} as published: its content differs. Delete it and run `{_pull_command(by_name.id)}`."
        return Verdict(path=path, sha256=found, ok=False, entry=by_name, message=message)
    return Verdict(
        path=path, sha256=found, ok=True, entry=by_name, message=f"{path} is a whole GGUF file; no published hash of it is known."
    )


def removable(name: str, *, folder: Path | None = None) -> Removed:
    """What `remove` would delete; nothing is deleted yet.  Raises `ModelError` where there is nothing."""
    folder = folders.models() if folder is None else folder
    file = _file_called(name, folder)
    checked = receipt.read(folder, file)
    left = Path(checked.path) if checked is not None and Path(checked.path).parent != folder else None
    doomed = [folder / file, folder / f"{file}.part", folder / f"{file}.damaged", folder / f".{file}.wheels"]
    found = [path for path in doomed if path.is_file() or (path.is_dir() and path.suffix == ".wheels")]
    if not found and left is None:
        raise ModelError(f"No model called {name} is in {folder}.", remedy="See `monkeycode model list`.")
    return Removed(paths=tuple(found), bytes=sum(map(_bytes, found)), left=left)


def remove(name: str, *, folder: Path | None = None) -> Removed:
    """Delete a model and what is left of its downloads from our folder; another program's file stays."""
    folder = folders.models() if folder is None else folder
    doomed = removable(name, folder=folder)
    file = _file_called(name, folder)
    for path in doomed.paths:
        if path.is_dir():
            shutil.rmtree(path)  # the wheels of a download that was cut off
        else:
            path.unlink()
    receipt.remove(folder, file)
    return doomed


def _file_called(name: str, folder: Path) -> str:
    """The name in our folder of the file that `name` means, as it is, as the catalogue has it, or without its ending."""
    if "/" not in name and "\\" not in name and (path := _ours(name, folder)) is not None:
        return path.name
    entry = catalogue.lookup(name)
    return entry.file if entry else Path(name).name


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _installed(name: str, file: str, entry: Entry | None, folder: Path) -> Installed | None:
    checked = receipt.read(folder, file)
    path = Path(checked.path) if checked is not None else folder / file
    with contextlib.suppress(OSError):
        return Installed(
            name=name, path=path, bytes=path.stat().st_size, entry=entry, in_place=path.parent != folder, checked=checked is not None
        )
    return None


def _best(folder: Path, where: Places, recommended: Callable[[], Entry]) -> Path:
    here = {model.entry: model.path for model in installed(folder) if model.entry is not None}
    if not here:
        here = {entry: path for entry in catalogue.entries() for path in _elsewhere(entry, where)}
    if not here:
        raise ModelError(
            f"No model is here yet: the setting {SETTING} is empty and {folder} has none.", remedy=f"Run `{_pull_command('')}`."
        )
    if len(here) == 1:
        return next(iter(here.values()))
    wish = recommended()
    if wish in here:
        return here[wish]
    # The largest that the machine runs well, else the smallest.
    fitting = [entry for entry in here if entry.parameters <= wish.parameters]
    order = sorted(fitting or here, key=lambda entry: (entry.parameters, entry.about_bytes))
    return here[order[-1] if fitting else order[0]]


def _is_path(text: str, folder: Path) -> bool:
    looks = text.startswith(("/", "~", ".")) or "\\" in text or Path(text).is_absolute()
    return looks or Path(text).is_file() or _ours(text, folder) is not None


def _ours(name: str, folder: Path) -> Path | None:
    """A file of our folder by its name, with or without its ending."""
    return next((folder / file for file in (name, f"{name}.gguf") if name and (folder / file).is_file()), None)


def _at(text: str, folder: Path, called: str) -> Path:
    path = Path(text).expanduser()
    path = path if path.is_absolute() or path.exists() else _ours(text, folder) or folder / path
    if not path.exists():
        raise ModelError(
            f"{called} names {text}, and there is no such file.",
            remedy="Correct the path, or leave it empty and run `monkeycode model pull`." if called == _CALLED else "Correct the path.",
        )
    return path


def _named(name: str, folder: Path, where: Places, called: str) -> Path:
    path = local_files.ollama_model(name, where) if ":" in name else None
    if path is not None:
        return path
    entry = catalogue.lookup(name)
    if entry is None:
        path = local_files.ollama_model(name, where)
        if path is not None:
            return path
        raise ModelError(f"{called} names {name}, which is neither a file nor a model that we know.", remedy="See `monkeycode model list`.")
    here = _installed(entry.id, entry.file, entry, folder)
    if here is not None:
        return here.path
    for found in _elsewhere(entry, where):
        return found
    raise ModelError(f"{called} names {name}, and {entry.file} is not on this machine.", remedy=f"Run `{_pull_command(entry.id)}`.")


def _elsewhere(entry: Entry, where: Places) -> list[Path]:
    """Another program's copy, recognised by a hash in its name or by its own name; not read."""
    for path in local_files.candidates(entry, where):
        if path.name.casefold().endswith(entry.file.casefold()) or (entry.sha256 and path.name.endswith(entry.sha256)):
            return [path]
    return []


def _pull_command(name: str) -> str:
    return f"monkeycode model pull {name}".strip()
