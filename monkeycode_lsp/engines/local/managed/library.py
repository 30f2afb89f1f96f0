"""What is installed for the managed engine: the xllamacpp package, or a llama-server program.  Imports neither."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import os
import shutil

import msgspec

from monkeycode_lsp.engines.local.managed.command import PYTHON, SERVER, About
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.models import package_client

_ABOUT_S = 60.0


def is_installed() -> bool:
    """Whether there is a server to start: the package, or a program.  Imports nothing."""
    return has_package() or find_program() is not None


def has_package() -> bool:
    """Whether xllamacpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def find_program() -> str | None:
    """The `llama-server` on PATH."""
    return shutil.which("llama-server")


def names(program: str) -> list[str]:
    """Names the program and its build, or the package and its version where that is empty."""
    if program:
        with contextlib.suppress(OSError):
            stat = os.stat(program)  # noqa: PTH116 - a name from PATH or a setting
            return [program, str(stat.st_size), str(stat.st_mtime_ns)]
        return [program]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return ["xllamacpp", importlib.metadata.version("xllamacpp")]
    return ["xllamacpp"]


async def about() -> About:
    """Version, build and devices of the installed library, found out in a throw-away process."""
    if not is_installed():
        raise not_installed()
    pipe, devnull = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*PYTHON, SERVER, "about", stdin=devnull, stdout=pipe, stderr=devnull)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _ABOUT_S)
        return msgspec.json.decode(output.splitlines()[-1], type=About)
    except (TimeoutError, IndexError, msgspec.DecodeError) as exc:
        raise EngineUnavailableError("The prebuilt local engine does not run on this machine.", remedy="Reinstall xllamacpp.") from exc
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def not_installed() -> EngineUnavailableError:
    """Neither is there."""
    return EngineUnavailableError(
        "The prebuilt local engine is not installed.", remedy=f"Install it: {package_client.install_line('prebuilt')}"
    )
