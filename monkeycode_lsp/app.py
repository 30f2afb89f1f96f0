"""The composition root: puts the parts together and serves one editor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from monkeycode_lsp import config, folders, threads, transport
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import Verdict
from monkeycode_lsp.context.redaction import has_secret
from monkeycode_lsp.documents import file_path
from monkeycode_lsp.engines import choose
from monkeycode_lsp.errors import ConfigError, StorageError
from monkeycode_lsp.gate import Gate
from monkeycode_lsp.gathering import Gathering, MakeIndex
from monkeycode_lsp.index.client import Index
from monkeycode_lsp.index.kept import FOLDER as INDEXES
from monkeycode_lsp.observe.outcomes import FOLDER, Outcomes
from monkeycode_lsp.privacy.rules import Rules
from monkeycode_lsp.recall import disk
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.shared import Shared
from monkeycode_lsp.recall.tier import Tier
from monkeycode_lsp.server import Report, Server
from monkeycode_lsp.settings import Layers
from monkeycode_lsp.silence.history import FILE as HISTORY
from monkeycode_lsp.silence.history import History
from monkeycode_lsp.silence.judge import Silence
from monkeycode_lsp.turn import Turn

DISABLED = Verdict(Level.NEVER, is_quoted=False, why="the setting completion.disabledGlobs")


def make_server(overrides: Mapping[str, Any] | None = None, *, state: Path | None = None) -> Server:
    """A server with everything it needs; settings given here win over the editor's."""
    turn = Turn()
    state_folder = state or folders.state()
    outcomes = Outcomes(state_folder / FOLDER)

    history = History(state_folder / HISTORY)
    history.load()

    def save() -> None:
        outcomes.save()
        history.save()

    def make_completer(
        settings: config.Config, report: Report, before: Completer | None, list_folders: Callable[[], list[str]]
    ) -> Completer:
        same_cache = before is not None and before.settings.cache == settings.cache
        same_context = before is not None and _context_of(before.settings) == _context_of(settings)
        rules = (
            before.rules
            if before is not None and same_context and before.rules
            else make_rules(settings.privacy, report, folders=list_folders)
        )
        same_engine = before is not None and choose.same_engine(before.settings, settings)
        return Completer(
            settings=settings,
            engine=before.engine if before is not None and same_engine else choose.engine(settings, report),
            recall=before.recall if before is not None and same_cache else make_recall(settings.cache, report),
            counts=before.counts if before is not None and same_engine else None,
            gathering=before.gathering if before is not None and same_context else make_gathering(settings, rules, report),
            rules=rules,
            silence=Silence(settings.completion.silence, history),
            turn=turn,
            outcomes=outcomes,
            report=report,
        )

    return Server(
        make_completer=make_completer,
        layers=Layers(environ=os.environ, overrides=overrides),
        outcomes=outcomes,
        save=save,
        pull_model=choose.pull_model,
    )


def _warner(report: Report) -> Callable[[str], None]:
    """Reports trouble with what is kept on disk, from any thread.  Called on the event loop."""
    loop = asyncio.get_running_loop()

    def warn(text: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would read it
            loop.call_soon_threadsafe(report, StorageError(text))

    return warn


def _context_of(settings: config.Config) -> tuple[object, ...]:
    """The settings that say what is quoted."""
    return settings.context, settings.privacy, settings.completion.disabled_globs


def make_rules(settings: config.Privacy, report: Report, *, folders: Callable[[], Iterable[str]] = tuple) -> Rules:
    """What the ignore files say."""

    def tell(text: str) -> None:
        report(ConfigError(text))

    return Rules(settings.ignore_files, secret_files=settings.secret_files, report=tell, folders=folders)


def make_gathering(settings: config.Config, rules: Rules, report: Report, *, index: MakeIndex | None = None) -> Gathering:
    """What helps from other places, with an index for each workspace that is a folder of this machine, or with those of `index`."""
    warn = _warner(report)

    def make_index(workspace: str) -> Index | None:
        folder = file_path(workspace)
        if folder is None or not folder.is_dir():
            return None
        return Index(
            folder,
            folders.cache() / INDEXES,
            ignore_files=settings.privacy.ignore_files,
            secret_files=settings.privacy.secret_files,
            warn=warn,
        )

    gate = Gate(settings)

    async def judge(uri: str, workspace: str) -> Verdict:
        return DISABLED if gate.is_disabled(uri, workspace) else await rules.judge(uri, workspace)

    async def there(uris: Sequence[str]) -> Collection[str]:
        return await threads.run("quoted files", partial(_there, tuple(uris)))

    return Gathering(settings.context, make_index=index or make_index, judge=judge, there=there)


def _there(uris: Sequence[str]) -> list[str]:
    """Blocking."""
    paths = {uri: file_path(uri) for uri in uris}
    return [uri for uri, path in paths.items() if path is not None and path.exists()]


def make_recall(settings: config.Cache, report: Report) -> Recall:
    """Every tier that the settings ask for, nearest first.  Called on the event loop; nothing is opened yet."""
    warn = _warner(report)
    memory = Memory(most_bytes=settings.memory_bytes, ttl_s=settings.memory_ttl_seconds)
    tiers: list[Tier] = []
    if settings.enabled and settings.disk_ttl_seconds:
        try:
            folder = disk.folder(settings.directory)
            tiers.append(disk.Disk(folder, ttl_s=settings.disk_ttl_seconds, most_bytes=settings.disk_bytes, warn=warn))
        except ConfigError as exc:
            report(exc)
    if settings.enabled and settings.shared_url and settings.shared_ttl_seconds:
        tiers.append(Shared(settings.shared_url, ttl_s=settings.shared_ttl_seconds, warn=warn))
    for tier in tiers:
        tier.open()
    return Recall(memory, tiers=tiers, showings=settings.showings)


def start_logging(level: str) -> None:
    """To standard error.  The framework and the HTTP library log whole messages, so they are kept quiet."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ours = logging.getLogger("monkeycode_lsp")
    ours.setLevel(logging.getLevelNamesMapping().get(level.upper(), logging.INFO))
    for name in ("pygls", "httpx", "httpcore", "hpack", "websockets", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


Serve = Callable[[Server], Any]


def run(server: Server, serve: Serve) -> int:
    """Serve until the editor is gone; the exit code by the specification."""

    async def main() -> None:
        # Else the first ask of a session would wait for the patterns to be compiled.
        threading.Thread(target=has_secret, args=("", ""), name="secret shapes", daemon=True).start()
        try:
            await serve(server)
        finally:
            await server.aclose()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        return 130
    return server.exit_code


def serve_stdio(overrides: Mapping[str, Any] | None = None, *, stdout: BinaryIO | None = None, state: Path | None = None) -> int:
    """Serve the editor that started us, over our pipes."""
    protocol_out = stdout or transport.claim_stdout()
    return run(make_server(overrides, state=state), lambda server: transport.serve_stdio(server, protocol_out, server.ended))
