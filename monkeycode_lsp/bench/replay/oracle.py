"""A backend that is right with a probability: it says what the author typed next, or a line that nobody typed.

The luck of each key follows from the seed alone, so all systems of one run are lucky at the same keys.
`Oracle` decides what is said; `OracleEngine` says it after the latency.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence

import msgspec

from monkeycode_lsp import prompt as prompts
from monkeycode_lsp.bench.replay.observed import Sent, Typed
from monkeycode_lsp.domain import Chunk, Finish, Priority, Prompt
from monkeycode_lsp.engines.base import Model

_PREFIX_CHARACTERS, _SUFFIX_CHARACTERS = 120, 60
"""So much around the cursor tells a place from another."""
_BACK, _AHEAD = 300, 300
"""Keys that are looked at: a request is at most that old, and is made for a text that is typed at most so much later."""
_WORDS = ("quux", "zebra", "wobble", "kraken", "fjord", "jigsaw", "oxbow", "vortex")
_PIECE_CHARACTERS = 4
"""A token, roughly."""


class Said(msgspec.Struct, frozen=True):
    """The backend's answer at one place."""

    key: int
    text: str
    right: bool


class Oracle:
    """Knows the future, and tells it with probability `q`."""

    # The mutable state is how far the author has come; it changes in `typed` only.

    def __init__(self, typed: Sequence[Typed], *, q: float, seed: int) -> None:
        self._typed = typed
        self._q = q
        self._seed = seed
        self._newest = 0

    def typed(self, index: int) -> None:
        """The author has typed this key."""
        self._newest = index

    def answer(self, prefix: str, suffix: str) -> Said:
        """What the backend says there: of several keys with that text around the cursor, the newest one typed counts."""
        key = self._place(prefix, suffix)
        if key is None:
            return Said(self._newest, self._wrong(f"{prefix[-_PREFIX_CHARACTERS:]}\0{suffix[:_SUFFIX_CHARACTERS]}", ""), right=False)
        then = self._typed[key].then
        if then and random.Random(f"luck {self._seed} {key}").random() < self._q:  # noqa: S311 - no secret
            return Said(key, then, right=True)
        return Said(key, self._wrong(str(key), then), right=False)

    def _place(self, prefix: str, suffix: str) -> int | None:
        """Among the keys that were typed, else among those to come: a suggestion taken ahead leads there."""
        tail, head = prefix[-_PREFIX_CHARACTERS:], suffix[:_SUFFIX_CHARACTERS]
        past = range(self._newest, max(-1, self._newest - _BACK), -1)
        coming = range(self._newest + 1, min(len(self._typed), self._newest + _AHEAD))
        for keys in (past, coming):
            for key in keys:
                typed = self._typed[key]
                if typed.prefix.endswith(tail) and typed.suffix.startswith(head):
                    return key
        return None

    def _wrong(self, place: str, then: str) -> str:
        chance = random.Random(f"wrong {self._seed} {place}")  # noqa: S311 - no secret
        first, second = chance.sample([word for word in _WORDS if word[0] != then[:1]], 2)
        return f"{first}_{chance.randrange(10**6)} {second}"


class OracleEngine:
    """The oracle behind a latency, on the running loop's clock.  Keeps what it was asked in `sent`."""

    # The mutable state is the requests so far and what became of them; it changes in `stream` only.

    def __init__(self, oracle: Oracle, *, latency_s: float, streamed: bool = False, background: bool = False) -> None:
        self.sent: list[Sent] = []
        self._oracle = oracle
        self._latency_s = latency_s
        self._streamed = streamed
        self._background = background

    async def ready(self) -> Model:
        return Model(
            name="oracle",
            family=prompts.by_name("qwen2.5-coder"),
            fingerprint="oracle",
            context_tokens=8192,
            takes_background=self._background,
            verifies_drafts=True,
        )

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """The answer in one piece after the latency; streamed, it comes in pieces during the latency's second half."""
        if not prompt.max_tokens:  # to be read only
            yield Chunk("", finish=Finish.STOP)
            return
        loop = asyncio.get_running_loop()
        said = self._oracle.answer(prompt.prefix, prompt.suffix)
        sent = Sent(
            at=loop.time(),
            key=said.key,
            answer=said.text,
            right=said.right,
            draft=prompt.draft,
            background=prompt.priority is not Priority.INTERACTIVE,
            prefix=prompt.prefix[-_PREFIX_CHARACTERS:],
        )
        self.sent.append(sent)
        whole = False
        try:
            pieces = _pieces(said.text) if self._streamed else [said.text]
            first_s = self._latency_s / 2 if self._streamed else self._latency_s
            await asyncio.sleep(first_s)
            for piece in pieces[:-1]:
                yield Chunk(piece, n_tokens=1)
                await asyncio.sleep((self._latency_s - first_s) / (len(pieces) - 1))
            whole = True
            sent.ended = loop.time()
            yield Chunk(pieces[-1], n_tokens=1, finish=Finish.STOP)
        finally:
            sent.aborted = not whole
            if not whole:
                sent.ended = loop.time()

    async def aclose(self) -> None:
        """Nothing was started."""


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]
