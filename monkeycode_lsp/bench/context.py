"""What context costs: a workspace of many files, its index, and asks at ever new places.

The processor time of the event loop's thread is what counts, from the ask to the engine: gate, window, names, look-up,
ranking, redaction and prompt together.  It is the same on a busy machine; the wait for the index is not in it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench import processes
from monkeycode_lsp.bench.engine_report import Figure, Part, at_most
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.domain import Ask, Chunk, Finish, Prompt, Trigger
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.index.client import Index
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.privacy.rules import Rules
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.text import Change
from monkeycode_lsp.turn import Turn

_SEED = 7
_WARM = 20
_GOAL_P50_MS = 5.0
_GOAL_P99_MS = 20.0
_INDEXED_S = 900.0
_OPEN = 10
"""Documents beside the one that is typed in."""
_VERBS = ("load", "store", "merge", "parse", "render", "check", "count", "find", "open", "send")
_NOUNS = ("account", "batch", "cursor", "device", "event", "field", "graph", "handle", "image", "job", "key", "ledger")


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """One run.  The field names are an interface: other programs read this JSON."""

    files: int
    asks: int
    new_line_ms: Spread
    """Processor time of the event loop's thread from an ask at a new line to the engine."""
    typing_ms: Spread
    """The same for a letter more in a line."""
    parts: tuple[Part, ...]
    version: int = 1

    @property
    def n_missed(self) -> int:
        """Goals that were not reached."""
        return sum(figure.ok is False for part in self.parts for figure in part.figures)


class _Document:
    """One that is typed at its end."""

    def __init__(self, completer: Completer, documents: Documents, uri: str) -> None:
        self._completer = completer
        self._documents = documents
        self._uri = uri
        self._version = 1
        snapshot = documents.snapshot(uri, 1 << 30, 0)
        self._at = (snapshot.line if snapshot is not None else 0, 0)

    def type(self, text: str) -> None:
        self._version += 1
        edited = self._documents.change(self._uri, self._version, [Change(text, self._at, self._at)])
        n_lines = text.count("\n")
        self._at = (self._at[0] + n_lines, 0) if n_lines else (self._at[0], self._at[1] + len(text))
        if edited is not None:
            self._completer.edited(edited)

    async def ask(self) -> float:
        """Wait for the answer; the thread's processor time at the beginning."""
        snapshot = self._documents.snapshot(self._uri, *self._at)
        began = time.thread_time()
        if snapshot is not None:
            await self._completer.complete(Ask(snapshot, Trigger.AUTOMATIC))
        return began


class _Engine:
    """Says nothing, and notes when it was asked."""

    def __init__(self) -> None:
        self.asked_at = 0.0
        self.n_files: list[int] = []

    async def ready(self) -> Model:
        return Model(name="none", family=prompt.by_name("qwen2.5-coder"), fingerprint="none", context_tokens=32_768, is_here=True)

    async def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        self.asked_at = time.thread_time()
        self.n_files.append(sum(segment.text == "<|file_sep|>" for segment in asked.segments))
        yield Chunk("x", finish=Finish.STOP)

    async def aclose(self) -> None:
        """Nothing was started."""


def fill(folder: Path, n_files: int) -> None:
    """Modules that define classes and functions and use each other's."""
    chance = random.Random(_SEED)  # noqa: S311 - the same workspace on every run
    for number in range(n_files):
        package = folder / f"package{number // 100}"
        package.mkdir(exist_ok=True)
        (package / f"module{number}.py").write_text(_module(number, chance), encoding="utf-8")


def _module(number: int, chance: random.Random) -> str:
    lines = [f'"""Module {number}."""', "", f"from package{chance.randrange(max(1, number // 100 + 1))} import module{number // 2}", ""]
    for noun in chance.sample(_NOUNS, 3):
        name = f"{noun.title()}{number}"
        lines += [
            "",
            f"class {name}:",
            f'    """A {noun}."""',
            "",
            f"    def __init__(self, {noun}_id: int, size: int = {number}) -> None:",
        ]
        lines += [f"        self.{noun}_id = {noun}_id", "        self.size = size"]
        for verb in chance.sample(_VERBS, 3):
            lines += ["", f"    def {verb}(self, value: str) -> str:", f"        return f'{verb} {{value}} {{self.size}}'"]
        lines += ["", "", f"def {chance.choice(_VERBS)}_{noun}{number}(limit: int) -> {name}:", f"    return {name}(limit, {number})", ""]
    return "\n".join(lines) + "\n"


async def run(n_files: int, n_asks: int) -> Report:
    """Make a workspace in a temporary folder, index it and ask."""
    with tempfile.TemporaryDirectory(prefix="monkeycode-context-") as made:
        workspace, store = Path(made) / "workspace", Path(made) / "index"
        workspace.mkdir()
        await asyncio.to_thread(fill, workspace, n_files)
        index = Index(workspace, store, ignore_files=(".gitignore",), warn=lambda _text: None)
        rules = Rules((".gitignore", ".monkeycodeignore"), report=lambda _text: None)
        gathering = Gathering(config.Context(), make_index=lambda _uri: index, judge=rules.judge)
        completer, engine = _completer(gathering)
        await completer.warm()
        documents = _open(completer, workspace)
        try:
            began = time.monotonic()
            async with asyncio.timeout(_INDEXED_S):
                while index.status().state != "ready":  # noqa: ASYNC110 - another process, which tells when it is done
                    await asyncio.sleep(0.1)
            indexed = (time.monotonic() - began, processes.resident_mb(index.pid) if index.pid is not None else 0.0)
            main = _Document(completer, documents, (workspace / "package0" / "main.py").as_uri())
            new_line, typing = await _ask(main, engine, n_files, n_asks)
        finally:
            await completer.retire()
    return _report(n_files, indexed, new_line, typing, [max(0, n - 1) for n in engine.n_files[2 * _WARM :]])


def _report(n_files: int, indexed: tuple[float, float], new_line: list[float], typing: list[float], n_shown: list[int]) -> Report:
    index_s, index_mb = indexed
    first, more = Spread.of(new_line), Spread.of(typing)
    figures = (
        at_most("new line, p50", first.p50, _GOAL_P50_MS, "ms"),
        at_most("new line, p99", first.p99, _GOAL_P99_MS, "ms"),
        at_most("a letter more, p99", more.p99, _GOAL_P99_MS, "ms"),
        Figure("snippets in a prompt", sum(n_shown) / max(1, len(n_shown))),
        Figure("first index", index_s, "s"),
        Figure("memory of its process", index_mb, "MB"),
    )
    about = (
        f"{len(new_line)} asks at new lines in a workspace of {n_files} files; processor time of the event loop from the ask to the engine."
    )
    return Report(n_files, len(new_line), first, more, (Part("context", about, figures=figures),))


def _completer(gathering: Gathering) -> tuple[Completer, _Engine]:
    engine = _Engine()
    settings = config.Config(debounce=config.Debounce(mode="off"), cache=config.Cache(enabled=False))
    completer = Completer(
        settings=settings,
        engine=engine,
        recall=Recall(Memory(most_bytes=1, ttl_s=1, clock=time.monotonic), showings=0),
        turn=Turn(),
        outcomes=Outcomes(),
        report=lambda _error: None,
        gathering=gathering,
    )
    return completer, engine


def _open(completer: Completer, workspace: Path) -> Documents:
    """Some of the modules, as an editor has them open, and the one that is typed in."""
    documents = Documents()
    documents.add_folder(workspace.as_uri())
    for other in range(_OPEN):
        path = workspace / "package0" / f"module{other}.py"
        documents.open(path.as_uri(), "python", 1, path.read_text(encoding="utf-8"))
    text = "".join(f"from package0 import module{n}\n" for n in range(20)) + "\n\ndef main():\n"
    documents.open((workspace / "package0" / "main.py").as_uri(), "python", 1, text)
    for snapshot in documents.all_open():
        completer.met(snapshot)
    return documents


async def _ask(main: _Document, engine: _Engine, n_files: int, n_asks: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the first asks in new lines, and of the second ones."""
    chance = random.Random(_SEED)  # noqa: S311 - the same asks on every run
    new_line: list[float] = []
    typing: list[float] = []
    for number in range(n_asks + _WARM):
        main.type(f"    value{number} = {chance.choice(_NOUNS).title()}{chance.randrange(n_files)}(")
        began = await main.ask()
        new_line.append((engine.asked_at - began) * 1e3)
        main.type("a")
        began = await main.ask()
        typing.append((engine.asked_at - began) * 1e3)
        main.type(")\n")
    return new_line[_WARM:], typing[_WARM:]
