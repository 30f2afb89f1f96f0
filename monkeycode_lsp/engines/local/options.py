"""From the settings to what an engine process loads: files found, numbers read, nonsense refused by its setting's name.

Reads the headers of model files and asks the system for its processors: call it on a thread.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import sys
from collections.abc import Collection
from pathlib import Path

from monkeycode_lsp import folders
from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.errors import EngineUnavailableError, ModelError
from monkeycode_lsp.models import gguf, resolve

logger = logging.getLogger(__name__)

_MIB = 1 << 20
_MOST_PROCESSORS = 4096


def load_options(settings: Local, model: Path, attempt: Attempt) -> Options:
    """How a model is loaded, for one attempt.  Raises `EngineUnavailableError` for a setting that cannot be used."""
    affinity = processors(settings.affinity, usable_processors())
    return Options(
        model=model,
        gpu_layers=settings.gpu_layers if attempt.gpu_share else 0,
        gpu_share=attempt.gpu_share or 1.0,
        main_gpu=settings.main_gpu,
        tensor_split=settings.tensor_split,
        extra_buffers=attempt.extra_buffers,
        context_tokens=settings.context_tokens,
        slots=settings.slots,
        batch_tokens=settings.batch_tokens,
        threads=threads(settings.threads, affinity),
        nice=settings.nice,
        affinity=affinity,
        flash_attention=settings.flash_attention,
        kv_type=settings.kv_type,
        mmap=settings.mmap,
        mlock=settings.mlock,
        lora=adapters(settings.lora, model),
        drafts=settings.drafts != "off",
        draft_model=draft_model(settings.draft_model, model),
        state_bytes=settings.state_megabytes * _MIB,
        state_folder=str(folders.cache() / "kv") if settings.keep_states else "",
    )


def usable_processors() -> frozenset[int] | None:
    """The processors that this process may use; None where the system cannot bind a process to some of them."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else None


def threads(wanted: int, affinity: Collection[int]) -> int:
    """No more than there are processors: threads that wait for a processor hold up all others.  0 stays 0."""
    most = len(affinity or usable_processors() or ()) or os.cpu_count() or 1
    if wanted > most:
        _warn_of_threads(wanted, most)
    return min(wanted, most)


@functools.cache
def _warn_of_threads(wanted: int, most: int) -> None:
    """Once, however often a process is started."""
    logger.warning("local.threads is %d, but the engine may use %d processors only: it has %d threads.", wanted, most, most)


def processors(text: str, usable: Collection[int] | None) -> tuple[int, ...]:
    """The numbers that `0-3,8` means, in order; none for empty text."""
    found: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        first, dash, last = map(str.strip, part.partition("-"))
        last = last if dash else first
        if not (_is_number(first) and _is_number(last)) or not int(first) <= int(last) < _MOST_PROCESSORS:
            raise _affinity(f"{part!r} is not a number or a range such as 0-3")
        found.update(range(int(first), int(last) + 1))
    if found and usable is None:
        raise EngineUnavailableError("The setting local.affinity works on Linux only.", remedy="Leave it empty.")
    if usable is not None and (strange := sorted(found - set(usable))):
        raise _affinity(f"processor {strange[0]} is not one that this program may use, which are {spans(usable)}")
    return tuple(sorted(found))


def spans(numbers: Collection[int]) -> str:
    """Numbers as people and kernels write them: `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def adapters(specs: tuple[str, ...], model: Path) -> tuple[tuple[str, float], ...]:
    """Adapter files with their strengths, from `file` or `file=0.5`."""
    return tuple(_adapter(spec.strip(), model) for spec in specs if spec.strip())


def draft_model(setting: str, model: Path) -> str:
    """The file of the model that proposes tokens; empty for an empty setting."""
    name = "local.draftModel"
    if not setting.strip():
        return ""
    try:
        path = resolve.resolve(setting, called=f"The setting {name}")
        proposer, proposed_to = gguf.read(path), gguf.read(model)
    except ModelError as exc:
        raise EngineUnavailableError(exc.message, remedy=exc.remedy) from exc
    remedy = "Set it to a smaller model of the same family, or leave it empty."
    if proposer.kind == "adapter":
        raise EngineUnavailableError(f"The setting {name} names an adapter, not a model: {path}.", remedy=remedy)
    if proposer.tokenizer != proposed_to.tokenizer:
        raise EngineUnavailableError(
            f"The setting {name} names a model with other tokens ({proposer.tokenizer}) than the model has ({proposed_to.tokenizer}).",
            remedy=remedy,
        )
    if path.samefile(model):
        raise EngineUnavailableError(f"The setting {name} names the model itself, which would only cost time.", remedy=remedy)
    return str(path.absolute())


def _adapter(spec: str, model: Path) -> tuple[str, float]:
    name = "local.lora"
    file, strength = spec, 1.0
    head, equals, tail = spec.rpartition("=")
    if equals and not _file(spec).exists():  # a file's own name may have the sign in it
        file, strength = head.strip(), _strength(tail)
        if not math.isfinite(strength):
            raise EngineUnavailableError(
                f"The setting {name} has {spec}, and {tail!r} is not a number.", remedy="Write it like `adapter.gguf=0.5`."
            )
    path = _file(file)
    try:
        header, base = gguf.read(path), gguf.read(model)
    except ModelError as exc:
        raise EngineUnavailableError(f"{exc.message} The setting {name} names it.", remedy=exc.remedy or f"Correct {name}.") from exc
    if header.kind != "adapter":
        raise EngineUnavailableError(f"The setting {name} names a model, not an adapter: {path}.", remedy=f"Correct {name}.")
    if header.architecture != base.architecture:
        raise EngineUnavailableError(
            f"The setting {name} names {path}, an adapter for {header.architecture} models; the model is of the kind {base.architecture}.",
            remedy="Choose an adapter that was made for this model.",
        )
    return str(path.absolute()), strength


def _strength(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _file(text: str) -> Path:
    """A path as in `local.model`: relative ones lie here or in the folder of our models."""
    path = Path(os.path.expanduser(text))  # noqa: PTH111 - the other raises for the home of a user who does not exist
    return path if path.is_absolute() or path.exists() else folders.models() / path


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _affinity(why: str) -> EngineUnavailableError:
    return EngineUnavailableError(f"The setting local.affinity cannot be used: {why}.", remedy="Write it like `0-3,8`, or leave it empty.")
