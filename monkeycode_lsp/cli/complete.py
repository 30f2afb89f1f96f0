"""`monkeycode complete`: one suggestion for a place in a file, through the editor's own pipeline."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec
from click.shell_completion import CompletionItem

from monkeycode_lsp import config, settings
from monkeycode_lsp.cli import indexes, options, place
from monkeycode_lsp.cli.options import Chosen
from monkeycode_lsp.cli.place import Place
from monkeycode_lsp.documents import file_path
from monkeycode_lsp.domain import Ask, Chunk, Outcome, Prompt, Suggestion, Trigger
from monkeycode_lsp.errors import EngineBusyError, EngineError, MonkeyCodeError

if TYPE_CHECKING:
    from monkeycode_lsp.engines.base import Engine, Model

_LOADING_S = 300.0
_GATHERING_MS = 2_000
_ANSWER_S = 120.0
"""Nobody types meanwhile: the whole answer is worth the wait."""
_SILENT_S = 1.0
"""From then on the user is told what he waits for."""
_LOOK_AGAIN_S = 0.2

Heard = Callable[[str], None]


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What `--json` prints."""

    text: str
    outcome: str
    reason: str
    origin: str
    confidence: float | None
    total_ms: float
    stages_ms: dict[str, float]
    generated_tokens: int | None


class _Told(NamedTuple):
    """What the engine and the pipeline had to say beside the answer."""

    notices: list[MonkeyCodeError]
    failures: list[MonkeyCodeError]


class Overheard:
    """An engine that is waited for while it loads, and lets somebody hear the text as it grows."""

    def __init__(self, engine: Engine, heard: Heard) -> None:
        self._engine = engine
        self._heard = heard

    async def ready(self) -> Model:
        telling = asyncio.get_running_loop().call_later(_SILENT_S, _say_that_it_starts)
        try:
            return await _until_ready(self._engine)
        finally:
            telling.cancel()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        text = ""
        async with aclosing(self._engine.stream(prompt)) as chunks:
            async for chunk in chunks:
                if chunk.text:
                    text += chunk.text
                    self._heard(text)
                yield chunk

    async def aclose(self) -> None:
        await self._engine.aclose()


def _place(_ctx: click.Context, _argument: click.Parameter, value: str) -> Place:
    return place.parse(value)


def _files(_ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@click.command()
@click.argument("where", metavar="FILE:LINE:COL", callback=_place, shell_complete=_files)
@options.engine_options
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the outcome and its timings.")
@click.pass_context
def complete(ctx: click.Context, /, *, where: Place, as_json: bool, **chosen: Any) -> None:
    """Print one suggestion for a place in a file.

    Line and column count from 1, columns in characters; without COL it is the line's end.

    Definitions of other files are taken from the index that an editor has made of the workspace, if one has; passages of
    open files and recent edits are known to editors only.
    """
    tree = options.overrides(Chosen(**chosen))
    resolved, problems = settings.load(tree, place.settings_folder(where.file.absolute().parent))
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    snapshot, n_nuls = place.snapshot(where)
    told = _Told([], [])
    with _growing(quiet=as_json) as heard:
        suggestion, outcome = asyncio.run(_complete(resolved, Ask(snapshot, Trigger.INVOKED), n_nuls, heard, told))
    if told.notices or told.failures:
        _tell(told, answered=suggestion is not None, typed_url=bool(chosen["url"]))
    text = suggestion.text if suggestion else ""
    if as_json:
        click.echo(msgspec.json.encode(_answer(outcome, suggestion)).decode())
    elif text:
        click.echo(text)
    else:
        click.echo(f"Nothing to suggest: {outcome.reason}", err=True)
    ctx.exit(0 if text else 1)


async def _complete(resolved: config.Config, ask: Ask, n_nuls: int, heard: Heard, told: _Told) -> tuple[Suggestion | None, Outcome]:
    from monkeycode_lsp.app import make_gathering, make_rules  # noqa: PLC0415 - as below
    from monkeycode_lsp.completer import Completer  # noqa: PLC0415 - slow, and `--help` needs none of it
    from monkeycode_lsp.engines import choose  # noqa: PLC0415 - as above
    from monkeycode_lsp.observe.outcomes import Outcomes  # noqa: PLC0415 - as above
    from monkeycode_lsp.recall.lookup import Recall  # noqa: PLC0415 - as above
    from monkeycode_lsp.recall.memory import Memory  # noqa: PLC0415 - as above
    from monkeycode_lsp.turn import Turn  # noqa: PLC0415 - as above

    outcomes = Outcomes()
    chosen = _patient(resolved)
    rules = make_rules(chosen.privacy, told.failures.append)
    completer = Completer(
        settings=chosen,
        engine=Overheard(choose.engine(resolved, told.notices.append), heard),
        # Nothing of earlier runs: whoever asks here wants to see what the engine says, or why it says nothing.
        recall=Recall(Memory(most_bytes=resolved.cache.memory_bytes, ttl_s=resolved.cache.memory_ttl_seconds)),
        turn=Turn(),
        outcomes=outcomes,
        report=told.failures.append,
        rules=rules,
        gathering=make_gathering(chosen, rules, told.failures.append, index=_index),
    )
    try:
        suggestions = await completer.complete(ask, n_nuls=n_nuls)
    finally:
        await completer.retire()
    return suggestions[0] if suggestions else None, outcomes.last(1)[0]


def _patient(resolved: config.Config) -> config.Config:
    """The settings for somebody who waits, and who will not ask for what comes next."""
    budget_ms = resolved.context.budget_ms
    return msgspec.structs.replace(
        resolved,
        completion=msgspec.structs.replace(resolved.completion, deadline_ms=round((_LOADING_S + _ANSWER_S) * 1e3)),
        context=msgspec.structs.replace(resolved.context, budget_ms=max(budget_ms, _GATHERING_MS) if budget_ms else 0),
        look_ahead=config.LookAhead(mode="off", read=False),
    )


def _index(workspace: str) -> indexes.Reader | None:
    folder = file_path(workspace)
    return indexes.Reader(folder) if folder is not None else None


def _tell(told: _Told, *, answered: bool, typed_url: bool) -> None:
    """What was said beside the answer, each once.  Raises the last failure where there is no answer."""
    from monkeycode_lsp.cli import answering  # noqa: PLC0415 - brings what draws on terminals

    if answered:
        answering.tell(map(str, (*told.notices, *told.failures)), typed_url=typed_url)
        return
    failure = told.failures[-1] if told.failures else None
    answering.tell(map(str, told.notices), besides=str(failure or ""), typed_url=typed_url)
    if failure is not None:
        raise answering.in_options(failure) if typed_url and isinstance(failure, EngineError) else failure


async def _until_ready(engine: Engine) -> Model:
    """Wait while the model is loaded."""
    try:
        async with asyncio.timeout(_LOADING_S):
            while True:
                try:
                    return await engine.ready()
                except EngineBusyError as exc:
                    await asyncio.sleep(exc.retry_after_s or _LOOK_AGAIN_S)
    except TimeoutError:
        raise EngineError(f"The engine was not ready within {_LOADING_S:g} seconds.", remedy="See `monkeycode doctor`.") from None


def _say_that_it_starts() -> None:
    if sys.stderr.isatty():
        click.echo("The engine is starting …", err=True)


@contextmanager
def _growing(*, quiet: bool) -> Iterator[Heard]:
    """On a terminal, the raw text as it grows; it is wiped away at the end, for the cleaned one."""
    if quiet or not sys.stdout.isatty():
        yield lambda _text: None
        return
    from rich.live import Live  # noqa: PLC0415 - only for a terminal
    from rich.text import Text  # noqa: PLC0415 - as above

    from monkeycode_lsp.cli import terminal  # noqa: PLC0415 - as above

    with Live(Text(), console=terminal.console(), transient=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text(text, style=terminal.GHOST), refresh=True)


def _answer(outcome: Outcome, suggestion: Suggestion | None) -> Answer:
    return Answer(
        text=suggestion.text if suggestion else "",
        outcome=outcome.kind.value,
        reason=outcome.reason,
        origin=outcome.origin,
        confidence=suggestion.confidence if suggestion else None,
        total_ms=outcome.total_ms,
        stages_ms=outcome.stages_ms,
        generated_tokens=outcome.generated_tokens,
    )
