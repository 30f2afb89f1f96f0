"""From a reply to chunks, within the time that each piece may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.domain import Chunk
from monkeycode_lsp.engines.remote.stream.answer import Answer

if TYPE_CHECKING:
    from monkeycode_lsp.engines.remote.http.reply import Reply

GRACE_S = 0.25
"""How long the end of a stream may take once the answer is whole: usage, `[DONE]`, the last empty piece."""
PATIENCE = 6
"""How many times its limit a pause may last while there are events without text; they could go on for ever."""


class Limits(msgspec.Struct, frozen=True):
    """How long to wait inside one answer."""

    first_s: float
    """For the first event, and between events until there is text: servers report progress while they read."""
    stall_s: float
    """Between events once there is text."""


async def read(reply: Reply, answer: Answer, limit: asyncio.Timeout, limits: Limits) -> AsyncGenerator[Chunk, None]:
    """The chunks of an answer whose head has come.  Moves `limit` on as long as there is progress, and closes `reply`."""
    now = asyncio.get_running_loop().time
    end = now() + PATIENCE * limits.first_s
    try:
        async with aclosing(reply.pieces()) as pieces:
            async for piece in pieces:
                n_events, n_text = answer.n_events, answer.n_text
                for chunk in answer.feed(piece):
                    if answer.cut:  # the server does not know yet: stop it before anything else
                        await reply.aclose()
                    yield chunk
                if answer.cut:
                    return
                if answer.whole:
                    limit.reschedule(min(limit.when() or 0.0, now() + GRACE_S))
                elif answer.n_events > n_events:
                    pause = limits.stall_s if answer.n_text else limits.first_s
                    if answer.n_text > n_text:
                        end = now() + PATIENCE * pause
                    limit.reschedule(min(now() + pause, end))
        for chunk in answer.close():
            yield chunk
    finally:
        await reply.aclose()
