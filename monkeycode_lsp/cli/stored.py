"""Where suggestions are kept beyond one window's memory, and whether that is in order: for `cache` and `doctor`.

Every look is bounded in time, tells what it found instead of failing, and never a password.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.errors import ConfigError, StorageError
from monkeycode_lsp.models import package_client
from monkeycode_lsp.recall import address, disk, resolver, shared
from monkeycode_lsp.recall.trouble import Trouble

if TYPE_CHECKING:
    from monkeycode_lsp.recall.redis_link import Link

_DISK_S = 5.0
_TEAM_S = 2.0
_N_QUESTIONS = 4
"""The first one connects."""

_LONGEST_S = 1e10
"""A damaged database can say anything."""

T = TypeVar("T")


class OnDisk(msgspec.Struct, frozen=True, rename="camel"):
    """What one folder holds, and what hinders its use."""

    folder: str
    off: str = ""
    """The setting that switches it off; empty: it is on."""
    suggestions: int = 0
    expired: int = 0
    bytes: int = 0
    oldest_seconds: float | None = None
    newest_seconds: float | None = None
    trouble: str = ""
    remedy: str = ""


class Team(msgspec.Struct, frozen=True, rename="camel"):
    """A team's server."""

    address: str
    """Host and port, or the socket's path."""
    off: str = ""
    answer_ms: float | None = None
    trouble: str = ""
    remedy: str = ""


def on_disk(settings: config.Cache) -> OnDisk:
    """Raises nothing."""
    off = _off(settings, "diskTtlSeconds", settings.disk_ttl_seconds)
    try:
        folder = disk.folder(settings.directory)
    except ConfigError as exc:
        return OnDisk(settings.directory, off, trouble=exc.message, remedy=exc.remedy)
    try:
        return _within(_DISK_S, lambda: _look(folder, off))
    except TimeoutError:
        return OnDisk(
            str(folder),
            off,
            trouble=f"The disk of the cache folder {folder} does not answer.",
            remedy="Set `cache.directory` to a folder on another one.",
        )


def team(settings: config.Cache) -> Team | None:
    """None where no server is set.  Raises nothing."""
    if not settings.shared_url:
        return None
    try:
        where = address.parse(settings.shared_url)
    except ConfigError as exc:
        return Team("", trouble=exc.message, remedy=exc.remedy)
    off = _off(settings, "sharedTtlSeconds", settings.shared_ttl_seconds)
    return Team(where.name, off) if off else _reached(where)


def words(error: BaseException, folder: Path) -> tuple[str, str]:
    """What went wrong with the folder, and what mends it."""
    from monkeycode_lsp.recall import disk_trouble  # noqa: PLC0415 - a Python may be without SQLite

    if isinstance(error, StorageError):
        return error.message, error.remedy
    kind = disk_trouble.of(error)
    if kind is disk_trouble.Trouble.DAMAGED:
        what = f"The database in the cache folder {folder} is damaged; the next window sets it aside and begins a new one."
        return what, "`monkeycode cache clear` removes it at once."
    return disk_trouble.told(kind, folder, error)


def _off(settings: config.Cache, name: str, ttl_s: int) -> str:
    if not settings.enabled:
        return "`cache.enabled` is false"
    return "" if ttl_s else f"`cache.{name}` is 0"


def _look(folder: Path, off: str) -> OnDisk:
    try:
        from monkeycode_lsp.recall import disk_care  # noqa: PLC0415 - slow, and a Python may be without SQLite
    except ImportError as exc:
        return OnDisk(str(folder), off, trouble=f"This Python cannot keep suggestions on disk ({exc}).", remedy="Install it with SQLite.")
    kept, what, remedy = disk_care.Kept(), "", ""
    try:
        kept = disk_care.look(folder)
        if not off:
            disk_care.try_out(folder)
    except (StorageError, *disk_care.TROUBLES) as exc:
        what, remedy = words(exc, folder)
    now = time.time()
    oldest, newest = (None if at is None else min(max(0.0, now - at), _LONGEST_S) for at in (kept.oldest, kept.newest))
    return OnDisk(str(folder), off, kept.n, kept.n_expired, kept.n_bytes, oldest, newest, what, remedy)


def _reached(where: address.Address) -> Team:
    try:
        from monkeycode_lsp.recall.redis_link import Link  # noqa: PLC0415 - slow, and its package is an extra
    except ImportError:
        missing = "cannot be asked without the package redis."
        return Team(where.name, trouble=missing, remedy=f"Install it: {package_client.install_line('shared')}")
    try:
        found = _within(_TEAM_S, lambda: _ask(where, Link))
    except TimeoutError:
        found = Trouble.SILENT
    except ConfigError as exc:
        return Team(where.name, trouble=exc.message, remedy=exc.remedy)
    if isinstance(found, Trouble):
        what, _, remedy = found.value.partition(". ")
        return Team(where.name, trouble=f"{what.removesuffix('.')}.", remedy=remedy)
    return Team(where.name, answer_ms=found)


def _ask(where: address.Address, make: Callable[..., Link]) -> float | Trouble:
    """The quickest answer in milliseconds.  Raises `ConfigError`."""
    if not where.host:
        return asyncio.run(_measure(make(where, most_connections=1)))
    found: float | Trouble = Trouble.UNREACHABLE
    for number in resolver.resolve(where.host):
        link = make(where, most_connections=1)
        link.go_to(number)
        found = asyncio.run(_measure(link))
        if found is not Trouble.UNREACHABLE:
            break
    return found


async def _measure(link: Link) -> float | Trouble:
    quickest_s = float("inf")
    try:
        for _ in range(_N_QUESTIONS):
            begun = time.perf_counter()
            found = await link.read("monkeycode:", most_bytes=0)
            if isinstance(found, Trouble):
                return found
            quickest_s = min(quickest_s, time.perf_counter() - begun)
    finally:
        await link.aclose()
    return Trouble.SLOW if quickest_s > shared.PATIENCE_S else quickest_s * 1e3


def _within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns or raises; `TimeoutError` if that takes too long, and then nobody waits for it, not even at the end."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(exc)

    threading.Thread(target=run, daemon=True).start()
    return done.result(seconds)
