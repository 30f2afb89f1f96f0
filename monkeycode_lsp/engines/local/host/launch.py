"""Finding the engine process of a place, or bringing it up: from its command to a model that answers."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from dataclasses import dataclass

import msgspec

from monkeycode_lsp.engines.local import explain, wire
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.host import jsontext, logfile, registry, rendezvous
from monkeycode_lsp.engines.local.host.child import Child
from monkeycode_lsp.engines.local.host.link import HungError, Link, LinkLostError, NotWelcomeError, Patience, kill
from monkeycode_lsp.engines.local.host.peers import ELSEWHERE
from monkeycode_lsp.engines.local.host.registry import Note
from monkeycode_lsp.engines.local.host.rendezvous import CANNOT_LISTEN, Place
from monkeycode_lsp.engines.local.host.startlock import StartLock
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.errors import EngineBusyError, EngineUnavailableError

logger = logging.getLogger(__name__)

WORKER = (sys.executable, "-P", "-m", "monkeycode_lsp.engines.local.host.worker")
"""`-P`: what lies in the user's working folder is never imported."""
_WELCOME_PAUSES_S = (0.0, 0.02, 0.05, 0.1, 0.3, 0.5, 1.0, 2.0)
"""Between tries to be let in: a process that is leaving needs a moment."""
_EMPTY_PAUSES_S = (0.0, 0.3)
"""Between tries to find nobody: of a process that was killed the last threads may still hold its socket."""
_BURIAL_S = 5.0
_LOCK_POLL_S = 0.05


@dataclass(frozen=True)
class Running:
    """An engine process that answers."""

    place: Place
    link: Link
    ready: wire.Ready
    child: Child | None = None
    """None: another server has started it."""


class Recipe(msgspec.Struct, frozen=True):
    """How a process is started, whatever it loads."""

    command: tuple[str, ...]
    note: Note
    linger_s: float = 0.0
    idle_s: float = 0.0
    loopback: bool = False
    timeout_s: float = 300.0
    """Longest time from its start to a model that answers."""
    patience: Patience = Patience()


async def find(place: Place, patience: Patience) -> Link | None:
    """A connection to the process that is there; None: there is none.  One that hangs is ended.

    Raises `EngineUnavailableError` if it is another user's or hangs out of reach, `EngineBusyError` if it lets nobody in.
    """
    for pause_s in _WELCOME_PAUSES_S:
        await asyncio.sleep(pause_s)
        note = await asyncio.to_thread(registry.read, place)
        is_loaded = note is not None and note.is_loaded
        welcome_s = patience.welcome_s if is_loaded else max(patience.welcome_s, patience.loading_s)
        try:
            return await Link.open(place.socket, patience=msgspec.structs.replace(patience, welcome_s=welcome_s))
        except NotWelcomeError:
            continue
        except HungError as exc:
            pid = note.pid if exc.pid is None and note is not None else exc.pid
            if pid == ELSEWHERE:
                raise out_of_reach(place) from exc
            logger.warning("The engine process %s does not answer; it is stopped.", pid)
            kill(pid)
        except PermissionError as exc:
            raise EngineUnavailableError(f"The engine's socket {place.socket} is not ours.", remedy="Remove it.") from exc
        except OSError:
            return None
    raise EngineBusyError("The engine process lets nobody in; it is tried again soon.")


def out_of_reach(place: Place) -> EngineUnavailableError:
    """A process that does not answer, and that nobody here can end."""
    return EngineUnavailableError(
        f"The engine process at {place.socket} does not answer, and runs in another container.",
        remedy="End it there, or give each container a runtime folder of its own.",
    )


async def join(place: Place, recipe: Recipe) -> Running | None:
    """The process that is there, once its model is loaded; None: there is none, or not any more.  Raises as `find`."""
    link = await find(place, recipe.patience)
    if link is None:
        return None
    running: Running | None = None
    try:
        async with asyncio.timeout(recipe.timeout_s):
            told = await link.loaded()
        if isinstance(told, wire.Ready):
            running = Running(place, link, told)
    except TimeoutError:
        link.kill()
    except LinkLostError:
        pass
    finally:
        if running is None:
            await link.aclose()
    return running


async def start(place: Place, recipe: Recipe, options: Options, attempt: Attempt) -> Running | Fall:
    """Start a process and wait until it answers, or tell how it fell.  Only for whoever holds the place's lock.

    Raises `OSError` if there is no such program, `EngineUnavailableError` if it cannot listen.  When this is cancelled the process
    stays for others who wait for it, and leaves by itself if there are none.
    """
    await asyncio.to_thread(registry.clear, place)
    log = logfile.path(place.key)
    note = msgspec.structs.replace(recipe.note, log=str(log), attempt=attempt)
    more = [f"--linger={recipe.linger_s}", f"--idle={recipe.idle_s}", *(["--loopback"] if recipe.loopback else [])]
    arguments = [f"--socket={place.socket}", f"--options={jsontext.dump(options)}", f"--note={jsontext.dump(note)}", *more]
    child = await Child.start([*recipe.command, *arguments], log)
    link: Link | None = None
    try:
        async with asyncio.timeout(recipe.timeout_s):
            await child.listens()
            link = await Link.open(place.socket, patience=msgspec.structs.replace(recipe.patience, welcome_s=recipe.patience.loading_s))
            told = await link.loaded()
        if isinstance(told, wire.Ready):
            return Running(place, link, told, child)
        return await _fallen(place, child, link, failed=told)
    except (OSError, TimeoutError) as exc:
        return await _fallen(place, child, link, hung=isinstance(exc, TimeoutError | HungError))
    except asyncio.CancelledError:
        if link is not None:
            await link.aclose()
        raise


async def _fallen(place: Place, child: Child, link: Link | None, *, failed: wire.LoadFailed | None = None, hung: bool = False) -> Fall:
    """What became of a start that went wrong, when nothing of it is left."""
    if link is not None:
        await link.aclose()
    hung = hung or (link is not None and link.was_hung)
    status = None if hung else await child.ended(timeout_s=_BURIAL_S)
    await child.kill()
    left = await asyncio.to_thread(registry.clear, place)
    build = link.build if link is not None and link.build is not None else left.build if left is not None else None
    if status == CANNOT_LISTEN and child.complaint:
        number, _, why = child.complaint.partition(" ")
        in_the_way = await asyncio.to_thread(rendezvous.in_the_way, place)
        raise explain.cannot_listen(why, number=int(number) if number.isdecimal() else None, in_the_way=in_the_way)
    return Fall(status, build=build, failed=failed, last_words=await asyncio.to_thread(lambda: child.last_words))


async def lock(place: Place) -> StartLock | None:
    """Hold the place's lock; None: another process has it.  Raises `OSError`."""
    taking = asyncio.create_task(asyncio.to_thread(StartLock.take, place.lock))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(_release)
        raise


def _release(taking: asyncio.Task[StartLock | None]) -> None:
    """Nobody waits for it any more."""
    if not taking.cancelled() and taking.exception() is None and (held := taking.result()) is not None:
        held.release()


async def pause(since: float, timeout_s: float) -> None:
    """Let whoever holds the lock go on.  Raises `EngineBusyError` when that has taken too long."""
    if time.monotonic() - since > timeout_s:
        raise EngineBusyError("Another window is still starting the engine process.")
    await asyncio.sleep(_LOCK_POLL_S)


async def sweep(place: Place) -> Note | None:
    """Take away what a crashed process left, and return its note; None: nothing lies there, or others see to it."""
    try:
        held = await lock(place)
    except OSError:
        return None  # what stands in the way is told when a process is to be started
    if held is None:
        return None
    try:
        if await _is_empty(place):
            return await asyncio.to_thread(registry.clear, place)
        return None
    finally:
        held.release()


async def _is_empty(place: Place) -> bool:
    for pause_s in _EMPTY_PAUSES_S:
        await asyncio.sleep(pause_s)
        try:
            link = await Link.open(place.socket, purpose="control", patience=Patience(welcome_s=1.0))
        except (HungError, NotWelcomeError):
            continue
        except OSError:
            return True
        await link.aclose()
        return False
    return False
