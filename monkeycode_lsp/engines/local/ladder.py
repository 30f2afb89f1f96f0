"""How a model is loaded again after the engine process died of it: slower, but alive.  Pure.

From the top: as set → without extra CPU buffers → half of the layers on the GPU → CPU only.  An
illegal instruction comes from the CPU's code, all else is first taken for a lack of GPU memory.
"""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.wire import Build, LoadFailed

_ILLEGAL_INSTRUCTION_ON_WINDOWS = 0xC000001D


class Attempt(msgspec.Struct, frozen=True):
    """One way to load the model; the default is the settings' own."""

    extra_buffers: bool = True
    gpu_share: float = 1.0


class Fall(msgspec.Struct, frozen=True):
    """How an attempt ended badly."""

    status: int | None
    """The process's exit status, below 0 a signal; None: it hung and was stopped."""
    build: Build | None = None
    """None: it died before it could tell."""
    failed: LoadFailed | None = None
    """What it said itself; None: it crashed."""
    last_words: str = ""

    @property
    def is_illegal_instruction(self) -> bool:
        return self.failed is None and self.status is not None and self.status % 2**32 in _ILLEGAL_INSTRUCTION


_ILLEGAL_INSTRUCTION = {-signal.SIGILL % 2**32, _ILLEGAL_INSTRUCTION_ON_WINDOWS}


def following(attempt: Attempt, fall: Fall, *, gpu_layers: int) -> Attempt | None:
    """What to try next; None: there is nothing left to try."""
    if fall.failed is not None and fall.failed.kind in {"runtime", "internal"}:
        return None
    if fall.is_illegal_instruction and attempt.extra_buffers:
        return msgspec.structs.replace(attempt, extra_buffers=False)
    if fall.build is not None and fall.build.gpu and gpu_layers and attempt.gpu_share > 0:
        return msgspec.structs.replace(attempt, gpu_share=0.5 if attempt.gpu_share > 0.5 else 0.0)  # noqa: PLR2004 - half, then none
    if fall.failed is None and attempt.extra_buffers:
        return msgspec.structs.replace(attempt, extra_buffers=False)
    return None


def arguments(settings: Local, model: Path, attempt: Attempt) -> list[str]:
    """The worker's arguments for an attempt."""
    flags = {
        "--no-extra-buffers": not attempt.extra_buffers,
        "--no-flash-attention": not settings.flash_attention,
        "--no-mmap": not settings.mmap,
    }
    numbers = {
        "--gpu-layers": settings.gpu_layers if attempt.gpu_share else 0,
        "--gpu-share": attempt.gpu_share or 1.0,
        "--context-tokens": settings.context_tokens,
        "--batch-tokens": settings.batch_tokens,
        "--threads": settings.threads,
    }
    return [
        f"--model={model}",
        *(f"{name}={number}" for name, number in numbers.items()),
        *(flag for flag, wanted in flags.items() if wanted),
    ]
