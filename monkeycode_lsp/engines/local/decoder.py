"""The seam between the process that serves clients (`service`) and whatever decodes tokens.

`service` calls all of it but `count` from one thread, never two at once.  Tests put another decoder behind the same service.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Failed, FailureKind, Generate, Ready, Totals


class Options(msgspec.Struct, frozen=True):
    """How the model is loaded."""

    model: Path
    gpu_layers: int = -1
    """Layers on the GPU; -1: all that fit."""
    gpu_share: float = 1.0
    """Share of those layers that really goes there: less than 1 after the GPU ran out of memory."""
    main_gpu: int = 0
    tensor_split: tuple[float, ...] = ()
    """Shares of the model for several GPUs; empty: by their free memory."""
    extra_buffers: bool = True
    """Repacked weights and AMX tiles.  Off, some builds live that otherwise die of an illegal instruction."""
    context_tokens: int = 4096
    """Of one slot."""
    slots: int = 4
    """Generations at the same time, each with a KV cache of its own."""
    batch_tokens: int = 128
    """Most tokens decoded in one go."""
    threads: int = 0
    """0: one per physical core."""
    nice: int = 0
    """Added to the process's niceness."""
    affinity: tuple[int, ...] = ()
    """Processors that it may use; empty: all."""
    flash_attention: bool = True
    """Where a GPU computes, or where the KV cache is quantized."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    mmap: bool = True
    mlock: bool = False
    lora: tuple[tuple[str, float], ...] = ()
    """Adapter files with their strengths."""
    drafts: bool = True
    """Whether drafts are verified."""
    draft_model: str = ""
    """A smaller model of the same vocabulary that proposes tokens; empty: none."""
    state_bytes: int = 256 * 1024 * 1024
    """Memory for the KV states of documents that lost their slot."""
    state_folder: str = ""
    """Where those states outlive the process; empty: nowhere."""


def as_text(words: str) -> str:
    """The same without the odd bytes of a file's name, which no message can hold."""
    return words.encode("utf-8", "replace").decode()


class LoadError(Exception):
    """The model cannot be loaded."""

    def __init__(self, kind: Literal["runtime", "model", "memory", "internal"], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = as_text(message)


class GenerationError(Exception):
    """A prompt cannot be answered; the decoder stays usable."""

    def __init__(self, kind: FailureKind, message: str, *, limit_tokens: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.limit_tokens = limit_tokens


class Step(msgspec.Struct, frozen=True):
    """One event of one ask."""

    job: Hashable
    event: Delta | Done | Failed


class Decoder(Protocol):
    """Owns one model and answers any number of asks at the same time, a step at a time."""

    @property
    def busy(self) -> bool:
        """Whether any ask that was begun is not answered yet."""
        ...

    @property
    def totals(self) -> Totals:
        """What was done so far; read from other threads too."""
        ...

    def build(self) -> Build:
        """Import the library and tell how it was built.  Raises `LoadError`."""
        ...

    def load(self) -> Ready:
        """Load the model and decode a few tokens, so that a build that cannot do it dies here.  Raises `LoadError`."""
        ...

    def begin(self, job: Hashable, ask: Generate, is_cancelled: Callable[[], bool]) -> None:
        """Take up an ask; `job` names it in the steps.  Costs no decoding and raises nothing.

        `is_cancelled` turns true once, from another thread; the ask then ends within one token or in the
        middle of the prompt, and its `Done` says so.
        """
        ...

    def step(self, is_urgent: Callable[[Priority], bool]) -> list[Step]:
        """Decode one batch and tell what came of it; each ask ends with exactly one `Done` or `Failed`.

        `is_urgent(priority)` tells at any time whether an ask that is more urgent than `priority` has
        arrived: the batch is then left, to be read again later.
        """
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text takes; none when no model is loaded.  Called from other threads, at any time; decodes nothing."""
        ...

    def drop(self, job: Hashable) -> None:
        """Forget an ask: nobody wants to hear of it."""
        ...

    def close(self) -> None:
        """Keep what is worth keeping, and free the model."""
        ...
