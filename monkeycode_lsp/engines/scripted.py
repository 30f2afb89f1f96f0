"""An engine that says what it is told: for tests, demos and for trying an editor without a model.

A script is a JSON list; each answer is used once, the last one for ever.  An answer is a string,
or an object::

    {"chunks": ["ret", "urn 1"], "delayMs": 20, "firstDelayMs": 200, "fault": "",
     "finish": "stop", "logprob": -0.1}

`fault` is "break" (the stream ends in the middle), "refuse" or "unavailable".
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.domain import Chunk, Finish, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.errors import EngineRefusedError, EngineUnavailableError, StreamBrokenError


class Answer(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One answer of a script."""

    chunks: tuple[str, ...] = ()
    first_delay_ms: float = 0.0
    delay_ms: float = 0.0
    fault: Literal["", "break", "refuse", "unavailable"] = ""
    finish: Literal["stop", "length"] = "stop"
    logprob: float | None = None
    """Of each chunk."""


class ScriptedEngine:
    """Answers in the order of its script; keeps every prompt it was given and how each stream ended."""

    def __init__(self, answers: Sequence[Answer | str], *, family: str = "qwen2.5-coder") -> None:
        self._answers = [Answer(chunks=(answer,)) if isinstance(answer, str) else answer for answer in answers] or [Answer()]
        self._family = family
        self.prompts: list[Prompt] = []
        self.n_closed_early = 0
        self.n_running = 0
        said = hashlib.blake2b(msgspec.json.encode(self._answers), digest_size=8)
        self._fingerprint = f"scripted:{said.hexdigest()}"

    async def ready(self) -> Model:
        family = prompt.by_name(self._family)
        tells = any(answer.logprob is not None for answer in self._answers)
        return Model("scripted", family, self._fingerprint, context_tokens=8192, is_here=True, tells_confidence=tells)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:  # noqa: A002, RUF100 - the protocol's name
        answer = self._answers[min(len(self.prompts), len(self._answers) - 1)]
        self.prompts.append(prompt)
        self.n_running += 1
        whole = False
        try:
            if answer.fault == "unavailable":
                raise EngineUnavailableError("The scripted engine was told to be unavailable.")
            if answer.fault == "refuse":
                raise EngineRefusedError("The scripted engine was told to refuse.")
            await asyncio.sleep(answer.first_delay_ms / 1e3)
            for index, text in enumerate(answer.chunks):
                if index:
                    await asyncio.sleep(answer.delay_ms / 1e3)
                yield Chunk(text, logprob=answer.logprob, n_tokens=1)
            if answer.fault == "break":
                raise StreamBrokenError("The scripted engine was told to break off.")
            whole = True
            yield Chunk("", finish=Finish(answer.finish), usage=Usage(reused=0, read=len(prompt.prefix), generated=len(answer.chunks)))
        finally:
            self.n_running -= 1
            self.n_closed_early += not whole

    async def aclose(self) -> None:
        """Nothing was started."""


def from_settings(settings: config.Scripted) -> ScriptedEngine:
    """The engine of the settings.  Blocking file read, of a file meant for it; raises `EngineUnavailableError`."""
    if not settings.script:
        return ScriptedEngine([Answer(chunks=(settings.text,), first_delay_ms=settings.delay_ms)])
    try:
        answers = msgspec.json.decode(Path(settings.script).expanduser().read_bytes(), type=list[Answer | str])
    except (OSError, msgspec.MsgspecError) as exc:
        raise EngineUnavailableError(
            f"The script {settings.script} cannot be used: {exc}.", remedy="See the setting scripted.script."
        ) from exc
    return ScriptedEngine(answers)
