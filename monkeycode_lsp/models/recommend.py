"""Which model suits a machine, and why.  Pure: a rule over `Hardware` and the catalogue.

A suggestion that comes late is not read, so on a processor alone the size is limited by its cores and not
by its memory.  Q4_K_M is the rule; Q8_0 where a GPU has room to spare; Q3 only where nothing else fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp.models import catalogue
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.hardware import Gpu, Hardware

_GB = 10**9
_CONTEXT_BYTES = 500_000_000
"""Beside the weights: a context of 4096 tokens and the working buffers."""
_GPU_SHARE = 0.85
"""The rest of a GPU's memory belongs to the screen."""
MEMORY_SHARE = 0.5
"""The rest of the machine's memory belongs to the editor, the compiler, the browser."""
_GENEROUS = 0.5
"""Q8_0 may take this part of what a GPU has."""
_CORES_FOR_1_5B = 6
_PARAMETERS_0_5B = 500_000_000
_PARAMETERS_1_5B = 1_600_000_000
_PRECISIONS = ("Q4_K_M", "Q3_K_M")


class Recommendation(msgspec.Struct, frozen=True):
    """The model to take."""

    entry: Entry
    reason: str
    """One or two sentences for the user."""
    fits: bool = True
    """False: even the smallest model is more than this machine has room for."""


def recommend(hardware: Hardware, models: Sequence[Entry] | None = None) -> Recommendation:
    """The best model of the catalogue that runs well on `hardware`.  Models with a restricted licence are never proposed."""
    free = [entry for entry in (catalogue.entries() if models is None else models) if not entry.restricted]
    gpu = _main_gpu(hardware)
    return _for_gpu(gpu, gpu.memory_bytes, free) if gpu and gpu.memory_bytes else _for_processor(hardware, free)


def needed_bytes(entry: Entry) -> int:
    """Memory that the model takes while it runs, roughly."""
    return entry.about_bytes + _CONTEXT_BYTES


def _main_gpu(hardware: Hardware) -> Gpu | None:
    """The GPU with the most memory.  One that does not say how much it has is not planned for."""
    return max((gpu for gpu in hardware.gpus if gpu.memory_bytes), key=lambda gpu: gpu.memory_bytes or 0, default=None)


def _for_gpu(gpu: Gpu, memory_bytes: int, models: Iterable[Entry]) -> Recommendation:
    room = memory_bytes * _GPU_SHARE
    models = list(models)
    entry, fits = _largest(models, room)
    has = f"{gpu.name or 'The GPU'} has {_gb(memory_bytes)}"
    finer = next((other for other in models if other.name == entry.name and other.quantization == "Q8_0"), None)
    if finer is not None and needed_bytes(finer) <= room * _GENEROUS:
        return Recommendation(entry=finer, reason=f"{has}, plenty for {entry.size} in Q8_0, which is closer to the original than Q4_K_M.")
    if not fits:
        return Recommendation(entry=entry, reason=f"{has}, less than any model needs; some layers will run on the processor.", fits=False)
    return Recommendation(
        entry=entry, reason=f"{has}; {entry.size} in {entry.quantization} is the largest that fits with its context.{_q3(entry)}"
    )


def _for_processor(hardware: Hardware, models: Iterable[Entry]) -> Recommendation:
    strong = hardware.cores >= _CORES_FOR_1_5B and (hardware.machine == "arm64" or "avx2" in hardware.features)
    limit = _PARAMETERS_1_5B if strong else _PARAMETERS_0_5B
    quick = [entry for entry in models if entry.parameters <= limit]
    room = hardware.memory_bytes * MEMORY_SHARE if hardware.memory_bytes else float("inf")
    entry, fits = _largest(quick, room)
    unknown = f"How much memory {hardware.gpus[0].name or 'the GPU'} has is not known; without it," if hardware.gpus else "Without a GPU,"
    why = f"{unknown} {_cores(hardware.cores)}"
    if not fits:
        why = f"This machine has {_gb(hardware.memory_bytes or 0)} of memory, less than any model needs beside other programs: expect it to be slow."
        return Recommendation(entry=entry, reason=why, fits=False)
    if strong and entry.parameters > _PARAMETERS_0_5B:
        return Recommendation(
            entry=entry, reason=f"{why} can answer with {entry.size} while you type; a larger model would come too late.{_q3(entry)}"
        )
    if strong:
        return Recommendation(entry=entry, reason=f"{why} could run a larger model, but there is memory for {entry.size} only.{_q3(entry)}")
    return Recommendation(
        entry=entry, reason=f"{why} can answer in time with {entry.size} only; a larger model would come too late.{_q3(entry)}"
    )


def _largest(models: Iterable[Entry], room: float) -> tuple[Entry, bool]:
    """The largest in Q4_K_M that fits, else in Q3, else the smallest there is."""
    models = list(models)
    for precision in _PRECISIONS:
        fitting = [entry for entry in models if entry.quantization == precision and needed_bytes(entry) <= room]
        if fitting:
            return max(fitting, key=lambda entry: entry.parameters), True
    return min(models, key=needed_bytes), False


def _q3(entry: Entry) -> str:
    return " Q4_K_M, which is better, does not fit." if entry.quantization == "Q3_K_M" else ""


def _cores(n: int) -> str:
    return f"{n} processor core{'' if n == 1 else 's'}"


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / _GB:.1f} GB"
