"""The runtimes that can run a model on this machine: what is installed, and whether it passes its self-test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.engines.local import abilities, selftest
from monkeycode_lsp.engines.local.abilities import Abilities
from monkeycode_lsp.engines.local.engine import find_model
from monkeycode_lsp.engines.local.managed import engine as managed
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.errors import EngineError, MonkeyCodeError
from monkeycode_lsp.models import package_client

T = TypeVar("T")

_TEST_S = 90.0
_UNTESTED = "installed, not tested"


class Runtime(msgspec.Struct, frozen=True, rename="camel"):
    """One of them."""

    kind: Literal["native", "managed"]
    title: str
    installed: bool
    state: str
    """One sentence for the user."""
    works: bool | None = None
    """None: not installed, or not tested."""
    version: str = ""
    hardware: tuple[str, ...] = ()
    """Processor features, back ends and devices that it uses."""
    remedy: str = ""
    abilities: Abilities | None = None
    """What it was built for; None: it does not say."""


async def look(local: config.Local, *, test: bool = True) -> tuple[Runtime, ...]:
    """Both, side by side; a self-test loads the model that is here."""
    model: Path | None = None
    if test:
        with contextlib.suppress(MonkeyCodeError):
            model = await asyncio.to_thread(find_model, local)
    return tuple(await asyncio.gather(native_runtime(local, model), managed_runtime(local, model)))


async def native_runtime(local: config.Local, model: Path | None) -> Runtime:
    """llama-cpp-python."""
    title = "llama-cpp-python (full engine)"
    if not selftest.is_installed():
        return Runtime("native", title, installed=False, state="not installed", remedy="The full engine: monkeycode engine install")
    try:
        build = await _bounded(selftest.build_info())
        built_for = abilities.read(build.system, build.accelerators)
        known = Runtime(
            "native", title, installed=True, state=_UNTESTED, version=build.version, hardware=built_for.words(), abilities=built_for
        )
        if model is None:
            return known
        verdict = await _bounded(selftest.check(settings=local, model=model))
    except EngineError as exc:
        return Runtime("native", title, installed=True, state=f"fails: {exc.message}", works=False, remedy=exc.remedy)
    if verdict.attempt is None:
        return msgspec.structs.replace(known, state=f"fails: {verdict.message}", works=False, remedy=verdict.remedy)
    return msgspec.structs.replace(known, state=verdict.message or "works", works=True)


async def managed_runtime(local: config.Local, model: Path | None) -> Runtime:
    """xllamacpp, or a llama-server on PATH."""
    title = "llama-server (prebuilt engine)"
    if not managed_library.is_installed():
        remedy = f"The prebuilt engine: {package_client.install_line('prebuilt')}"
        return Runtime("managed", title, installed=False, state="not installed", remedy=remedy)
    known = Runtime("managed", title, installed=True, state=_UNTESTED, version=managed_library.find_program() or "")
    try:
        if managed_library.has_package():
            build = await _bounded(managed_library.about())
            built_for = abilities.read(build.system)
            devices = tuple(filter(None, map(str.strip, build.devices)))
            known = msgspec.structs.replace(
                known, version=f"xllamacpp {build.version}", hardware=(*built_for.words(), *devices), abilities=built_for
            )
        if model is None:
            return known
        await _bounded(managed.self_test(settings=local, model=model))
    except EngineError as exc:
        return msgspec.structs.replace(known, state=f"fails: {exc.message}", works=False, remedy=exc.remedy)
    return msgspec.structs.replace(known, state="works", works=True)


async def _bounded(test: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_TEST_S):
            return await test
    except TimeoutError:
        raise EngineError(
            f"It did not come to an end within {_TEST_S:g} seconds.", remedy="Try again when the machine is less busy."
        ) from None
