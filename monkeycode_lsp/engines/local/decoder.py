"""The seam between the process that serves clients (`service`) and whatever decodes tokens.

`service` calls all of it from one thread, never two at once.  Tests put another decoder behind the same service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Generate, Ready


class Options(msgspec.Struct, frozen=True):
    """How the model is loaded."""

    model: Path
    gpu_layers: int = -1
    """Layers on the GPU; -1: all."""
    gpu_share: float = 1.0
    """Share of those layers that really goes there: less than 1 after the GPU ran out of memory."""
    extra_buffers: bool = True
    """Repacked weights and AMX tiles.  Off, some builds live that otherwise die of an illegal instruction."""
    context_tokens: int = 4096
    batch_tokens: int = 512
    threads: int = 0
    """0: one per physical core."""
    flash_attention: bool = True
    """Only where a GPU computes."""
    mmap: bool = True


class LoadError(Exception):
    """The model cannot be loaded."""

    def __init__(self, kind: Literal["runtime", "model", "memory", "internal"], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class GenerationError(Exception):
    """A prompt cannot be answered; the decoder stays usable."""

    def __init__(
        self, kind: Literal["overflow", "template", "busy", "decode", "internal"], message: str, *, limit_tokens: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.limit_tokens = limit_tokens


class Decoder(Protocol):
    """Owns one model."""

    def build(self) -> Build:
        """Import the library and tell how it was built.  Raises `LoadError`."""
        ...

    def load(self) -> Ready:
        """Load the model and decode a few tokens, so that a build that cannot do it dies here.  Raises `LoadError`."""
        ...

    def generate(self, ask: Generate, is_cancelled: Callable[[], bool]) -> Iterator[Delta | Done]:
        """Answer one ask; the last item, and only that, is a `Done`.

        `is_cancelled` turns true once, from another thread; the answer then ends within one token or in
        the middle of the prompt, and its `Done` says so.  Raises `GenerationError`.
        """
        ...

    def close(self) -> None:
        """Free the model."""
        ...
