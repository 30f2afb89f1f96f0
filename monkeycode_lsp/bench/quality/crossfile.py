"""What other files are good for: lines of real packages that need them, with snippets and without, at the same token budget.

Every package is a workspace with its index; in each file that is asked for, one line is masked, on disk too, so that
it is found nowhere.  The user has the files beside it open.  Without snippets their tokens go to a larger window.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench.quality import masking, packages
from monkeycode_lsp.bench.quality.answers import Remembering
from monkeycode_lsp.bench.quality.filling import brought_in
from monkeycode_lsp.bench.quality.masking import Masked
from monkeycode_lsp.bench.quality.packages import Pin
from monkeycode_lsp.bench.quality.pipeline import Pipeline, untimed
from monkeycode_lsp.bench.quality.report import WITH, WITHOUT, Done, said
from monkeycode_lsp.domain import Control, Prompt
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.index.client import Index

_NEIGHBOURS = 4
"""Files of the same folder that the user has open."""
_PER_PACKAGE = 40
_INDEXED_S = 300.0
_PATIENCE_S = 10.0
"""Of a question to the index: a busy machine must not change what is found."""
_LOOK_S = 0.05
_READ_S = 0.4
"""Until a document that was opened has been read for its passages; the pipeline takes a tenth."""


async def run(
    engine: Remembering, wheels: Sequence[tuple[Pin, Path]], *, settings: config.Config, limit: int, say: Callable[[int, int], None]
) -> list[Done]:
    """`limit` tasks in all, of all packages alike; 0: as many as is usual."""
    most = -(-limit // len(wheels)) if limit else _PER_PACKAGE
    done: list[Done] = []
    say(0, limit or most * len(wheels))
    for pin, wheel in wheels:
        with tempfile.TemporaryDirectory(prefix="monkeycode-crossfile-", ignore_cleanup_errors=True) as made:
            workspace = Path(made) / pin.name
            tasks, texts = await asyncio.to_thread(prepare, wheel, workspace, most)
            path, text = next(iter(texts.items()))
            first = ((workspace / path).as_uri(), text)
            async with _session(workspace, Path(made) / "index", engine, settings, first) as session:
                for task in tasks:
                    one = await session.ask(task, neighbours(task.path, texts))
                    done.append(msgspec.structs.replace(one, id=f"{pin.name} {one.id}"))
                    say(len(done), limit or most * len(wheels))
                    if limit and len(done) == limit:
                        return done
    return done


def prepare(wheel: Path, workspace: Path, most: int) -> tuple[list[Masked], dict[str, str]]:
    """The package in `workspace`, a line masked in each of `most` files; those lines, and all files as they are now."""
    names = packages.unpack(wheel, workspace)
    texts = {name: (workspace / name).read_text(encoding="utf-8", errors="replace") for name in names}
    chosen = masking.choose([masking.places(name, text, texts.keys()) for name, text in texts.items()], most)
    for task in chosen:
        texts[task.path] = task.text
        (workspace / task.path).write_text(task.text, encoding="utf-8", newline="\n")
    return chosen, texts


def neighbours(path: str, texts: dict[str, str]) -> dict[str, str]:
    """The files of the same folder that are nearest by name, with their texts."""
    folder = PurePosixPath(path).parent
    beside = sorted(name for name in texts if PurePosixPath(name).parent == folder and texts[name].strip())
    at = beside.index(path)
    nearest = sorted((name for name in beside if name != path), key=lambda name: abs(beside.index(name) - at))
    return {name: texts[name] for name in nearest[:_NEIGHBOURS]}


def without_snippets(settings: config.Config) -> config.Config:
    """The tokens of snippets go to the text before and after the cursor, by their shares."""
    context = settings.context
    grown = 1 + context.snippet_tokens / (context.prefix_tokens + context.suffix_tokens)
    larger = msgspec.structs.replace(
        context,
        prefix_tokens=round(context.prefix_tokens * grown),
        suffix_tokens=round(context.suffix_tokens * grown),
        snippet_tokens=0,
    )
    return msgspec.structs.replace(settings, context=larger)


class _Session:
    """One package in an editor."""

    def __init__(self, workspace: Path, engine: Remembering, pipelines: dict[str, Pipeline]) -> None:
        self._workspace = workspace
        self._engine = engine
        self._pipelines = pipelines

    async def ask(self, task: Masked, beside: dict[str, str]) -> Done:
        """In both ways."""
        for path, text in beside.items():
            self._pipelines[WITH].meet(self._uri(path), text)
        await asyncio.sleep(_READ_S * len(beside))
        texts: dict[str, str] = {}
        prompts: dict[str, Prompt] = {}
        reason = ""
        for name, pipeline in self._pipelines.items():
            self._engine.heard.clear()
            shown = await pipeline.ask(self._uri(task.path), task.before, task.after)
            texts[name] = shown.text
            if self._engine.heard:
                prompts[name] = self._engine.heard[-1]
            if name == WITH:
                reason = "" if shown.text else shown.reason
        return Done(
            id=task.id,
            gold=task.gold,
            said={name: said(text, task.gold) for name, text in texts.items()},
            n_faults=brought_in(task.before, texts[WITH], task.after),
            shown=bool(texts[WITH]),
            reason=reason,
            n_snippets=_n_snippets(prompts.get(WITH)),
            n_prompt={name: sum(len(segment.text) for segment in prompt.segments) for name, prompt in prompts.items()},
        )

    def _uri(self, path: str) -> str:
        return (self._workspace / path).as_uri()


def _n_snippets(prompt: Prompt | None) -> int:
    """Other files in it, by the markers before them; the last one stands before the file itself."""
    marks = [segment.text for segment in prompt.segments if isinstance(segment, Control)] if prompt is not None else []
    return max(0, max((marks.count(mark) for mark in marks), default=0) - 1)


@asynccontextmanager
async def _session(
    workspace: Path, store: Path, engine: Remembering, settings: config.Config, first: tuple[str, str]
) -> AsyncIterator[_Session]:
    """With an index that is ready.  `first`: URI and text of a document."""
    usual = untimed(settings)
    usual = msgspec.structs.replace(usual, completion=msgspec.structs.replace(usual.completion, multiline="never"))
    index = Index(workspace, store, ignore_files=settings.privacy.ignore_files, warn=lambda _text: None, patience_s=_PATIENCE_S)
    gathering = Gathering(usual.context, make_index=lambda _uri: index)
    uri = workspace.as_uri()
    async with (
        Pipeline.running(engine, usual, workspace=uri, gathering=gathering) as with_snippets,
        Pipeline.running(engine, without_snippets(usual), workspace=uri) as without,
    ):
        with_snippets.meet(*first)  # the index begins with the first document of a workspace
        await _ready(index)
        yield _Session(workspace, engine, {WITH: with_snippets, WITHOUT: without})


async def _ready(index: Index) -> None:
    try:
        async with asyncio.timeout(_INDEXED_S):
            while index.status().state != "ready":  # noqa: ASYNC110 - another process, which tells when it is done
                await asyncio.sleep(_LOOK_S)
    except TimeoutError as exc:
        raise MonkeyCodeError(f"The index was not ready after {_INDEXED_S:.0f} s. {index.status().why}".strip()) from exc
