"""What went wrong with the native engine, in the user's words, and what mends it.  Pure but for `check_file`."""

from __future__ import annotations

import errno
import re
import shlex
import signal
import stat
import sys
from pathlib import Path

from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.errors import EngineUnavailableError

BUILD_LINE = (
    'CXXFLAGS="-fno-tree-dse -fno-dse" CMAKE_ARGS="-DLLAVA_BUILD=OFF -DLLAMA_BUILD_MTMD=OFF -DLLAMA_OPENSSL=OFF" '
    f"{shlex.quote(sys.executable)} -m pip install --force-reinstall --no-deps --no-cache-dir llama-cpp-python==0.3.36"
)
"""Builds a llama.cpp that does not die of an illegal instruction on processors with AMX under gcc 12."""
_INSTALL = "Run `monkeycode engine install`, or set local.runtime to managed."
_LESS_MEMORY = "Choose a smaller model or lower local.contextTokens."
TRIED_AGAIN = "It is tried as before after a day, or at once after `monkeycode engine stop`."
"""Of what may have been a chance."""
MORE_MEMORY = "Close other programs, or raise the limit on memory (`ulimit -v`)."
_CHOOSE = "Set local.model to a GGUF file or to a name from `monkeycode model list`."

_MEMORY = re.compile(
    r"(cannot|can't|could not|failed to|unable to) (re)?allocate|out of memory|(not enough|insufficient) memory|bad_alloc|\bENOMEM\b"
    r"|failed to map segment(?!.*(permitted|denied))",
    re.IGNORECASE,
)
"""Also in the dynamic loader's words; where a folder forbids programs, it cannot map them either."""


def speaks_of_memory(text: str) -> bool:
    """Whether what a library complained of is a lack of memory."""
    return _MEMORY.search(text) is not None


def check_file(model: Path) -> None:
    """Raises `EngineUnavailableError` for a model file that no llama.cpp can load."""
    magic: bytes | None = None  # stays so for what may let whoever opens it wait for ever
    try:
        mode = model.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            with model.open("rb") as file:
                magic = file.read(4)
    except FileNotFoundError as exc:
        raise EngineUnavailableError(f"The model file {model} does not exist.", remedy=_CHOOSE) from exc
    except IsADirectoryError as exc:
        raise EngineUnavailableError(f"The model file {model} is a folder.", remedy=_CHOOSE) from exc
    except OSError as exc:
        what = "is a folder" if model.is_dir() else f"cannot be read ({exc.strerror})"
        raise EngineUnavailableError(f"The model file {model} {what}.", remedy=_CHOOSE) from exc
    if magic is None:
        raise EngineUnavailableError(f"{model} is a pipe or a device, not a model file.", remedy=_CHOOSE)
    if magic != b"GGUF":
        raise EngineUnavailableError(f"The model file {model} is not a GGUF file.", remedy=_CHOOSE)


def not_installed() -> EngineUnavailableError:
    """llama-cpp-python is missing."""
    return EngineUnavailableError("The native engine is not installed (llama-cpp-python).", remedy=_INSTALL)


def unavailable(fall: Fall, model: Path) -> EngineUnavailableError:
    """No way of loading worked; `fall` is the last one."""
    if fall.is_illegal_instruction:
        return EngineUnavailableError(
            "The installed llama.cpp does not run on this processor (illegal instruction).", remedy=f"Rebuild it: {BUILD_LINE}"
        )
    if fall.failed is None:
        remedy = _LESS_MEMORY if fall.was_killed else _INSTALL
        return EngineUnavailableError(f"The engine process {how(fall)} while it loaded {model}.{_words(fall)}", remedy=remedy)
    message = fall.failed.message
    match fall.failed.kind:
        case "runtime":
            return _not_imported(message)
        case "model":
            return EngineUnavailableError(f"The model file {model} cannot be loaded. {message}", remedy=f"It may be incomplete. {_CHOOSE}")
        case "memory":
            return EngineUnavailableError(f"There is not enough memory for {model}. {message}", remedy=_LESS_MEMORY)
        case "internal":
            return EngineUnavailableError(f"The model {model} was loaded, but cannot be used. {message}", remedy=_INSTALL)


def unloadable(fall: object) -> EngineUnavailableError:
    """The library does not get as far as telling its build."""
    if isinstance(fall, Fall) and fall.failed is not None:
        return _not_imported(fall.failed.message)
    what = f"{how(fall)}.{_words(fall)}" if isinstance(fall, Fall) else "said nothing."
    return EngineUnavailableError(f"llama-cpp-python cannot be loaded: its process {what}", remedy=_INSTALL)


def _not_imported(why: str) -> EngineUnavailableError:
    remedy = MORE_MEMORY if speaks_of_memory(why) else _INSTALL
    return EngineUnavailableError(f"llama-cpp-python cannot be loaded: {why}", remedy=remedy)


def fell_back(first: Fall, attempt: Attempt) -> str:
    """Said once, when an attempt works after another did not."""
    ways = []
    if attempt.gpu_share < 1:
        ways.append("on the CPU only" if attempt.gpu_share == 0 else "with half of its layers on the GPU")
    if not attempt.extra_buffers:
        ways.append("without extra CPU buffers")
    message = f"The engine process {how(first)} while it loaded the model. It now runs {' and '.join(ways)}, which is slower."
    if first.is_illegal_instruction:
        message = f"{message} To cure it, rebuild llama.cpp: {BUILD_LINE}"
    elif attempt.gpu_share < 1:
        message = f"{message} A smaller model or a lower local.gpuLayers fits the GPU."
    is_lasting = first.is_illegal_instruction and attempt.gpu_share >= 1
    return message if is_lasting else f"{message} {TRIED_AGAIN}"


def stepped_down(attempt: Attempt) -> str:
    """Said once, when a process crashes again and again after it was loaded."""
    way = "on the CPU only" if attempt.gpu_share == 0 else "with half of its layers on the GPU"
    return (
        f"The engine process crashed twice within ten minutes while it used the GPU. It now runs {way}, which is slower. "
        f"A smaller model or a lower local.gpuLayers fits the GPU. {TRIED_AGAIN}"
    )


def restarted(how: str) -> str:
    """Said of a process that has ended though nobody told it to."""
    return f"The engine process {how}; it is started again soon."


def cannot_listen(why: str, *, number: int | None = None, in_the_way: Path | None = None) -> EngineUnavailableError:
    """A process has nowhere to be reached; `number` is the system's of the error."""
    what = "The engine process cannot listen for its clients"
    if in_the_way is not None:
        return EngineUnavailableError(f"{what}: {in_the_way} is in the way.", remedy="Remove it.")
    is_full = number in {errno.ENOSPC, errno.EDQUOT}
    remedy = "Is the disk full?" if is_full else "Set MONKEYCODE_HOME to a folder that can be written."
    return EngineUnavailableError(f"{what}: {why}.", remedy=remedy)


def how(fall: Fall) -> str:
    """How a process ended, to follow `The engine process …`."""
    if fall.failed is not None:
        return "failed"
    if fall.status is None:
        return "hung"
    if fall.is_illegal_instruction:
        return "was stopped by an illegal instruction (SIGILL)"
    if fall.status >= 0:
        return f"ended with status {fall.status}"
    try:
        return f"was stopped by {signal.Signals(-fall.status).name}"
    except ValueError:
        return f"was stopped by signal {-fall.status}"


def _words(fall: Fall) -> str:
    return f" It said: {fall.last_words}" if fall.last_words else ""
