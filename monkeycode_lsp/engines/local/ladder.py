"""How a model is loaded again after the engine process died of it: slower, but alive.  Pure.

From the top: as set → without extra CPU buffers → half of the layers on the GPU → CPU only.  An
illegal instruction comes from the CPU's code, all else is first taken for a lack of GPU memory.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import msgspec

from monkeycode_lsp.engines.local.wire import Build, LoadFailed

_ILLEGAL_INSTRUCTION_ON_WINDOWS = 0xC000001D
_KILL = 9
_HALF = 0.5
_CRASH_WINDOW_S = 600
_MOST_CRASHES = 2
"""In that time, while it runs on the GPU: then that is the reason."""


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

    @property
    def was_killed(self) -> bool:
        """Whether somebody else ended it: a person, or the system for want of memory."""
        return self.failed is None and self.status == -_KILL


_ILLEGAL_INSTRUCTION = {-signal.SIGILL % 2**32, _ILLEGAL_INSTRUCTION_ON_WINDOWS}


def following(attempt: Attempt, fall: Fall, *, gpu_layers: int) -> Attempt | None:
    """What to try next; None: there is nothing left to try."""
    if fall.failed is not None and fall.failed.kind in {"runtime", "internal"}:
        return None
    if lacks_instruction(attempt, fall):
        return msgspec.structs.replace(attempt, extra_buffers=False)
    if fall.build is not None and fall.build.gpu and gpu_layers and attempt.gpu_share > 0:
        return _fewer_layers(attempt)
    if fall.failed is None and attempt.extra_buffers:
        return msgspec.structs.replace(attempt, extra_buffers=False)
    return None


def lacks_instruction(attempt: Attempt, fall: Fall) -> bool:
    """Whether the extra buffers are taken from this attempt because the processor cannot compute them, today or ever."""
    return fall.is_illegal_instruction and attempt.extra_buffers


def after_crashes(attempt: Attempt, crashes: Sequence[float], *, now: float) -> Attempt | None:
    """What to try after a process crashed while it ran with layers on the GPU, at these times; None: the same again."""
    recent = [at for at in crashes if 0 <= now - at < _CRASH_WINDOW_S]
    if len(recent) < _MOST_CRASHES or not attempt.gpu_share:
        return None
    return _fewer_layers(attempt)


def _fewer_layers(attempt: Attempt) -> Attempt:
    return msgspec.structs.replace(attempt, gpu_share=_HALF if attempt.gpu_share > _HALF else 0.0)
