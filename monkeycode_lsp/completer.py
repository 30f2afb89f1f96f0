"""The pipeline: one ask, from top to bottom.  Read this first.

`complete` answers every ask exactly once and leaves one outcome; the only things it raises are
`SupersededError` (a newer ask took over) and cancellation (the caller left).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from monkeycode_lsp import candidates, clock, config, debounce, filters, power
from monkeycode_lsp.account import Account, why_empty
from monkeycode_lsp.admission import Admission
from monkeycode_lsp.documents import Edited
from monkeycode_lsp.domain import Ask, Origin, OutcomeKind, Snapshot, Suggestion, Trigger, Window
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.engines.counting import TokenCounts
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, MonkeyCodeError, StaysHereError, SupersededError
from monkeycode_lsp.following import Following
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.generations import Generations
from monkeycode_lsp.look_ahead import LookAhead
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.privacy.rules import Rules
from monkeycode_lsp.read_ahead import ReadAhead
from monkeycode_lsp.readiness import Readiness
from monkeycode_lsp.recall.agreement import rest
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.remembering import Remembering
from monkeycode_lsp.requesting import Requesting
from monkeycode_lsp.scale import READ_S, Scale
from monkeycode_lsp.screen import Screen
from monkeycode_lsp.shaping import Shaping
from monkeycode_lsp.silence.history import History
from monkeycode_lsp.silence.judge import Silence, Verdict
from monkeycode_lsp.turn import Turn

logger = logging.getLogger(__name__)

_CHOICE, _A_LITTLE = 2.0, 0.1
"""Others to choose from are waited for so many times as long as the likeliest one, and for such a share of the deadline."""
_ON_ITS_WAY_S = 0.0003
"""By then the request has left for the engine, and there is time until the answer."""
_START_S = 10.0
"""So much longer an ask may take while the engine starts."""


class Completer:
    """One configuration's pipeline.

    The mutable state is that of its parts, the typing rhythm, the last ask's snapshot, and the document
    that should be read next.
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
        counts: TokenCounts | None = None,
        gathering: Gathering | None = None,
        rules: Rules | None = None,
        silence: Silence | None = None,
        read_s: float = READ_S,
        on_battery: Callable[[], bool] = power.on_battery,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.recall = recall
        """These, with what follows in public, a pipeline with other settings may go on with."""
        self._turn = turn
        self._outcomes = outcomes
        self._report = report
        self.gathering = gathering or Gathering(settings.context)
        self.rules = rules
        self._admission = Admission(settings, rules)
        self._shaping = Shaping(settings)
        self._silence = silence or Silence("off", History())
        self.screen = Screen(recall.showings, outcomes, self._silence)
        self._readiness = Readiness(engine)
        self._generations = Generations(engine, recall.table, self._finished)
        self._following = Following(self._generations, self._shaping)
        self._scale = Scale(settings, read_s=read_s)
        self.counts = counts or TokenCounts(engine)
        self._requesting = Requesting(
            settings,
            admission=self._admission,
            counts=self.counts,
            gathering=self.gathering,
            near=recall.near,
            scale=self._scale,
            shaping=self._shaping,
        )
        self._remembering = Remembering(settings, recall, self._requesting, self._shaping)
        self._rhythm = debounce.Rhythm()
        self._read_ahead = ReadAhead(engine, settings.look_ahead, self._requesting.ahead)
        self._look_ahead = LookAhead(settings.look_ahead, on_battery)
        self._opened: Snapshot | None = None
        self._last: Snapshot | None = None

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
            is_private = isinstance(exc, StaysHereError)
            log.ended(OutcomeKind.GATED if is_private else OutcomeKind.FAILED, str(exc))
            if not isinstance(exc, EngineBusyError) and not (is_private and ask.trigger is Trigger.AUTOMATIC):
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
        ask, rule = await self._admission.admitted(ask, n_nuls=n_nuls)
        if rule:
            self._generations.leave(uri)
            return log.nothing(OutcomeKind.GATED, rule)
        if self.screen.took(uri, ask.inserted):
            ask = msgspec.structs.replace(ask, accepted=True)
        self._works_on(ask.snapshot)
        window = self._requesting.window(ask, self._readiness.model)
        log.saw(window)
        self.recall.showings.saw(uri, window)
        rule = self._admission.declines(ask, window)
        log.stages.end("gate")
        if rule:
            self._generations.leave(uri)
            self._rest(ask)
            return log.nothing(OutcomeKind.GATED, rule)
        kept = self._recalled(ask, window)
        log.stages.end("recall")
        if ask.trigger is Trigger.INVOKED and (kept is None or self.settings.completion.candidates > 1):
            return await self._turn.run(claim, self._offer(ask, window, kept, log))
        if kept is not None:
            return self._show(ask, window, kept, log)
        return await self._turn.run(claim, self._answer(ask, window, log))

    async def _offer(self, ask: Ask, window: Window, kept: Suggestion | None, log: Account) -> list[Suggestion]:
        """The likeliest suggestion, then others: to choose from, or where it does not fit and another try costs only time."""
        began = clock.now()
        first = self._show(ask, window, kept, log) if kept is not None else await self._answer(ask, window, log)
        model, n = self._readiness.model, self.settings.completion.candidates
        tries_again = model is not None and not first and log.was_unfit and model.takes_background
        if model is None or log.has_failed or (n == 1 and not tries_again):
            return first
        request = self._requesting.request(ask, window, model)
        deadline_s, usual_s = self.settings.completion.deadline_ms / 1e3, max(clock.now() - began, self._rhythm.engine_ms / 1e3)
        drawing = candidates.drawn(
            self.engine,
            self._shaping,
            request,
            self._requesting.scope(model, ask.snapshot),
            n=max(n - 1, 1),
            until=min(began + deadline_s, clock.now() + _CHOICE * usual_s + _A_LITTLE * deadline_s),
        )
        offered = candidates.ranked(first, await drawing, request, n)
        log.stages.end("candidates")
        if not offered:
            return first
        self.screen.shows(log.id, ask.snapshot, window, offered[0].text, Verdict())
        return [*log.shows(offered[0]), *(msgspec.structs.replace(other, id=log.id) for other in offered[1:])]

    async def _answer(self, ask: Ask, window: Window, log: Account) -> list[Suggestion]:
        """What no finished suggestion answers: by a generation that runs, by the tiers beyond, or by a new one."""
        until = clock.now() + self.settings.completion.deadline_ms / 1e3 - log.stages.total_ms / 1e3
        due = min(until, clock.now() + debounce.delay_ms(ask, window, self._rhythm, self.settings.debounce) / 1e3)
        self._rhythm = self._rhythm.with_asked(ask, window)
        self._readiness.soon()
        self._read_ahead.moved()
        self._requesting.gather(ask, window, self._readiness.model)
        generation = await self._followed(ask, window, due, until)
        if generation is not None:
            await self._following.wait(ask, window, generation, until)
            if generation.running or self._following.goes_on(ask, window, generation):
                return self._conclude(ask, window, generation, log, Origin.ADOPTED)
        log.stages.end("follow")
        kept = await self._remembering.look_further(ask, window, self._readiness.model, max(0.0, due - clock.now()))
        log.stages.end("debounce")
        if kept is not None:
            return self._show(ask, window, kept, log)
        if clock.now() >= until:
            return log.nothing(OutcomeKind.EMPTY, log.why_late())
        return await self._generate(ask, window, log, until)

    async def _followed(self, ask: Ask, window: Window, due: float, until: float) -> Generation | None:
        if self._readiness.model is None:
            return None
        scope, engine_s = self._requesting.scope(self._readiness.model, ask.snapshot), self._rhythm.engine_ms / 1e3
        return await self._following.find(ask.snapshot.uri, scope, window, due=due, until=until, engine_s=engine_s)

    async def _generate(self, ask: Ask, window: Window, log: Account, until: float, *, may_shorten: bool = True) -> list[Suggestion]:
        asked_at, known = clock.now(), self._readiness.model
        model = await self._readiness.wait(until + _START_S)
        until += clock.now() - asked_at  # else the first ask of a session, which nobody repeats, would get nothing
        log.stages.end("ready")
        if model.is_here != (known is not None and known.is_here):  # what may be quoted depends on where it is
            self._requesting.gather(ask, window, model)
            asked_at = clock.now()
        # Of a short deadline, half is for the engine.
        await self.gathering.ready(ask.snapshot.uri, min(asked_at + self.settings.context.budget_ms / 1e3, (clock.now() + until) / 2))
        log.stages.end("context")
        self._generations.make_way()
        generation = self._start(ask, window, model)
        log.stages.end("prompt")
        await self._following.wait(ask, window, generation, until)
        if isinstance(generation.error, ContextOverflowError) and self._scale.overflowed(generation.error):
            if not may_shorten:
                return log.nothing(OutcomeKind.FAILED, f"{generation.error} The next prompt will be shorter.")
            return await self._generate(ask, self._requesting.window(ask, self._readiness.model), log, until, may_shorten=False)
        return self._conclude(ask, window, generation, log, Origin.ENGINE)

    def _conclude(self, ask: Ask, window: Window, generation: Generation, log: Account, origin: Origin) -> list[Suggestion]:
        log.stages.end("engine")
        log.measured(generation)
        explicit = ask.trigger is Trigger.INVOKED
        if generation.error is not None:
            if not (explicit and generation.text):
                raise generation.error
            self._report(generation.error)
        elif not generation.whole and not generation.running and not (explicit and generation.text):
            return log.nothing(OutcomeKind.FAILED, "The engine's answer was cut off.")
        cleaned = self._shaping.cleaned(generation, explicit=explicit)
        log.was_unfit = bool(cleaned.emptied_by)
        log.stages.end("clean")
        found = rest(generation.window, cleaned.text, window, whole=generation.whole) if cleaned.text else None
        if found is None or not found.text:
            late = generation.running and not cleaned.text
            return log.nothing(OutcomeKind.EMPTY, log.why_late() if late else why_empty(generation, cleaned.emptied_by))
        return self._show(ask, window, Suggestion(found.text, origin=origin, confidence=generation.confidence), log)

    def _show(self, ask: Ask, window: Window, suggestion: Suggestion, log: Account) -> list[Suggestion]:
        if ask.trigger is Trigger.AUTOMATIC and self.recall.showings.tired(window, suggestion.text):
            return log.nothing(OutcomeKind.EMPTY, "You have not taken this suggestion here before (setting cache.showings).")
        model = self._readiness.model
        verdict = self._silence.judge(ask, window, suggestion, model.fingerprint if model else "")
        log.judged(suggestion, verdict, model.name if model else "")
        if verdict.reason:
            return log.nothing(OutcomeKind.QUIET, verdict.reason)
        self.screen.shows(log.id, ask.snapshot, window, suggestion.text, verdict)
        self._prepare_next(ask, window, suggestion.text)
        return log.shows(suggestion)

    def _prepare_next(self, ask: Ask, window: Window, text: str) -> None:
        """Work out what comes after the suggestion, as if it had been taken; at least read what was not asked for."""
        uri, model = ask.snapshot.uri, self._readiness.model
        if model is None or not self.settings.cache.enabled or self.recall.table.all_running(uri):
            return
        after = msgspec.structs.replace(window, prefix=window.prefix + text)
        if not self._look_ahead.allows(model):
            self._rest(ask)
        elif not self._admission.declines(ask, after) and not self._remembering.knows(ask, after, model):
            self._generations.make_way()
            self._generations.expire(self._start(ask, after, model, background=True), self._look_ahead.left_s)

    def _rest(self, ask: Ask) -> None:
        """Nothing is asked here: have the engine read the place, if the cursor stays."""
        model = self._readiness.model
        if model is not None and self._look_ahead.may_read:
            self._read_ahead.resting(ask, model)

    def _start(self, ask: Ask, window: Window, model: Model, *, background: bool = False) -> Generation:
        request = self._requesting.request(ask, window, model, background=background)
        asyncio.get_running_loop().call_later(_ON_ITS_WAY_S, filters.prepare, window, request.around)
        return self._generations.start(ask.snapshot.uri, request, self._requesting.scope(model, ask.snapshot), background=background)

    def _finished(self, uri: str, generation: Generation) -> None:
        """A stream has ended, whether somebody waited for it or not: learn from it, and remember what it said."""
        if generation.background:
            self._look_ahead.spent(clock.now() - generation.began)
        if not generation.whole:
            return
        if generation.first_ms is not None and not generation.background:
            self._rhythm = self._rhythm.with_engine(generation.first_ms)
        self._requesting.learn(generation)
        self._remembering.keep(uri, generation, self._readiness.model)

    def _recalled(self, ask: Ask, window: Window) -> Suggestion | None:
        uri, model = ask.snapshot.uri, self._readiness.model
        fitting = self._remembering.find(ask, window, model)
        if fitting is not None and model is not None:
            self._generations.leave_astray(uri, self._requesting.scope(model, ask.snapshot), window, coming=fitting.text)
        return fitting

    # What the server tells

    async def warm(self) -> None:
        """Get the engine ready before the first ask; problems are reported once, here or then."""
        if not self.settings.enabled or self.settings.engine == "off":
            return
        try:
            await self._readiness.wait(clock.now() + 3600)
            self._read_opened()
        except MonkeyCodeError as exc:
            if not isinstance(exc, EngineBusyError):
                self._report(exc)

    def opened(self, snapshot: Snapshot, *, n_nuls: int = 0) -> None:
        """A document is there to be worked on: the engine may read it before the first ask."""
        if self.met(snapshot, n_nuls=n_nuls):
            self.recall.meet(snapshot.workspace)
            self._opened = snapshot
            self._read_opened()

    def met(self, snapshot: Snapshot, *, n_nuls: int = 0) -> bool:
        """A document is open; whether it may be worked on, and quoted in others."""
        may = not self._admission.refuses(Ask(snapshot), n_nuls=n_nuls)
        if may:
            self.gathering.opened(snapshot)
        return may

    def edited(self, edited: Edited) -> None:
        """A document has other lines now: what stands on the screen, the rhythm and what is quoted follow."""
        self.screen.edited(edited.uri, edited.lines)
        self.gathering.edited(edited)
        if edited.gap_ms is not None:
            self.typed(edited.gap_ms, edited.inserted)

    def typed(self, gap_ms: float, inserted: str) -> None:
        """Learn the user's rhythm from the time between two edits."""
        self._rhythm = self._rhythm.with_key(gap_ms, inserted)

    def _read_opened(self) -> None:
        if self._opened is not None and self._readiness.model is not None and self._look_ahead.may_read:
            self._read_ahead.opened(self._opened, self._readiness.model)
            self._opened = None

    def _works_on(self, snapshot: Snapshot) -> None:
        """Another document than before: what is in that one may help in this one."""
        self._scale.working_on(snapshot.uri)
        before, self._last = self._last, snapshot
        if before is not None and before.uri != snapshot.uri:
            self.gathering.left(before)
            self._remembering.learn(before, self._readiness.model)

    def saved(self, uri: str, workspace: str, path: Path) -> None:
        """A file was written, by the editor or another program."""
        if self._admission.file_written(uri):
            self.gathering.forget()
        self.gathering.saved(uri, workspace, path)

    def folders_changed(self) -> None:
        """Other ignore files may count now."""
        if self.rules is not None:
            self.rules.changed()
        self.gathering.forget()

    def closed(self, uri: str) -> None:
        """The document was closed: stop what runs for it and forget what helped only there."""
        self._generations.leave(uri)
        self._read_ahead.stop(uri)
        self.recall.forget(uri)
        self.gathering.closed(uri)
        self.screen.closed(uri)

    async def retire(self, successor: Completer | None = None) -> None:
        """Stop everything; close what no successor goes on with."""
        self._read_ahead.stop()
        self._look_ahead.aclose()
        self._generations.leave()
        close_engine = successor is None or successor.engine is not self.engine
        if close_engine:
            self._readiness.cancel()
        await self._generations.aclose()
        if successor is None or successor.recall is not self.recall:
            await self.recall.aclose()
        if successor is None or successor.gathering is not self.gathering:
            await self.gathering.aclose()
        if self.rules is not None and (successor is None or successor.rules is not self.rules):
            await self.rules.aclose()
        if close_engine:
            await self.counts.aclose()
            await self._turn.aclose()  # a loser may still be about to ask it
            await self.engine.aclose()
