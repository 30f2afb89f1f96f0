"""The seam between the pipeline and whatever streams tokens.

Closing the iterator that `stream` returns is the only way to stop a model; once its `aclose()`
has returned, nothing works on that prompt any more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.prompt import Family


class Model(msgspec.Struct, frozen=True):
    """What an engine knows of the model it serves."""

    name: str
    """For people and logs: `Qwen2.5-Coder-0.5B-Instruct Q4_K_M`."""
    family: Family | None
    """How prompts are rendered; None: the model cannot fill in the middle."""
    fingerprint: str
    """Changes whenever the same prompt could get another answer: engine kind, model file or name, address."""
    context_tokens: int | None = None
    """Prompt plus answer; None where the engine does not say."""
    takes_background: bool = False
    """Whether it does work that nobody waits for (see `Priority`) without holding up what somebody waits for;
    a prompt with `max_tokens` 0 is only read, so that the next one finds it in the KV cache."""
    verifies_drafts: bool = False
    """Whether `Prompt.draft` is of use to it."""
    is_here: bool = False
    """Whether it, and every other that may stand in for it, is on this machine."""
    heals: bool = False
    """Whether `Prompt.heal` is of use to it: it begins an answer with the cut-off beginning of a token."""
    tells_confidence: bool = False
    """Whether chunks have log-probabilities."""


class Engine(Protocol):
    """One source of completions."""

    async def ready(self) -> Model:
        """Start what must be started and tell which model answers.

        Cheap when it is ready already.  Raises `EngineUnavailableError` (with a remedy) when it
        cannot run, `EngineBusyError` while it is loading and the caller should not wait.
        """
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Stream the answer; the last chunk has `finish`.

        Text never holds half a character and never a control token.  Raises an `EngineError`.
        """
        ...

    async def aclose(self) -> None:
        """Stop everything that this engine started.  Can be called twice."""
        ...
