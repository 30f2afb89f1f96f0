"""A workspace, windows on it, and what their indexes say."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from monkeycode_lsp.index import wire
from monkeycode_lsp.index.client import Index, folder_name

NEVER = wire.Pace(walk_every_s=1e6, unwatched_every_s=1e6)
"""Only what is told is found."""


def write(top, files):
    """`files`: text by relative path."""
    for path, text in files.items():
        place = top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())


class Window(Index):
    """One window's index, and all that it said."""

    def __init__(self, folder, store, *, pace=NEVER, **more):
        loop = asyncio.get_running_loop()
        self.warned = []
        self.states = []
        self._news = asyncio.Event()

        def later(what, text):
            loop.call_soon_threadsafe(self._note, what, text)

        more = {"ignore_files": (".gitignore", ".monkeycodeignore"), "patience_s": 20, "pace": pace} | more
        super().__init__(folder, store, warn=lambda text: later(self.warned, text), heard=lambda state: later(self.states, state), **more)

    def _note(self, what, text):
        what.append(text)
        self._news.set()

    async def until(self, is_so):
        """Wait until `is_so()`, which is asked whenever there is news."""
        async with asyncio.timeout(60):
            self._news.clear()
            while not (found := await is_so() if asyncio.iscoroutinefunction(is_so) else is_so()):
                await self._news.wait()
                self._news.clear()
        return found

    async def ready(self):
        await self.until(lambda: self.states and self.states[-1].state == "ready")

    async def find(self, *names, language="python", imported=(), path=""):
        """Each definition as `path:name`."""
        return [f"{found.path}:{found.name}" for found in await self.definitions(names, language, imported, path=path)]

    async def comes(self, expected, *names, **more):
        """Wait until that is what is found."""

        async def is_so():
            return await self.find(*names, **more) == expected

        await self.until(is_so)


@asynccontextmanager
async def window(folder, store, **more):
    made = Window(folder, store, **more)
    made.start()
    try:
        yield made
    finally:
        await made.aclose()


def is_running(pid):
    """Whether there is such a process, other than one that waits to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


async def indexed(top, store, files):
    """The database of a workspace whose window has left it."""
    write(top, files)
    window = Window(top, store)
    window.start()
    await window.ready()
    await window.aclose()
    return store / f"{folder_name(top)}.db"
