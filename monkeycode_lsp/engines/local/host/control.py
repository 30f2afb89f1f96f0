"""Looking at the engine processes that run, and ending them: for the command line, and when one takes over from another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import Literal

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host import launch, registry, rendezvous
from monkeycode_lsp.engines.local.host.link import HungError, Link, LinkLostError, Patience, kill
from monkeycode_lsp.engines.local.host.peers import ELSEWHERE
from monkeycode_lsp.engines.local.host.registry import Note
from monkeycode_lsp.engines.local.host.rendezvous import Place
from monkeycode_lsp.errors import EngineUnavailableError

logger = logging.getLogger(__name__)

_PATIENCE = Patience(welcome_s=2.0)
_LOOK_S = 2.0
_POLITE_S = 5.0
_FIRM_S = 3.0


class Seen(msgspec.Struct, frozen=True):
    """One process, its note and what it says of itself."""

    note: Note
    status: wire.Status | None
    """None: it does not answer."""


async def look() -> list[Seen]:
    """Every engine process of this user that is there, the newest first.  Raises `EngineUnavailableError`."""
    notes = await asyncio.to_thread(registry.all_notes)
    seen = await asyncio.gather(*(_look(place, note) for place, note in notes))
    return [one for one in seen if one is not None]


async def _look(place: Place, note: Note) -> Seen | None:
    """None: nobody is there, the process has crashed."""
    try:
        link = await Link.open(place.socket, purpose="control", patience=_PATIENCE)
    except HungError:
        return Seen(note, None)
    except OSError:
        return None
    try:
        async with asyncio.timeout(_LOOK_S):
            return Seen(note, await link.status())
    except (TimeoutError, LinkLostError):
        return Seen(note, None)
    finally:
        await link.aclose()


async def retire(newer: Place, note: Note) -> None:
    """Ask all older processes for the same model to leave with their last client, and clear up after those that crashed.

    What does not answer is left alone.
    """
    with contextlib.suppress(EngineUnavailableError):
        notes = await asyncio.to_thread(registry.all_notes)
        older = [place for place, other in notes if place != newer and (other.kind, other.model) == (note.kind, note.model)]
        await asyncio.gather(*(_say(place, wire.Retire()) for place in older))


async def stop(place: Place, note: Note) -> Literal["left", "ended", "gone"]:
    """See that a process is gone: politely, then firmly.  gone: it was not there.

    Raises `EngineUnavailableError` if it does not answer and is out of reach.
    """
    try:
        link = await Link.open(place.socket, purpose="control", patience=_PATIENCE)
    except HungError as exc:
        return await _end(place, note.pid if exc.pid is None else exc.pid)
    except OSError:
        await launch.sweep(place)
        return "gone"
    try:
        link.send(wire.Shutdown())
        async with asyncio.timeout(_POLITE_S):
            await link.ended()
        if await _is_gone(link.pid, _POLITE_S):
            return "left"
    except TimeoutError:
        pass
    finally:
        await link.aclose()
    return await _end(place, note.pid if link.pid is None else link.pid)


async def _end(place: Place, pid: int) -> Literal["ended"]:
    if pid == ELSEWHERE:
        raise launch.out_of_reach(place)
    # It ends because somebody wants it to: without its note nobody takes that for a crash.
    await asyncio.to_thread(rendezvous.remove, place.note)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGTERM)
    if not await _is_gone(pid, _FIRM_S):
        kill(pid)
        await _is_gone(pid, _FIRM_S)
    await launch.sweep(place)
    return "ended"


async def _is_gone(pid: int | None, within_s: float) -> bool:
    """Whether no process has this number any more, or only one that its parent has still to bury."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while pid and is_running(pid):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
                await asyncio.sleep(0.05)
            return True
    return False


def is_running(pid: int) -> bool:
    """Whether there is such a process that is more than an entry in its parent's books."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a path that the system made up
            is_dead = file.read().rpartition(")")[2].split()[0] == "Z"
        # The first of its threads may be dead while others still hold what was open.
        return not is_dead or len(os.listdir(f"/proc/{pid}/task")) > 1  # noqa: PTH208 - as above
    except ProcessLookupError:
        return False
    except OSError:
        pass
    if os.name == "nt":
        return False  # a signal would end it there, and its connection has told already
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _say(place: Place, message: wire.FromClient) -> None:
    try:
        link = await Link.open(place.socket, purpose="control", patience=_PATIENCE)
    except HungError:
        return
    except OSError:
        with contextlib.suppress(OSError):
            await launch.sweep(place)
        return
    link.send(message)
    # Its pong says that the message before it was read.
    await link.ping(timeout_s=_LOOK_S)
    await link.aclose()
