"""The packages of the cross-file tasks: fetched once with pip into the user's cache, checked, and unpacked anew for each run.

Nothing of them is installed or run.  Each is one version with one hash, under a permissive licence.
"""

from __future__ import annotations

import email
import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import msgspec

from monkeycode_lsp.errors import MonkeyCodeError

PINS = Path(__file__).with_name("packages.txt")
_PERMISSIVE = re.compile(
    r"MIT( License)?|Apache(-2\.0| License 2\.0| Software License)|BSD(-[23]-Clause| License)?|ISC( License \(ISCL\))?", re.IGNORECASE
)
_PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) --hash=sha256:(?P<hash>[0-9a-f]{64})")
_FETCH_S = 600


class Pin(msgspec.Struct, frozen=True):
    """One package."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


def pins(text: str) -> tuple[Pin, ...]:
    """Those of a requirements file."""
    return tuple(Pin(found["name"], found["version"], found["hash"]) for found in _PIN.finditer(text))


def wheels(folder: Path, pins_file: Path = PINS) -> list[tuple[Pin, Path]]:
    """Where they are, once they have been fetched."""
    return [(pin, folder / pin.file) for pin in pins(pins_file.read_text(encoding="utf-8"))]


def fetch(folder: Path, *, say: Callable[[str], None], pins_file: Path = PINS) -> None:
    """See that all wheels are there and right.  Blocking; raises `MonkeyCodeError`."""
    wanted = pins(pins_file.read_text(encoding="utf-8"))
    if not all(_is_right(folder / pin.file, pin) for pin in wanted):
        say(f"crossfile: fetching {len(wanted)} packages into {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        _download(folder, pins_file)
    for pin in wanted:
        wheel = folder / pin.file
        if not _is_right(wheel, pin):
            raise MonkeyCodeError(f"{wheel} is not the file that was expected.", remedy="Delete it and try again.")
        check_licence(wheel)


def _is_right(path: Path, pin: Pin) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == pin.sha256


def _download(folder: Path, pins_file: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--dest", str(folder), "--requirement", str(pins_file)]
    remedy = f"Put the files that {pins_file} names into {folder}, or leave this part out: --only gold,infilling,multiline"
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_FETCH_S, check=False)  # noqa: S603 - our own arguments
    except subprocess.TimeoutExpired as exc:
        raise MonkeyCodeError("pip did not get the packages in ten minutes.", remedy=remedy) from exc
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        raise MonkeyCodeError(f"pip could not get the packages: {last.removeprefix('ERROR: ')}", remedy=remedy)


def check_licence(wheel: Path) -> None:
    """Raises `MonkeyCodeError` where the package does not name a permissive licence."""
    with zipfile.ZipFile(wheel) as files:
        name = next((name for name in files.namelist() if name.endswith(".dist-info/METADATA")), "")
        told = email.message_from_string(files.read(name).decode("utf-8", errors="replace") if name else "")
    named = [told.get("License-Expression", ""), told.get("License", "")]
    named += [value.rpartition(" :: ")[2] for value in told.get_all("Classifier", []) if value.startswith("License ::")]
    if not any(_PERMISSIVE.fullmatch(licence.strip()) for licence in named):
        raise MonkeyCodeError(f"{wheel.name} does not name a permissive licence.")


def unpack(wheel: Path, folder: Path) -> list[str]:
    """The Python files, into `folder`; their relative paths in order."""
    names = []
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            parts = PurePosixPath(name).parts
            if name.endswith(".py") and ".." not in parts and not name.startswith("/"):
                files.extract(name, folder)
                names.append(name)
    return names
