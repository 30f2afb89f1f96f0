"""Does this machine run on its battery?  Work that nobody waits for is then left undone.

Never fails; what cannot be found out counts as mains.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SUPPLIES = Path("/sys/class/power_supply")
_PMSET = ("/usr/bin/pmset", "-g", "batt")
_WITHIN_S = 2.0
_MOST_SUPPLIES = 64
_MAINS = frozenset({"Mains", "USB", "USB_C", "USB_PD", "USB_DCP", "Wireless"})


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """Blocking; `supplies` is Linux's folder of power supplies."""
    if sys.platform == "win32":
        return _windows()
    if sys.platform == "darwin":
        return is_battery_report(_said_by(_PMSET))
    return _linux(supplies)


def _linux(supplies: Path) -> bool:
    """Some supply from outside is in use: mains.  Else a battery of this machine, not of a mouse, must be draining."""
    draining = False
    try:
        folders = sorted(supplies.iterdir())[:_MOST_SUPPLIES]
    except OSError:
        return False
    for folder in folders:
        kind = _word(folder / "type")
        if kind in _MAINS and _word(folder / "online") not in ("", "0"):
            return False
        if kind == "Battery" and _word(folder / "scope") != "Device" and _word(folder / "status") == "Discharging":
            draining = True
    return draining


def _word(path: Path) -> str:
    """A driver may fail to answer."""
    try:
        with path.open("rb") as file:
            return file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""


def is_battery_report(text: str) -> bool:
    """What macOS's `pmset -g batt` says (pure)."""
    return text.startswith("Now drawing from 'Battery Power'")


def _said_by(argv: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False)  # noqa: S603 - a fixed program
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _windows() -> bool:
    if sys.platform != "win32":  # for the type checker on other systems
        return False
    import ctypes  # noqa: PLC0415 - of no use elsewhere

    status = ctypes.create_string_buffer(12)  # SYSTEM_POWER_STATUS; its first byte is 0 without mains, 255 if unknown
    return bool(ctypes.windll.kernel32.GetSystemPowerStatus(status)) and status.raw[0] == 0
