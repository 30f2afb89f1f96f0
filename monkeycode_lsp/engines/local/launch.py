"""Bringing an engine process up, from its command to a model that answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from monkeycode_lsp.engines.local import rendezvous, wire
from monkeycode_lsp.engines.local.child import Child
from monkeycode_lsp.engines.local.ladder import Fall
from monkeycode_lsp.engines.local.link import Link, LinkLostError

WORKER = (sys.executable, "-P", "-m", "monkeycode_lsp.engines.local.worker")
"""`-P`: what lies in the user's working folder is never imported."""


@dataclass(frozen=True)
class Running:
    """An engine process that answers."""

    child: Child
    link: Link
    ready: wire.Ready

    async def stop(self) -> int:
        """End it; returns its exit status."""
        await self.link.aclose()
        return await self.child.stop()


async def launch(command: Sequence[str], *, idle_s: float, timeout_s: float, loopback: bool) -> Running | Fall:
    """Start a worker with its model's arguments and wait until it answers, or tell how it fell.

    Raises `OSError` if there is no such program.  When it is cancelled, no process is left.
    """
    path = rendezvous.new_path()
    more = [f"--socket={path}", "--with-parent", f"--idle={idle_s}", *(["--loopback"] if loopback else [])]
    child = await Child.start([*command, *more], path)
    link: Link | None = None
    running: Running | None = None
    try:
        async with asyncio.timeout(timeout_s):
            await child.listens()
            link = await Link.open(path)
            told = await link.loaded()
        if isinstance(told, wire.Ready):
            running = Running(child, link, told)
            return running
        return Fall(await _gone(child, link), build=link.build, failed=told)
    except TimeoutError:
        status = None
        await child.kill()
    except (OSError, LinkLostError):
        status = await _gone(child, link)
    finally:
        if running is None:
            if link is not None:
                await link.aclose()
            await child.kill()
    return Fall(status, build=link.build if link else None, last_words=child.last_words)


async def _gone(child: Child, link: Link | None) -> int:
    """Its exit status, after its connection has ended."""
    if link is not None:
        await link.aclose()
    return await child.stop()
