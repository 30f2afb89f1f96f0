"""No engine: says why, once asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.errors import EngineUnavailableError


class AbsentEngine:
    """Answers every ask with the reason why there is nothing to answer it."""

    def __init__(self, error: EngineUnavailableError) -> None:
        self._error = error

    async def ready(self) -> Model:
        raise self._error

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        del prompt
        raise self._error
        yield Chunk("")  # makes this a generator, as the protocol wants

    async def aclose(self) -> None:
        """Nothing was started."""
