"""The processor this process runs on: its name, its physical cores, and how busy they are."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_CPU_INFO = Path("/proc/cpuinfo")
_STAT = Path("/proc/stat")


def processor() -> str:
    """The processor's name and abilities, as far as the system tells; changes when the machine does."""
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or platform.machine()
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    told = [facts.get(key, "") for key in ("model name", "flags", "Features")]
    return " ".join(filter(None, told)) or platform.machine()


def physical_cores() -> int:
    """Cores this process may use, two threads of one core counted once."""
    if sys.platform == "darwin":
        # Where there are efficiency cores, they only slow the fast ones down.
        told = _sysctl("hw.perflevel0.physicalcpu") or _sysctl("hw.physicalcpu")
        return int(told) if told.isdigit() and int(told) else os.cpu_count() or 1
    if sys.platform == "win32":
        return max(1, (os.cpu_count() or 2) // 2)
    allowed = os.sched_getaffinity(0)
    return max(1, len({_siblings(cpu) for cpu in allowed}))


def busy_cores(within_s: float) -> float | None:
    """Cores that are at work, by a look of that length; None where the system does not say.  Sleeps."""
    if sys.platform == "darwin":
        return os.getloadavg()[0]
    before = _busy_ticks()
    time.sleep(within_s)
    after = _busy_ticks()
    if before is None or after is None:
        return None
    return max(0.0, (after - before) / os.sysconf("SC_CLK_TCK") / within_s)


def _busy_ticks() -> int | None:
    """Clock ticks that all processors together have worked."""
    try:
        fields = [int(word) for word in _STAT.read_text(encoding="ascii").partition("\n")[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    idle, waiting = fields[3:5] if len(fields) > 4 else (0, 0)  # noqa: PLR2004 - user, nice, system, idle, waiting, …
    return sum(fields) - idle - waiting


def _siblings(cpu: int) -> str:
    """The threads that share a core with `cpu`; `cpu` alone where the system does not say."""
    try:
        return (_CPU_FOLDER / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii").strip()
    except OSError:
        return str(cpu)


def _sysctl(name: str) -> str:
    """One fact of macOS; empty where it does not exist."""
    try:
        done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)  # noqa: S603 - constant arguments
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
