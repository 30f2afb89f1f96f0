"""Reads what the system's own programs print about a machine.  Pure: text in, values out, never an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

_MIB = 1 << 20


class Cpuinfo(msgspec.Struct, frozen=True):
    """What `/proc/cpuinfo` says."""

    name: str
    cores: int | None
    """Physical cores; None on processors that do not say."""
    features: frozenset[str]


def cpuinfo(text: str) -> Cpuinfo:
    """Read Linux's `/proc/cpuinfo`."""
    cores: set[tuple[str, str]] = set()
    for block in text.split("\n\n"):
        values = _pairs(block)
        if "core id" in values:
            cores.add((values.get("physical id", ""), values["core id"]))
    first = _pairs(text)
    return Cpuinfo(name=first.get("model name", ""), cores=len(cores) or None, features=features(first.get("flags", "").split()))


def features(flags: Iterable[str]) -> frozenset[str]:
    """The processor features that change how a model runs, from the names that systems give them."""
    known = set(flags)
    found = known & {"avx2", "fma", "f16c"}
    found |= {"avx512"} if known & {"avx512f"} else set()
    found |= {"amx"} if known & {"amx_tile", "amx_int8"} else set()
    return frozenset(found)


def meminfo(text: str) -> int | None:
    """Read Linux's `/proc/meminfo`."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def sysctl(text: str) -> dict[str, str]:
    """Read `sysctl -a` of macOS."""
    return _pairs(text)


def number(text: str) -> int | None:
    """A plain number, or None: `max` of a container without a limit, empty text."""
    stripped = text.strip()
    return int(stripped) if stripped.isdecimal() else None


def nvidia_smi(text: str) -> list[tuple[str, int | None]]:
    """Name and memory of each GPU."""
    rows = [line.rpartition(",") for line in text.splitlines() if "," in line]
    return [(name.strip(), _mebibytes(memory)) for name, _, memory in rows]


def rocminfo(text: str) -> list[tuple[str, str]]:
    """Marketing name and compiler target of each GPU agent."""
    found = []
    for agent in re.split(r"^Agent \d+\s*$", text, flags=re.MULTILINE):
        target = re.search(r"^\s*Name:\s+(gfx[0-9a-f]+)", agent, re.MULTILINE)
        name = re.search(r"^\s*Marketing Name:[ \t]*(.*)$", agent, re.MULTILINE)
        if target and re.search(r"^\s*Device Type:\s+GPU", agent, re.MULTILINE):
            found.append((name.group(1).strip() if name else "", target.group(1)))
    return found


def rocm_smi(text: str) -> list[int]:
    """VRAM of each GPU, from the csv form: device, total, used."""
    rows = [line.split(",") for line in text.splitlines() if line.startswith("card")]
    return [int(row[1]) for row in rows if len(row) > 1 and row[1].strip().isdecimal()]


def vulkaninfo(text: str) -> list[str]:
    """Names of the real GPUs; a software renderer is none."""
    devices = re.split(r"^GPU\d+:\s*$", text, flags=re.MULTILINE)[1:]
    values = [_pairs(device, "=") for device in devices]
    return [value.get("deviceName", "") for value in values if not value.get("deviceType", "").endswith("TYPE_CPU")]


def sycl_ls(text: str) -> list[str]:
    """Names of the GPUs that the Level Zero driver serves."""
    matches = re.findall(r"^\[.*?level_zero.*?gpu.*?\]\s*(.+)$", text, re.MULTILINE | re.IGNORECASE)
    return [match.strip() for match in matches]


def compiler(text: str) -> tuple[Literal["gcc", "clang"] | None, tuple[int, ...]]:
    """Kind and version from what a compiler's `--version` prints."""
    match = re.search(r"clang version (\d+(?:\.\d+)*)", text)
    if match:
        return "clang", _version(match.group(1))
    first = text.partition("\n")[0]
    match = re.search(r"(\d+\.\d+(?:\.\d+)*)(?!.*\d+\.\d+)", first)
    is_gcc = "Free Software Foundation" in text or "gcc" in first.lower() or "g++" in first.lower()
    return ("gcc", _version(match.group(1))) if match and is_gcc else (None, ())


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in text.split("."))


def _mebibytes(text: str) -> int | None:
    size = number(text)
    return size * _MIB if size is not None else None


def _pairs(text: str, separator: str = ":") -> dict[str, str]:
    """`key: value` lines; the first of a key wins."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, found, value = line.partition(separator)
        if found:
            pairs.setdefault(key.strip(), value.strip())
    return pairs
