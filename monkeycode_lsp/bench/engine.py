"""The local engine beside llama-cpp-python called directly and a real llama-server: the same model, settings and run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.bench import engine_control, engine_many, engine_single, engine_windows
from monkeycode_lsp.bench.engine_report import Part, Report
from monkeycode_lsp.bench.engine_stage import COMPETITORS, Plan, Stage
from monkeycode_lsp.bench.engine_systems import own_home
from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.hardware import busy_cores, physical_cores
from monkeycode_lsp.models import hardware

PARTS: dict[str, Callable[[Stage], Awaitable[Part]]] = {
    "cold": engine_single.cold,
    "warm": engine_single.warm,
    "letter": engine_single.letter,
    "edit": engine_single.edit,
    "documents": engine_single.documents,
    "windows": engine_many.windows,
    "abort": engine_control.abort,
    "drafts": engine_control.drafts,
    "parallel": engine_many.parallel,
    "ipc": engine_windows.ipc,
    "memory": engine_windows.memory,
    "kills": engine_windows.kills,
}
"""In this order: those that share the running systems come first."""
_LOOK_S = 1.0


async def run(
    model: Path,
    *,
    settings: Local,
    plan: Plan,
    only: Sequence[str] = (),
    against: Sequence[str] = tuple(COMPETITORS),
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """The parts in `only`, or all of them; needs llama-cpp-python.

    Our engine steps behind other programs for nobody here: the competitors do not either.
    """
    settings = msgspec.structs.replace(settings, nice=0)
    machine = hardware.probe()
    busy = busy_cores(_LOOK_S)
    threads = settings.threads or physical_cores()
    with own_home() as home:
        stage = Stage(settings=settings, model=model, plan=plan, home=home, against=against, say=say)
        parts: list[Part] = []
        try:
            for name, measure in PARTS.items():
                if name in only or (not only and (name != "kills" or plan.kills)):
                    say(name)
                    parts.append(await measure(stage))
        finally:
            await stage.clear()
    return Report(
        model=model.name,
        machine=", ".join([machine.cpu, *(gpu.name for gpu in machine.gpus)]),
        busy_cores=busy,
        threads=threads,
        slots=settings.slots,
        context_tokens=settings.context_tokens,
        batch_tokens=settings.batch_tokens,
        drafts=settings.drafts,
        quick=plan.quick,
        systems=stage.versions,
        parts=tuple(parts),
    )
