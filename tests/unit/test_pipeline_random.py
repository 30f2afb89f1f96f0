"""The pipeline under random editing, on a clock of its own: what must hold whatever is typed and whatever the engine does."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from monkeycode_lsp import config, prompt
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.domain import Chunk, Finish, OutcomeKind, Priority, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError, SupersededError
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.table import DOCUMENTS, PER_DOCUMENT
from monkeycode_lsp.turn import Turn
from tests.unit.places import ask
from tests.unit.virtual import on_virtual_time

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
            yield Chunk("", finish=Finish.LENGTH if fault == 2 else Finish.STOP, usage=Usage(0, len(asked.prefix), len(text)))
        finally:
            stream.is_open = False

    async def aclose(self):
        pass

    def _notice(self, asked):
        if asked.priority is not Priority.INTERACTIVE:
            return
        self.broken += [
            f"{other} runs beside {asked}" for other in self.running if other.is_ahead or other.prompt.session == asked.session
        ]


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
    """Whether `shown`, put here, goes on as the engine did at a place whose tokens are these, or were these before some was typed."""
    for stream in streams:
        then, said = squeezed(stream.prompt.prefix), squeezed(stream.said)
        for n_typed in range(min(len(before), 128) + 1):
            head, typed = before[: len(before) - n_typed], before[len(before) - n_typed :]
            same_after = beyond_closers if typed.strip() else squeezed
            if squeezed(head) == then and same_after(stream.prompt.suffix) == same_after(after) and squeezed(typed + shown) in said:
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

    async def perform(self, act, number):
        document = self.document
        if act == "type what is shown":
            for char in self.screen[: number + 1]:
                closes = CLOSERS.get(char, "") if number % 2 and not document.halves[1][:1].strip() else ""
                await self.edit(char, after=closes)
        elif act == "accept":
            if self.screen:
                shown_id = self.shown_id
                await self.edit(self.screen)
                self.completer.accepted(shown_id)
        elif act == "reject":
            self.completer.rejected(self.shown_id)
        elif act == "type":
            char = "fxab(= 1\n"[number % 9]
            await self.edit(char, after=CLOSERS.get(char, "") if number % 2 else "")
        elif act == "paste":
            await self.edit(SAID[number % len(SAID)])
        elif act == "delete":
            for _ in range(number % 4 + 1):
                await self.edit("", remove=min(1, document.cursor))
        elif act == "undo":
            if document.past:
                document.text, document.cursor = document.past.pop()
                await self.ask(edited=True)
        elif act == "jump and back":
            here = document.cursor
            document.cursor = number * 7 % (len(document.text) + 1)
            await self.ask()
            document.cursor = here
            await self.ask()
        elif act == "jump":
            document.cursor = number * 5 % (len(document.text) + 1)
            await self.ask()
        elif act == "other document":
            self.uri = next(uri for uri in self.documents if uri != self.uri)
            await self.ask()
        else:
            await self.ask(invoked=act == "ask by key")

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


ACTS = ("type what is shown", "accept", "reject", "type", "paste", "delete", "undo", "jump and back", "jump", "other document", "ask", "ask by key")
scripts = st.lists(
    st.tuples(
        st.sampled_from(ACTS + ACTS[:4] * 3),
        st.integers(0, 40),
        st.sampled_from((0.0, 0.03, 0.06, 0.15, 0.15, 0.35, 0.8, 2.0, 4.0)),
    ),
    min_size=5,
    max_size=40,
)
trees = st.fixed_dictionaries(
    {
        "cache": st.fixed_dictionaries({"enabled": st.sampled_from((True, True, True, False)), "showings": st.sampled_from((0, 3))}),
        "debounce": st.fixed_dictionaries({"mode": st.sampled_from(("adaptive", "fixed", "off")), "maxMs": st.sampled_from((100, 300))}),
        "lookAhead": st.fixed_dictionaries({"mode": st.sampled_from(("auto", "on", "off"))}),
        "completion": st.fixed_dictionaries(
            {"multiline": st.sampled_from(("auto", "always", "never")), "deadlineMs": st.sampled_from((150, 800, 3000))}
        ),
    }
)


@given(script=scripts, tree=trees, takes_background=st.booleans(), cancels=st.booleans())
@budget(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_done_what_is_shown_was_said_and_nothing_runs_in_vain(script, tree, takes_background, cancels):
    @on_virtual_time
    async def session():
        editor = Editor(tree, takes_background=takes_background, cancels=cancels)
        for act, number, gap_s in script:
            editor.gap_s = gap_s
            await editor.perform(act, number)
        await editor.finish()

    session()


def alive(completer):
    """What the pipeline could leave behind, by kind."""
    gc.collect()
    kinds = (asyncio.Future, asyncio.Handle, Generation)
    counts = {kind.__name__: sum(isinstance(thing, kind) for thing in gc.get_objects()) for kind in kinds}
    return counts | {"shown": len(completer._shown), "claims": len(completer._turn._newest), "tasks": len(asyncio.all_tasks())}


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelling", "never cancelling"])
def test_nothing_grows_with_the_number_of_asks(cancels):
    @on_virtual_time
    async def session():
        editor = Editor({"lookAhead": {"mode": "on"}}, takes_background=True, cancels=cancels)
        rng, counts = random.Random(1), []
        for n_asks in (2_500, 5_000):
            while len(editor.asks) < n_asks:
                if rng.random() < 0.1:  # the other document is closed, and another one opened
                    other = next(uri for uri in editor.documents if uri != editor.uri)
                    if rng.random() < 0.5:
                        editor.completer.closed(other)
                    new = f"file:///w/{len(editor.asks)}.py"
                    editor.documents = {editor.uri: editor.document, new: Document(TEXT, TEXT.index("\n") + 5)}
                editor.gap_s = rng.choice((0.0, 0.03, 0.1, 0.3))
                editor.engine.streams = editor.engine.running  # what was said is not of interest here
                await editor.perform(rng.choice(ACTS), rng.randrange(40))
            await asyncio.sleep(10)
            counts.append(alive(editor.completer))
            assert not editor.engine.running
        assert len(editor.outcomes.all) == len(editor.asks)
        entries = editor.completer.recall.table._documents.values()
        assert len(entries) <= DOCUMENTS
        assert max(map(len, entries)) <= PER_DOCUMENT
        half, whole = counts
        assert {kind: n for kind, n in whole.items() if n > 1.1 * half[kind] + 20} == {}
        await editor.completer.retire()

    session()
