"""One running stream of a model.  It outlives the ask that began it, and a later ask can adopt it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from monkeycode_lsp import clock, stops
from monkeycode_lsp.context.redaction import Redaction
from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Finish, Prompt, Scope, Usage, Window
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import EngineError

logger = logging.getLogger(__name__)

_TOKEN_CHARACTERS = 32
"""No answer has as many in every token.  A server that goes on and on is stopped here: each piece costs a look at the whole text."""


class Request(msgspec.Struct, frozen=True):
    """What is asked of an engine, and what it takes to make sense of the answer."""

    prompt: Prompt
    window: Window
    plan: stops.Plan
    around: Surroundings = Surroundings()
    redaction: Redaction = Redaction("", "")
    """What was hidden in the prompt, and is put back in the answer."""


class Generation:
    """Reads the engine until the answer is complete.

    Its task is the only thing that changes what it said; everybody else reads `text` and waits.
    """

    def __init__(self, engine: Engine, request: Request, scope: Scope, *, background: bool = False) -> None:
        self.request = request
        self.scope = scope
        self.text = ""
        self.stop_reason = ""
        self.ran_on = False
        """Whether the model went on beyond the end, until it was cut back."""
        self.finish: Finish | None = None
        self.error: EngineError | None = None
        self.usage = Usage()
        self.background = background
        """Nobody asked for it yet: it was begun ahead of time, and makes way for any ask that needs the engine."""
        self.began = clock.now()
        self.first_ms: float | None = None
        """From the start to the first text."""
        self.n_waiting = 0
        """Asks that wait for it; at zero it may be stopped."""
        self.n_waited = 0
        """How often an ask has begun to wait for it."""
        self._n_tokens = 0
        self._logprob = 0.0
        self._n_scored = 0
        self._engine = engine
        self._said = ""
        self._most_characters = _TOKEN_CHARACTERS * request.prompt.max_tokens
        self._is_stopped = False
        self._has_ended = False
        self._when_done: Callable[[], None] = lambda: None
        self._news: set[asyncio.Future[None]] = set()
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    @property
    def window(self) -> Window:
        """The place it was begun for."""
        return self.request.window

    @property
    def whole(self) -> bool:
        """Whether the text is the whole answer: nothing of it can change or is missing."""
        return self.error is None and (bool(self.stop_reason) or self.finish is not None)

    @property
    def n_tokens(self) -> int | None:
        """Tokens generated; a stream that we cut never tells, so they are counted as they come."""
        return self.usage.generated if self.usage.generated is not None else self._n_tokens or None

    @property
    def running(self) -> bool:
        """Until it ends or is stopped; the engine may let go a little later."""
        return not self._is_stopped and not self._has_ended

    @property
    def confidence(self) -> float | None:
        """Mean log-probability of the tokens so far."""
        return self._logprob / self._n_scored if self._n_scored else None

    async def wait(self, until: float, enough: Callable[[], bool] | None = None) -> None:
        """Until the answer is complete, there is enough of it or the time (of the clock) has come.

        Cancelling the waiter leaves the generation alone.
        """
        self.n_waiting += 1
        self.n_waited += 1
        try:
            while self.running and not (enough is not None and enough()) and (left := until - clock.now()) > 0:
                await self._hear(left, every=enough is not None)
        finally:
            self.n_waiting -= 1
        if self._task.done() and not self._task.cancelled():
            self._task.result()  # an error of ours is raised, not swallowed

    async def _hear(self, timeout_s: float, *, every: bool) -> None:
        """Until it ends, or says anything if `every` piece is of interest."""
        waited: set[asyncio.Future[None]] = {self._task}
        if not every:
            await asyncio.wait(waited, timeout=timeout_s)
            return
        news = asyncio.get_running_loop().create_future()
        self._news.add(news)
        try:
            await asyncio.wait(waited | {news}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._news.discard(news)

    def when_done(self, tell: Callable[[], None]) -> None:
        """Call it once the stream has ended, before those who wait go on.

        Nobody can look in between, and find that it runs no more though what it said is not remembered yet.
        """
        self._when_done = tell

    def stop(self) -> asyncio.Task[None]:
        """Stop the model; the returned task ends when the engine has let go."""
        self._is_stopped = True
        self._task.cancel()
        self._tell()
        return self._task

    async def _run(self) -> None:
        try:
            await self._read()
        finally:
            self._end()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._when_done()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            logger.error("a generation failed", exc_info=task.exception())
        self._end()  # of one that was cancelled before it began

    async def _read(self) -> None:
        try:
            async with aclosing(self._engine.stream(self.request.prompt)) as stream:
                async for chunk in stream:
                    if self.first_ms is None and chunk.text:
                        self.first_ms = (clock.now() - self.began) * 1e3
                    if chunk.logprob is not None:
                        self._logprob += chunk.logprob
                        self._n_scored += max(1, chunk.n_tokens)
                    self._n_tokens += chunk.n_tokens
                    if chunk.usage is not None:
                        self.usage = chunk.usage
                    self._said += chunk.text
                    self.text = self.request.redaction.restore(self._said, whole=chunk.finish is not None)
                    self._tell()
                    if len(self.text) > self._most_characters:
                        self.text, self.finish = self.text[: self._most_characters], Finish.LENGTH
                        return
                    stop = stops.find(self.text, self.request.window, self.request.plan) if chunk.text else None
                    if stop is not None:
                        self.text, self.stop_reason, self.ran_on = self.text[: stop.at], stop.reason, stop.ran_on
                        return
                    if chunk.finish is not None:
                        self.finish = chunk.finish
                        self._judge_last_line()
                        return
        except EngineError as exc:
            self.error = exc

    def _tell(self) -> None:
        for news in self._news:
            if not news.done():
                news.set_result(None)

    def _judge_last_line(self) -> None:
        """What the model left without a line end is whole now, and is judged like the lines before it."""
        stop = stops.find(self.text + "\n", self.request.window, self.request.plan) if self.finish is Finish.STOP else None
        if stop is not None:
            self.text = self.text[: stop.at]
