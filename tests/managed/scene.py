"""A model file that tells the stand-in what to do, and what the stand-in noted."""

from __future__ import annotations

import asyncio
import contextlib
import struct

from monkeycode_lsp import config

N_LAYERS = 8
SETTINGS = config.Local(slots=2, context_tokens=512, linger_seconds=0)
"""The host goes with its last client, so that no test waits for it."""


def _text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def header(behaviour):
    """A GGUF file without tensors, named after what the stand-in is to do."""
    values = [("general.architecture", 8, _text("llama")), ("general.name", 8, _text(behaviour or "well"))]
    values.append(("llama.block_count", 4, struct.pack("<I", N_LAYERS)))
    pairs = b"".join(_text(key) + struct.pack("<I", kind) + value for key, kind, value in values)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + pairs


class Notes:
    """What the stand-in noted, over however many processes."""

    def __init__(self, path):
        self.path = path

    def lines(self, word):
        with contextlib.suppress(FileNotFoundError):
            return [line for line in self.path.read_text().splitlines() if line.startswith(word)]
        return []

    @property
    def starts(self):
        """The command lines with which the program was started."""
        return [line.split(" ", 2)[2] for line in self.lines("started")]

    @property
    def pids(self):
        return [int(line.split()[1]) for line in self.lines("started")]

    async def until(self, word, n_times=1):
        async with asyncio.timeout(20):
            while len(self.lines(word)) < n_times:  # noqa: ASYNC110 - a file cannot be awaited
                await asyncio.sleep(0.01)
