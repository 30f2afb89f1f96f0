"""An editor whose user does anything, and an engine that does too: they check what must always hold as they go."""

from __future__ import annotations

import asyncio
import itertools
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field

from monkeycode_lsp import config, prompt
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.domain import Chunk, Finish, OutcomeKind, Priority, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError, SupersededError
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.signature import N_AFTER, N_BEFORE
from monkeycode_lsp.text import split_lines
from monkeycode_lsp.turn import Turn
from tests.unit.places import ask

SAID = (
    "foo(a, b)",
    "foo(a, [b, c])",
    "foo",
    'print("hi")',
    "return a + b",
    "x = 1\n    y = [2]\n    return x + y",
    "if a:\n        b()\n    c()\n",
    "(1, 2)",
    "bar(foo(1), {'a': 2})",
    "{'a': 1}",
    "):\n        return foo(a)\n    b()",
    "a",
    " = foo(b)",
    "",
    "  \n",
)
CLOSERS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
TEXT = "def f(a, b):\n    \n\ny = 1\n"
STARTS = {"file:///w/one.py": TEXT, "file:///w/two.py": TEXT.replace("1", "2")}
SOON_S = 0.2


@dataclass
class Stream:
    """What the engine was asked, and what it has said."""

    prompt: object
    said: str = ""
    is_open: bool = True
    n_agreed: int = 0
    """Asks that it agreed with."""

    @property
    def is_ahead(self):
        """Whether nobody has asked for it yet."""
        return self.prompt.priority is not Priority.INTERACTIVE and not self.n_agreed


class Engine:
    """Says to each prompt what that prompt calls for, at a pace that it calls for, and sometimes breaks off."""

    def __init__(self, *, takes_background):
        self.streams = []
        self.broken = []
        self._takes_background = takes_background

    @property
    def running(self):
        return [stream for stream in self.streams if stream.is_open and stream.prompt.max_tokens]

    async def ready(self):
        return Model("random", prompt.by_name("qwen2.5-coder"), "random", 8192, takes_background=self._takes_background)

    async def stream(self, asked):
        if not asked.max_tokens:
            return
        number = zlib.crc32(f"{asked.prefix}\0{asked.suffix}".encode())
        self._notice(asked)
        stream = Stream(asked)
        self.streams.append(stream)
        text, size = SAID[number % len(SAID)], (1, 3, 7, 100)[number // 16 % 4]
        try:
            await asyncio.sleep((0.0, 0.02, 0.15, 0.4, 0.9, 2.5, 5.0)[number // 64 % 7])
            fault = number // 512 % 12
            if fault == 0:
                raise EngineUnavailableError("not there")
            for at in range(0, len(text), size):
                stream.said += text[at : at + size]
                yield Chunk(text[at : at + size], n_tokens=1)
                await asyncio.sleep((0.0, 0.01, 0.05, 0.1)[number // 8192 % 4])
                if fault == 1:
                    raise StreamBrokenError("broken off")
            yield Chunk("", finish=Finish.LENGTH if fault == 2 else Finish.STOP, usage=Usage(0, 0, len(text)))
        finally:
            stream.is_open = False

    async def aclose(self):
        pass

    def _notice(self, asked):
        if asked.priority is not Priority.INTERACTIVE:
            return
        self.broken += [f"{other} runs beside {asked}" for other in self.running if other.is_ahead or other.prompt.session == asked.session]


class AllOutcomes(Outcomes):
    def __init__(self):
        super().__init__()
        self.all = []

    def add(self, outcome):
        super().add(outcome)
        self.all.append(outcome)


@dataclass
class Asked:
    """One ask and how it ended."""

    uri: str
    began: float
    ended: float | None = None
    kind: str = ""


def squeezed(text):
    return re.sub(r"\s+", "", text)


def beyond_closers(text):
    return squeezed(text).lstrip(")]}\"'")


def agrees(stream, before, after):
    """Whether what was said so far may still be what is typed, up to white space and closers of the editor."""
    if not before.startswith(stream.prompt.prefix) or beyond_closers(stream.prompt.suffix) != beyond_closers(after):
        return False
    typed, said = squeezed(before[len(stream.prompt.prefix) :]), squeezed(stream.said)
    return typed.startswith(said) or said.startswith(typed)


def is_said(shown, before, after, streams):
    """Whether `shown`, put here, goes on as the engine did at a place whose tokens are these, or were these before some was typed.

    So many tokens as make up a place are as many characters at least.
    """
    for stream in streams:
        then, said = squeezed(stream.prompt.prefix)[-N_BEFORE:], squeezed(stream.said)
        for n_typed in range(min(len(before), 128) + 1):
            head, typed = before[: len(before) - n_typed], before[len(before) - n_typed :]
            same_after = beyond_closers if typed.strip() else squeezed
            is_place = squeezed(head)[-N_BEFORE:] == then and same_after(stream.prompt.suffix)[:N_AFTER] == same_after(after)[:N_AFTER]
            if is_place and squeezed(typed + shown) in said:
                return True
    return False


@dataclass
class Document:
    text: str
    cursor: int
    past: list = field(default_factory=list)

    @property
    def halves(self):
        return self.text[: self.cursor], self.text[self.cursor :]


class Editor:
    """Types into two documents, and asks after each key.  Checks what must hold as it goes."""

    def __init__(self, tree, *, takes_background, cancels):
        settings, problems = config.decode(tree)
        assert not problems
        self.loop = asyncio.get_running_loop()
        self.engine = Engine(takes_background=takes_background)
        self.outcomes = AllOutcomes()
        self.completer = Completer(
            settings=settings,
            engine=self.engine,
            recall=Recall(Memory(most_bytes=1 << 20, ttl_s=300, clock=self.loop.time), showings=settings.cache.showings),
            turn=Turn(),
            outcomes=self.outcomes,
            report=lambda _error: None,
            on_battery=lambda: False,
        )
        self.documents = {uri: Document(text, text.index("\n") + 5) for uri, text in STARTS.items()}
        self.uri = next(iter(STARTS))
        self.cancels = cancels
        self.screen = ""
        self.shown_id = 0
        self.gap_s = 0.0
        self.asks = []
        self.tasks = set()
        self.newest = None
        self.broken = self.engine.broken

    @property
    def document(self):
        return self.documents[self.uri]

    async def edit(self, insert, *, remove=0, after=""):
        """One key: what it puts in and takes away, and a closer that the editor puts after the cursor."""
        document = self.document
        before, behind = document.halves
        document.past.append((document.text, document.cursor))
        if insert and len(insert) == 1 and insert == behind[:1] and insert in CLOSERS.values():
            document.cursor += 1
        else:
            kept = before[: len(before) - remove]
            document.text, document.cursor = kept + insert + after + behind, len(kept) + len(insert)
        self.completer.screen.edited(self.uri, split_lines(document.text))
        self.completer.typed(self.gap_s * 1e3, insert)
        await self.ask(edited=True, inserted=insert)

    async def ask(self, *, edited=False, inserted="", invoked=False):
        if self.cancels and self.newest is not None:
            self.newest.cancel()
        self.screen = ""
        before, after = self.document.halves
        asking = ask(f"{before}‸{after}", uri=self.uri, invoked=invoked, since_edit_ms=0.0 if edited else None, inserted=inserted)
        self.newest = asyncio.create_task(self._asked(asking, self.uri, before, after))
        self.tasks.add(self.newest)
        self.newest.add_done_callback(self.tasks.discard)
        await asyncio.sleep(0)
        for stream in self.engine.running:
            if stream.prompt.session != self.uri:
                continue
            if agrees(stream, before, after):
                stream.n_agreed += 1
            elif not (stream.is_ahead and stream.prompt.prefix.startswith(before)):
                self.loop.call_later(SOON_S, self._must_be_closed, stream, stream.n_agreed, before)
        if self.gap_s:
            await asyncio.sleep(self.gap_s)

    async def _asked(self, asking, uri, before, after):
        asked = Asked(uri, self.loop.time())
        self.asks.append(asked)
        try:
            suggestions = await self.completer.complete(asking)
            asked.kind = "shown" if suggestions else "empty"
        except SupersededError:
            asked.kind, suggestions = "superseded", []
        except asyncio.CancelledError:
            asked.kind, suggestions = "cancelled", []
        asked.ended = self.loop.time()
        for suggestion in suggestions:
            if not is_said(suggestion.text, before, after, self.engine.streams):
                self.broken.append(f"{suggestion} was never said at {before!r} ‸ {after!r}")
            if (uri, before, after) == (self.uri, *self.document.halves):
                self.screen, self.shown_id = suggestion.text, suggestion.id

    def _must_be_closed(self, stream, n_agreed, before):
        if stream.is_open and stream.n_agreed == n_agreed:
            self.broken.append(f"{stream} went on against {before!r}")

    # What a user does

    async def type_what_is_shown(self, number):
        for char in self.screen[: number + 1]:
            closes = CLOSERS.get(char, "") if number % 2 and not self.document.halves[1][:1].strip() else ""
            await self.edit(char, after=closes)

    async def accept(self, _number):
        if self.screen:
            shown_id = self.shown_id
            await self.edit(self.screen)
            self.completer.screen.accepted(shown_id)

    async def reject(self, _number):
        self.completer.screen.rejected(self.shown_id)

    async def type(self, number):
        char = "fxab(= 1\n"[number % 9]
        await self.edit(char, after=CLOSERS.get(char, "") if number % 2 else "")

    async def paste(self, number):
        await self.edit(SAID[number % len(SAID)])

    async def delete(self, number):
        for _ in range(number % 4 + 1):
            await self.edit("", remove=min(1, self.document.cursor))

    async def undo(self, _number):
        if self.document.past:
            self.document.text, self.document.cursor = self.document.past.pop()
            self.completer.screen.edited(self.uri, split_lines(self.document.text))
            await self.ask(edited=True)

    async def jump(self, number):
        self.document.cursor = number * 7 % (len(self.document.text) + 1)
        await self.ask()

    async def jump_and_come_back(self, number):
        here = self.document.cursor
        await self.jump(number)
        self.document.cursor = here
        await self.ask()

    async def go_to_the_other_document(self, _number):
        self.uri = next(uri for uri in self.documents if uri != self.uri)
        await self.ask()

    async def ask_again(self, _number):
        await self.ask()

    async def ask_by_key(self, _number):
        await self.ask(invoked=True)

    async def finish(self):
        """Nobody asks any more: everything comes to rest, and everything was answered."""
        if self.tasks:
            await asyncio.wait(self.tasks)
        await asyncio.sleep(10)
        assert not self.engine.running
        assert not self.completer.recall.table.all_running()
        await self.completer.retire()
        await asyncio.sleep(0.01)  # what it stopped may still be about to notice
        assert self.broken == []
        most_s = self.completer.settings.completion.deadline_ms / 1e3 + 0.05
        assert [asked for asked in self.asks if asked.ended is None or asked.ended - asked.began > most_s] == []
        for uri in {asked.uri for asked in self.asks}:
            here = [asked for asked in self.asks if asked.uri == uri]
            assert [older for older, newer in itertools.pairwise(here) if older.ended > newer.began + 0.001] == []
        kinds = Counter(asked.kind for asked in self.asks)
        told = Counter(outcome.kind for outcome in self.outcomes.all)
        quiet = told[OutcomeKind.EMPTY] + told[OutcomeKind.GATED] + told[OutcomeKind.FAILED]
        assert (kinds["shown"], kinds["empty"]) == (told[OutcomeKind.SHOWN], quiet)
        assert (kinds["superseded"], kinds["cancelled"]) == (told[OutcomeKind.SUPERSEDED], told[OutcomeKind.CANCELLED])
        assert len({outcome.id for outcome in self.outcomes.all}) == len(self.outcomes.all) == len(self.asks)
        assert not [outcome.reason for outcome in self.outcomes.all if "error of ours" in outcome.reason]
        assert len(asyncio.all_tasks()) == 1
