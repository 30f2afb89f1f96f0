"""Is the native runtime here, and does it live?  Asked of throw-away children, so that the answer costs no server.

The verdict is kept (see `verdict`): the test runs once per build, processor and model file.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local import explain, ladder, verdict, wire
from monkeycode_lsp.engines.local.host import jsontext
from monkeycode_lsp.engines.local.host.child import last_words
from monkeycode_lsp.engines.local.host.launch import WORKER
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.options import load_options
from monkeycode_lsp.engines.local.verdict import Verdict
from monkeycode_lsp.errors import EngineUnavailableError

_line = msgspec.json.Decoder(wire.FromWorker)


def is_installed() -> bool:
    """Whether llama-cpp-python is there.  Imports nothing."""
    return importlib.util.find_spec("llama_cpp") is not None


async def check(*, settings: Local, model: Path, command: Sequence[str] | None = None, timeout_s: float = 120.0) -> Verdict:
    """Whether a model runs here, and how.  Raises `EngineUnavailableError` where the file itself is of no use."""
    explain.check_file(model)
    name = await asyncio.to_thread(verdict.key, model, gpu_layers=settings.gpu_layers)
    known = verdict.recall(name)
    if known is not None:
        return known
    if command is None and not is_installed():
        error = explain.not_installed()
        return Verdict(attempt=None, at=time.time(), message=error.message, remedy=error.remedy)
    found = await _descend(settings, model, command or WORKER, timeout_s)
    verdict.remember(name, found)
    return found


async def build_info(*, command: Sequence[str] | None = None, timeout_s: float = 30.0) -> wire.Build:
    """How the installed llama.cpp was built.  Raises `EngineUnavailableError` where there is none that can be loaded."""
    if command is None and not is_installed():
        raise explain.not_installed()
    outcome = await _run([*(command or WORKER), "--build-info"], timeout_s=timeout_s)
    if isinstance(outcome, wire.Starting):
        return outcome.build
    raise explain.unloadable(outcome)


async def _descend(settings: Local, model: Path, command: Sequence[str], timeout_s: float) -> Verdict:
    attempt = Attempt()
    first: Fall | None = None
    illegal = False
    while True:
        options = await asyncio.to_thread(load_options, settings, model, attempt)
        outcome = await _run([*command, f"--options={jsontext.dump(options)}", "--self-test"], timeout_s=timeout_s)
        if not isinstance(outcome, Fall):
            message = explain.fell_back(first, attempt) if first else ""
            return Verdict(attempt=attempt, at=time.time(), message=message, is_illegal_instruction=illegal)
        first = first or outcome
        illegal = illegal or ladder.lacks_instruction(attempt, outcome)
        following = ladder.following(attempt, outcome, gpu_layers=settings.gpu_layers)
        if following is None:
            error = explain.unavailable(outcome, model)
            return Verdict(attempt=None, at=time.time(), message=error.message, remedy=error.remedy)
        attempt = following


async def _run(command: Sequence[str], *, timeout_s: float) -> wire.FromWorker | Fall:
    """What a throw-away child said last, or how it fell.  Raises `EngineUnavailableError` if it cannot be started."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    except OSError as exc:
        raise EngineUnavailableError(f"The engine process cannot be started: {exc.strerror}.") from exc
    out = errors = b""
    status: int | None = None
    try:
        async with asyncio.timeout(timeout_s):
            out, errors = await process.communicate()
        status = process.returncode
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    told = [_line.decode(line) for line in out.splitlines()]
    if status == 0 and told:
        return told[-1]
    return Fall(
        status,
        build=next((message.build for message in told if isinstance(message, wire.Starting)), None),
        failed=next((message for message in told if isinstance(message, wire.LoadFailed)), None),
        last_words=last_words(errors.decode("utf-8", errors="replace").splitlines()),
    )
