"""Watching one suggestion arrive through the server, as an editor would ask for it.

A reply is never taken back, so a growing suggestion is seen by asking with a short deadline, again and
again: each ask joins the generation that is running and gets what there is.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from monkeycode_lsp.cli.samples import Sample
from monkeycode_lsp.client import CAPABILITIES, Client, ClientError, start
from monkeycode_lsp.errors import MonkeyCodeError

SERVE = (sys.executable, "-P", "-m", "monkeycode_lsp", "serve", "--stdio", "--log-level", "error")
DEADLINE_MS = 60
_PATIENCE_S = 180.0
_REPLY_S = 30.0
_STARTING_S = 0.1
_SLOW_S = 10.0
_COLUMNS_ARE_CHARACTERS = {**CAPABILITIES, "general": {"positionEncodings": ["utf-32"]}}
_NAME = "MonkeyCode: "


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """What `monkeycode.why` says of one ask, as far as it is needed here."""

    outcome: str
    reason: str
    stages_ms: dict[str, float] = {}
    first_ms: float | None = None
    generated_tokens: int | None = None
    at_s: float = 0.0
    """When the reply came, by our clock."""


class Seen(msgspec.Struct, frozen=True):
    """How one suggestion came."""

    text: str = ""
    reason: str = ""
    """Why there is none, if there is none."""
    failed: bool = False
    """There is none because the engine could not answer."""
    first_ms: float = 0.0
    """From the ask to the first text."""
    total_ms: float = 0.0
    n_tokens: int | None = None
    again_ms: float | None = None
    """The same ask once more, from recall; None: it was not recalled."""

    @property
    def tokens_per_second(self) -> float | None:
        """After the first one."""
        seconds = (self.total_ms - self.first_ms) / 1e3
        return (self.n_tokens - 1) / seconds if self.n_tokens is not None and self.n_tokens > 1 and seconds > 0 else None


@asynccontextmanager
async def server(
    settings: Mapping[str, Any], log: Path, *, command: Sequence[str] = SERVE, root_uri: str | None = None
) -> AsyncIterator[Client]:
    """A running server that has been introduced to these settings; what it logs goes to `log`."""
    with log.open("wb") as stderr:
        async with start(command, stderr=stderr.fileno()) as client:
            try:
                async with asyncio.timeout(_REPLY_S):
                    await client.initialize(settings, root_uri=root_uri, capabilities=_COLUMNS_ARE_CHARACTERS)
                yield client
            except (ClientError, TimeoutError, ConnectionError) as exc:
                last_words = await asyncio.to_thread(_last_line, log)
                raise MonkeyCodeError(
                    f"The server does not answer. {last_words}".strip(), remedy="`monkeycode doctor` looks for the cause."
                ) from exc


async def suggestion(
    client: Client, sample: Sample, uri: str, grown: Callable[[str], None], slow: Callable[[], None], *, slow_s: float = _SLOW_S
) -> Seen:
    """Ask until the answer is whole; `grown` hears each longer text, `slow` once if there is none after `slow_s`."""
    client.open(uri, sample.language, sample.text)
    begin = time.perf_counter()
    give_up, patient_until = begin + _PATIENCE_S, begin + slow_s
    text, first_ms = "", 0.0
    generated = Told("", "")
    while True:
        asked = time.perf_counter()
        reply, told = await _ask(client, sample, uri)
        if not reply and told.at_s > patient_until:
            patient_until = give_up
            slow()
        if told.outcome == "failed" and told.reason not in messages(client) and told.at_s < give_up:
            await asyncio.sleep(_STARTING_S)  # the engine is starting: the model has not been asked yet
            begin = time.perf_counter()
            continue
        if told.generated_tokens is not None:
            generated = told  # not the last one for certain: an answer that became whole just now is recalled when asked again
        if reply != text:
            text = reply
            first_ms = first_ms or (told.at_s - begin) * 1e3
            grown(text)
        if (told.at_s - asked) * 1e3 < DEADLINE_MS or told.at_s > give_up:
            break
    if not text:
        return Seen(reason=told.reason, failed=told.outcome == "failed")
    return Seen(
        text=text,
        first_ms=min(first_ms, generated.first_ms or first_ms),  # what is seen comes in steps of the deadline; the engine knows better
        total_ms=(told.at_s - begin) * 1e3,
        n_tokens=generated.generated_tokens,
        again_ms=await _again(client, sample, uri, text),
    )


async def _again(client: Client, sample: Sample, uri: str, text: str) -> float | None:
    asked = time.perf_counter()
    reply, told = await _ask(client, sample, uri)
    return (told.at_s - asked) * 1e3 if reply == text and "engine" not in told.stages_ms else None


async def _ask(client: Client, sample: Sample, uri: str) -> tuple[str, Told]:
    """The suggestion, empty if there is none, and how the ask ended."""
    async with asyncio.timeout(_REPLY_S):
        _, future = client.ask(uri, sample.line, sample.column, invoked=True)
        result = await future
        at_s = time.perf_counter()
        outcomes = await client.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [1]})
    items = result["items"] if result else []
    return items[0]["insertText"] if items else "", msgspec.structs.replace(msgspec.convert(outcomes[-1], Told), at_s=at_s)


def messages(client: Client) -> list[str]:
    """What the server told its user."""
    return [
        str(message["params"]["message"]).removeprefix(_NAME)
        for message in client.messages
        if message["method"] in {"window/showMessage", "window/showMessageRequest"}
    ]


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"Its last words: {lines[-1]}" if lines else ""
