"""The pipeline: one ask, from top to bottom.  Read this first.

`complete` answers every ask exactly once and leaves one outcome; the only things it raises are
`SupersededError` (a newer ask took over) and cancellation (the caller left).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable

import msgspec

from monkeycode_lsp import config, debounce, filters, prompt, stops
from monkeycode_lsp.account import Account, why_empty
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Ask, Finish, Origin, OutcomeKind, Sampling, Snapshot, Suggestion, Trigger, Window
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, MonkeyCodeError, SupersededError
from monkeycode_lsp.gate import Gate
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.read_ahead import ReadAhead
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.table import continues
from monkeycode_lsp.turn import Turn

logger = logging.getLogger(__name__)

GRACE_S = 0.1
"""A generation whose ask was cancelled lives on so long: editors cancel just before they ask again."""
MOST_RUNNING = 32
READ_S = 2.0
"""A prompt that nothing is known of should be read in so long; a slow processor gets a smaller window."""
_LEAST_SCALE = 0.15
_MUCH = 1.5
"""The window changes by no less: each change makes the engine read it anew."""
_TELLING_TOKENS = 64
"""So many tokens read tell the speed."""


class Completer:
    """One configuration's pipeline.

    The mutable state is the running generation of each document, the typing rhythm, the window's
    scale (by what the model takes and how fast it reads; it grows with the next document only, because the KV cache
    of this one would be of no use any more), the model once it is known, and the document that it should read next.
    """

    def __init__(
        self,
        *,
        settings: config.Config,
        engine: Engine,
        recall: Recall,
        turn: Turn,
        outcomes: Outcomes,
        report: Callable[[MonkeyCodeError], None],
        read_s: float = READ_S,
    ) -> None:
        self.settings = settings
        self._read_s = read_s
        self._engine = engine
        self._recall = recall
        self._turn = turn
        self._outcomes = outcomes
        self._report = report
        self._gate = Gate(settings)
        self._settings_scope = _fingerprint(settings)
        self._running: dict[str, Generation] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._rhythm = debounce.Rhythm()
        self._most_scale = 1.0
        self._speed_scale = self._larger_scale = 1.0
        self._last_uri = ""
        self._ahead = ReadAhead(engine, settings)
        self._newest: Snapshot | None = None
        self._model: Model | None = None
        self._ready: asyncio.Task[Model] | None = None

    async def complete(self, ask: Ask, *, n_nuls: int = 0) -> list[Suggestion]:
        """The suggestions to show, best first; empty if there is nothing to show."""
        log = Account(ask)
        uri = ask.snapshot.uri
        claim = self._turn.claim(uri)  # before anything else: older asks of this document are out
        try:
            shown = await self._complete(ask, claim, n_nuls, log)
        except SupersededError:
            log.ended(OutcomeKind.SUPERSEDED, "A newer request took over.")
            raise
        except asyncio.CancelledError:
            log.ended(OutcomeKind.CANCELLED, "The editor cancelled the request.")
            raise
        except MonkeyCodeError as exc:
            log.ended(OutcomeKind.FAILED, str(exc))
            if not isinstance(exc, EngineBusyError):
                self._report(exc)
            return []
        except Exception:
            logger.exception("ask %d failed", log.id)
            log.ended(OutcomeKind.FAILED, "An error of ours; the log has the details.")
            return []
        finally:
            self._turn.release(uri, claim)
            self._outcomes.add(log.outcome())
        return shown

    async def _complete(self, ask: Ask, claim: asyncio.Future[None], n_nuls: int, log: Account) -> list[Suggestion]:
        uri = ask.snapshot.uri
        rule = self._gate.refuses(ask, n_nuls=n_nuls)
        if rule:
            return log.nothing(OutcomeKind.GATED, rule)
        if uri != self._last_uri:
            self._last_uri, self._speed_scale = uri, self._larger_scale
        window = windows.around(ask.snapshot, self.settings.context, ask.selected, scale=min(self._most_scale, self._speed_scale))
        log.saw(window)
        rule = self._gate.declines(ask, window)
        log.stages.end("gate")
        if rule:
            self._leave(uri)
            return log.nothing(OutcomeKind.GATED, rule)
        if self._model is not None and self.settings.cache.enabled:
            kept = self._recall.find(uri, self._scope(self._model, ask), window)
            log.stages.end("recall")
            if kept is not None:
                self._leave(uri)
                return log.shows(kept)
        return await self._turn.run(claim, self._ask_engine(ask, window, log))

    async def _ask_engine(self, ask: Ask, window: Window, log: Account, *, may_shorten: bool = True) -> list[Suggestion]:
        uri = ask.snapshot.uri
        deadline = time.perf_counter() + self.settings.completion.deadline_ms / 1e3 - log.stages.total_ms / 1e3
        generation = self._adopt(uri, ask, window)
        adopted = generation is not None
        if generation is None:
            await asyncio.sleep(debounce.delay_ms(ask, window, self._rhythm, self.settings.debounce) / 1e3)
            log.stages.end("debounce")
            model = await self._await_model(deadline)
            log.stages.end("ready")
            generation = self._start(ask, window, model)
            log.stages.end("prompt")
        try:
            await generation.wait(deadline - time.perf_counter())
        except asyncio.CancelledError:
            self._unwanted_soon(uri, generation)
            raise
        log.stages.end("engine")
        log.measured(generation)
        if isinstance(generation.error, ContextOverflowError) and not adopted and self._shrink(generation.error):
            if not may_shorten:
                return log.nothing(OutcomeKind.FAILED, f"{generation.error} The next prompt will be shorter.")
            window = windows.around(ask.snapshot, self.settings.context, ask.selected, scale=min(self._most_scale, self._speed_scale))
            return await self._ask_engine(ask, window, log, may_shorten=False)
        return self._answer(ask, window, generation, log, adopted=adopted)

    def _answer(self, ask: Ask, window: Window, generation: Generation, log: Account, *, adopted: bool) -> list[Suggestion]:
        uri = ask.snapshot.uri
        if not generation.running and self._running.get(uri) is generation:
            del self._running[uri]
        explicit = ask.trigger is Trigger.INVOKED
        if generation.error is not None:
            if not (explicit and generation.text):
                raise generation.error
            self._report(generation.error)
        elif not generation.complete and not generation.running and not (explicit and generation.text):
            return log.nothing(OutcomeKind.FAILED, "The engine's answer was cut off.")
        cleaned = self._clean(generation, explicit=explicit)
        text = cleaned.text
        log.stages.end("clean")
        if generation.complete:
            self._learn(generation)
        if generation.complete and text:
            self._keep(uri, generation, text)
        rest = continues(generation.window, text, window) if text else None
        if not rest:
            late = generation.running and not text
            return log.nothing(
                OutcomeKind.EMPTY,
                log.why_late() if late else why_empty(generation, cleaned.emptied_by),
            )
        origin = Origin.ADOPTED if adopted else Origin.ENGINE
        return log.shows(Suggestion(rest, origin=origin, confidence=generation.confidence))

    def _clean(self, generation: Generation, *, explicit: bool) -> filters.Cleaned:
        text = generation.text
        if (generation.finish is Finish.LENGTH or not generation.complete) and "\n" in text.strip("\n"):
            text = text[: text.rstrip("\n").rfind("\n")]  # the last line is only a part of what it would be
        return filters.explained(text, generation.window, plan=generation.plan, explicit=explicit)

    def _keep(self, uri: str, generation: Generation, text: str) -> None:
        if self.settings.cache.enabled:
            self._recall.keep(uri, generation.scope, generation.window, Suggestion(text, confidence=generation.confidence))

    def _start(self, ask: Ask, window: Window, model: Model) -> Generation:
        uri = ask.snapshot.uri
        completion = self.settings.completion
        rendered = prompt.render(
            window,
            (),
            prompt.by_setting(self.settings.template, model.family),
            max_tokens=completion.max_tokens,
            sampling=Sampling(
                temperature=completion.temperature,
                top_p=completion.top_p,
                min_p=completion.min_p,
                repeat_penalty=completion.repeat_penalty,
            ),
            session=uri,
        )
        plan = stops.plan(window, completion.multiline)
        generation = Generation(self._engine, rendered, window, plan, self._scope(model, ask))
        if len(self._running) >= MOST_RUNNING:
            self._leave(next(iter(self._running)))
        self._running[uri] = generation
        return generation

    def _adopt(self, uri: str, ask: Ask, window: Window) -> Generation | None:
        """The running generation that still agrees with the text; one that does not is stopped."""
        generation = self._running.get(uri)
        if generation is None:
            return None
        if self._model is not None and generation.scope == self._scope(self._model, ask) and generation.window.suffix == window.suffix:
            agrees = continues(generation.window, generation.text, window) is not None
            if agrees and (generation.running or generation.complete):
                return generation
        self._leave(uri)
        return None

    def _leave(self, uri: str) -> None:
        """Stop what runs for this document, at the backend too."""
        generation = self._running.pop(uri, None)
        if generation is not None and generation.running:
            task = generation.stop()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _unwanted_soon(self, uri: str, generation: Generation) -> None:
        def check() -> None:
            if generation.n_waiting == 0 and self._running.get(uri) is generation:
                self._leave(uri)

        asyncio.get_running_loop().call_later(GRACE_S, check)

    async def _await_model(self, deadline: float) -> Model:
        """The model, waiting for it no longer than the deadline; getting ready goes on without us."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._engine.ready())
        ready = self._ready
        await asyncio.wait({ready}, timeout=max(0.0, deadline - time.perf_counter()))
        if not ready.done():
            raise EngineBusyError("The engine is still starting.")
        if self._ready is ready:
            self._ready = None  # asked again each time: an engine that died gets ready again, for one that lives it is cheap
        if ready.cancelled():  # by `retire`, not by our caller
            raise EngineBusyError("The settings changed while the engine was starting.")
        self._model = ready.result()
        return self._model

    def _shrink(self, error: ContextOverflowError) -> bool:
        """Remember that the window must be smaller; whether another try makes sense."""
        scale = min(self._most_scale, self._speed_scale) * 0.5
        if error.limit_tokens is not None:
            scale = min(scale, 0.8 * (error.limit_tokens - self.settings.completion.max_tokens) / self._wanted_tokens)
        if scale <= 0.01:  # noqa: PLR2004 - a hundredth of the budget is no window any more
            return False
        self._most_scale = scale
        return True

    def _learn(self, generation: Generation) -> None:
        """How fast this engine reads and answers.  The window changes in large steps only, so that the KV cache stays of use."""
        if generation.first_ms is None:
            return
        self._rhythm = self._rhythm.with_engine(generation.first_ms)
        n_read = generation.usage.read
        if n_read is None or n_read < _TELLING_TOKENS:
            return
        scale = self._read_s * n_read / (generation.first_ms / 1e3) / self._wanted_tokens
        scale = min(1.0, max(_LEAST_SCALE, scale))
        if scale < self._speed_scale / _MUCH:
            self._speed_scale = self._larger_scale = scale
        elif scale > self._speed_scale * _MUCH:
            self._larger_scale = scale

    @property
    def _wanted_tokens(self) -> int:
        context = self.settings.context
        return context.prefix_tokens + context.suffix_tokens

    def _scope(self, model: Model, ask: Ask) -> str:
        return f"{model.fingerprint}\0{self._settings_scope}\0{ask.snapshot.workspace}"

    async def warm(self) -> None:
        """Get the engine ready before the first ask; problems are reported once, here or then."""
        if not self.settings.enabled or self.settings.engine == "off":
            return
        try:
            await self._await_model(time.perf_counter() + 3600)
            self._read_ahead()
        except MonkeyCodeError as exc:
            if not isinstance(exc, EngineBusyError):
                self._report(exc)

    @property
    def engine(self) -> Engine:
        """The engine that answers, so that a pipeline with other settings can go on with it."""
        return self._engine

    def opened(self, snapshot: Snapshot, *, n_nuls: int = 0) -> None:
        """A document is there to be worked on: the engine may read it before the first ask."""
        if not self._gate.refuses(Ask(snapshot), n_nuls=n_nuls):
            self._newest = snapshot
            self._read_ahead()

    def _read_ahead(self) -> None:
        if self._newest is not None and self._model is not None:
            self._ahead.begin(self._newest, self._model, scale=min(self._most_scale, self._speed_scale))
            self._newest = None

    def typed(self, gap_ms: float) -> None:
        """Learn the user's rhythm from the time between two edits."""
        self._rhythm = self._rhythm.with_gap(gap_ms)

    def closed(self, uri: str) -> None:
        """The document was closed: stop what runs for it and forget what helped only there."""
        self._leave(uri)
        self._ahead.stop(uri)
        self._recall.forget(uri)

    async def retire(self, *, close_engine: bool) -> None:
        """Stop all generations; close the engine unless another pipeline goes on with it."""
        self._ahead.stop()
        for uri in list(self._running):
            self._leave(uri)
        if self._ready is not None and close_engine:
            self._ready.cancel()
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=2.0)
        if close_engine:
            await self._turn.aclose()  # a loser may still be about to ask it
            await self._engine.aclose()


def _fingerprint(settings: config.Config) -> str:
    """Of every setting that could change an answer."""
    parts = (settings.template, settings.completion, settings.context)
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()
