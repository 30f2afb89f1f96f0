"""Whether a llama-server gets on, asked when it has been silent for long.

`/health` is answered by whoever speaks HTTP over there, so it says nothing of the one that decodes.  That one answers `/lora-adapters`
between two batches (older servers: `/slots`), and what `/slots` says changes with every batch.
"""

from __future__ import annotations

import asyncio

import msgspec

from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.errors import EngineError


class Trust(msgspec.Struct, frozen=True):
    """How long a server is trusted that says nothing."""

    silent_s: float = 5.0
    """Asks, one after the other, have got nothing for so long: it is asked whether it is well."""
    health_s: float = 10.0
    """For the answer to that."""
    progress_s: float = 30.0
    """For a sign of progress; one batch takes less."""
    look_s: float = 1.0
    """Between two looks."""


class _Slot(msgspec.Struct):
    is_processing: bool = False


async def is_well(endpoint: Endpoint, trust: Trust) -> bool:
    """False: it hangs.  One that has ended is no case of this, and one that cannot be asked is believed."""
    try:
        async with asyncio.timeout(trust.health_s):
            await endpoint.healthy()
        async with asyncio.timeout(trust.progress_s):
            before: bytes | None = None
            while True:
                await endpoint.look("/lora-adapters")
                now = await endpoint.look("/slots")
                if now is None or not _is_busy(now) or now != (before or now):
                    return True
                before = now
                await asyncio.sleep(trust.look_s)
    except TimeoutError:
        return False
    except EngineError:
        return True


def _is_busy(slots: bytes) -> bool:
    try:
        return any(slot.is_processing for slot in msgspec.json.decode(slots, type=list[_Slot]))
    except msgspec.MsgspecError:
        return False
