"""What `monkeycode doctor` finds out of the local engine's speed, for the advice to build on."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.cli.runtimes import Runtime
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.engines.local import measure as measuring
from monkeycode_lsp.engines.local.advice import Facts
from monkeycode_lsp.engines.local.engine import LocalEngine, find_model
from monkeycode_lsp.engines.local.measure import Speed
from monkeycode_lsp.errors import EngineError, MonkeyCodeError
from monkeycode_lsp.models import catalogue, gguf, resolve
from monkeycode_lsp.models.hardware import Hardware

_LOAD_S = 90.0
_MEASURE_S = 20.0


async def look(settings: config.Config, machine: Hardware, runtime: Runtime, *, measure: bool) -> tuple[Facts, str]:
    """The facts, and why no speed is among them; empty where there is one, or nothing could be measured at all."""
    facts = Facts(hardware=machine, settings=settings, kind=runtime.kind, abilities=runtime.abilities, catalogue=catalogue.entries())
    try:
        path = await asyncio.to_thread(find_model, settings.local)
        header = await asyncio.to_thread(gguf.read, path)
    except MonkeyCodeError:
        return facts, ""  # which the check of the model tells
    speed: Speed | None = None
    why = ""
    if measure:
        engine = LocalEngine(settings=settings.local, notify=lambda _: None)
        try:
            speed = await _speed(engine)
        except EngineError as exc:
            why = exc.message
        except TimeoutError:
            why = f"the model was not loaded within {_LOAD_S:g} seconds"
        finally:
            await engine.aclose()
        if speed is None and not why:
            why = f"256 tokens were not read within {_MEASURE_S:g} seconds"
    return msgspec.structs.replace(facts, header=header, entry=_entry(path), speed=speed), why


async def _speed(engine: Engine) -> Speed | None:
    async with asyncio.timeout(_LOAD_S):
        await engine.ready()
    return await measuring.measure(engine, within_s=_MEASURE_S)


def in_words(speed: Speed) -> str:
    """For people."""
    said = f", and generates {speed.generated_per_s:.0f}" if speed.generated_per_s is not None else ""
    return f"reads {speed.read_per_s:.0f} tokens a second{said} (a new prompt of {speed.read_tokens} tokens)"


def _entry(path: Path) -> catalogue.Entry | None:
    """The model in the catalogue, whatever its file is called."""
    with contextlib.suppress(OSError):
        for model in resolve.installed():
            if model.entry is not None and model.path.samefile(path):
                return model.entry
    return next((entry for entry in catalogue.entries() if entry.file == path.name), None)
