"""What `monkeycode doctor` looks at.  Every check is bounded in time and tells what it found instead of failing."""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

import monkeycode_lsp
from monkeycode_lsp import config, folders
from monkeycode_lsp.cli import answering, cache, context_checks, endpoint_checks, runtimes, stored, terminal, tuning
from monkeycode_lsp.cli.endpoint_report import EndpointReport
from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.cli.runtimes import Runtime
from monkeycode_lsp.engines import choose
from monkeycode_lsp.engines.local import advice
from monkeycode_lsp.engines.local.engine import find_model, no_runtime
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.models import build, hardware

_PACKAGES = ("pygls", "lsprotocol", "msgspec", "httpx", "h11", "h2", "websockets")


class Checked(msgspec.Struct, frozen=True):
    """What all checks found."""

    findings: tuple[Finding, ...]
    """In the order in which to read them."""
    endpoints: tuple[EndpointReport, ...]


async def run_all(settings: config.Config, problems: Sequence[str], *, quick: bool = False) -> Checked:
    """Look at everything.  `quick`: no model is loaded for it, and none is asked."""
    kind = choose.kind(settings)
    model, found, (answers, endpoints), kept, recalled, machine = await asyncio.gather(
        asyncio.to_thread(check_model, settings.local, needed=kind == "local"),
        runtimes.look(settings.local, test=kind == "local" and not quick),  # self-tests load the model
        endpoint_checks.check_endpoints(settings, needed=kind == "remote", measure=kind == "remote" and not quick),
        asyncio.to_thread(check_folders),
        asyncio.to_thread(check_caches, settings.cache),
        asyncio.to_thread(hardware.probe),
    )
    context = await asyncio.to_thread(context_checks.look, settings, Path.cwd())
    tested = check_runtimes(found, settings.local, needed=kind == "local")
    usable = _usable(found, settings.local)
    tuned = await check_tuning(settings, machine, usable[0], measure=not quick) if kind == "local" and usable else ()
    findings = (
        check_python(),
        check_engine(kind, settings, found),
        *tested,
        model,
        *tuned,
        *answers,
        *context_checks.check_silence(kind, settings, usable[0].kind if usable else "", endpoints),
        *context,
        *check_settings(problems),
        *kept,
        *recalled,
    )
    return Checked(findings, tuple(endpoints))


async def check_tuning(settings: config.Config, machine: hardware.Hardware, runtime: Runtime, *, measure: bool) -> list[Finding]:
    """How fast the local engine is here, whether its build suits the machine, and what would make it better."""
    facts, why = await tuning.look(settings, machine, runtime, measure=measure)
    findings = []
    if why:
        findings.append(Finding("speed", State.WARNING, f"could not be measured: {why}"))
    elif facts.speed is not None:
        findings.append(Finding("speed", State.OK, tuning.in_words(facts.speed)))
    for tip in advice.advise(facts):
        # How to get the full engine is said where it is said that it is missing.
        remedy = "" if runtime.kind == "managed" and advice.INSTALL in tip.remedy else tip.remedy
        findings.append(Finding(tip.subject, State.WARNING if tip.is_loss else State.NOTE, tip.words, remedy))
    return findings + _best_build(machine, runtime, findings)


def _best_build(machine: hardware.Hardware, runtime: Runtime, advised: Sequence[Finding]) -> list[Finding]:
    """What a build for this machine would be, where it is not known to be the one that is here."""
    best = build.command(machine)
    words = " ".join((best.reason, *best.notes))
    if not best.compiles:
        return []
    if runtime.kind == "managed":
        return [Finding("best build", State.NOTE, words)] if best.notes else []
    if any(advice.REBUILD in finding.remedy for finding in advised):
        return [Finding("best build", State.NOTE, words)]  # the command stands there already
    if runtime.abilities is None:
        return [Finding("best build", State.NOTE, words, f"Built otherwise? `{advice.REBUILD}`")]
    return []


def check_python() -> Finding:
    """Python, this program and what it stands on."""
    versions = []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra
    found = f"{monkeycode_lsp.__version__} on Python {platform.python_version()} ({sys.executable}); {', '.join(versions)}"
    return Finding("monkeycode-lsp", State.OK, found)


def check_engine(kind: choose.Kind, settings: config.Config, found: Sequence[Runtime]) -> Finding:
    """Which engine the settings mean, and who is behind it."""
    match kind:
        case "off":
            return Finding("engine", State.BROKEN, "switched off by the setting engine", "Set engine to auto.")
        case "scripted":
            return Finding("engine", State.WARNING, "scripted: no model is at work", "Set engine to auto.")
        case "local":
            usable = _usable(found, settings.local)
            return Finding("engine", State.OK, f"local, by {usable[0].title}" if usable else "local")
        case "remote":
            endpoints = choose.endpoints(settings)
            by = f"{len(endpoints)} endpoints" if len(endpoints) > 1 else "".join(map(answering.host, endpoints))
            return Finding("engine", State.OK, f"remote, by {by}" if by else "remote")


def check_settings(problems: Sequence[str]) -> list[Finding]:
    """Settings that cannot be used and were left out."""
    if not problems:
        return [Finding("settings", State.OK, "all can be used")]
    return [Finding("settings", State.BROKEN, "\n".join(problems), "Correct this: `monkeycode config path` says where.")]


def check_model(local: config.Local, *, needed: bool) -> Finding:
    """The model's file."""
    try:
        path = find_model(local)
    except MonkeyCodeError as exc:
        return Finding("model", State.BROKEN if needed else State.NOTE, exc.message, exc.remedy if needed else "")
    return Finding("model", State.OK, f"{path} ({terminal.size(path.stat().st_size)})")


def check_runtimes(found: Sequence[Runtime], local: config.Local, *, needed: bool) -> list[Finding]:
    """What could run it."""
    findings = [_runtime(runtime) for runtime in found]
    usable = _usable(found, local)
    if needed and not usable and not any(runtime.installed for runtime in found):
        error = no_runtime(local)
        findings.append(Finding("local engine", State.BROKEN, error.message, error.remedy))
    elif needed and not usable:
        findings.append(Finding("local engine", State.BROKEN, f"no engine of the kind {local.runtime} works", "Mend one of those above."))
    return findings


def _usable(found: Sequence[Runtime], local: config.Local) -> list[Runtime]:
    """Those that the settings allow and that are not known to fail, the preferred one first."""
    return [runtime for runtime in found if local.runtime in {"auto", runtime.kind} and runtime.installed and runtime.works is not False]


def _runtime(runtime: Runtime) -> Finding:
    words = ", ".join(filter(None, (runtime.version, *runtime.hardware)))
    found = f"{runtime.state} ({words})" if words else runtime.state
    if not runtime.installed:
        return Finding(runtime.title, State.NOTE, found, runtime.remedy)
    return Finding(runtime.title, State.WARNING if runtime.works is False else State.OK, found, runtime.remedy)


def check_folders() -> list[Finding]:
    """Whether we can write where we keep things."""
    places = {"settings": folders.config(), "cache": folders.cache(), "outcomes": folders.state(), "models": folders.models()}
    return [_folder(name, folder) for name, folder in places.items()]


def _folder(name: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folders.private(folder)):
            pass
    except OSError as exc:
        remedy = "Make it writable, or set MONKEYCODE_HOME to a folder that is."
        return Finding(f"folder for {name}", State.BROKEN, f"{folder} cannot be written: {exc.strerror or exc}", remedy)
    return Finding(f"folder for {name}", State.OK, str(folder))


def check_caches(settings: config.Cache) -> list[Finding]:
    """Where suggestions are kept for later.  None is needed: without them suggestions come, only not as fast."""
    on_disk, team = stored.on_disk(settings), stored.team(settings)
    subject = "suggestions on disk"
    if on_disk.trouble:
        findings = [Finding(subject, State.WARNING, on_disk.trouble, on_disk.remedy)]
    elif on_disk.off:
        findings = [Finding(subject, State.NOTE, f"off: {on_disk.off}")]
    else:
        findings = [Finding(subject, State.OK, f"{cache.amount(on_disk)}; in {on_disk.folder}")]
    if team is not None:
        state = State.WARNING if team.trouble else State.NOTE if team.off else State.OK
        findings.append(Finding("team's cache", state, cache.team_found(team), team.remedy))
    return findings
