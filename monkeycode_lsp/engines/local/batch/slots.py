"""The KV caches of the model, one per slot, and which of them a prompt should take.

What a slot holds is known token by token at any moment, also after an abort: `Slot.tokens` changes in this
module only, together with the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from monkeycode_lsp.engines.local.batch.runtime import Runtime
from monkeycode_lsp.engines.local.batch.shelf import Entry, Shelf
from monkeycode_lsp.engines.local.batch.tokens import common_prefix

WORTH = 32
"""Fewer tokens are read again sooner than they are copied or put away."""


class Slot:
    """One KV cache."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: list[int] = []
        """What it holds."""
        self.taken = False
        self.used = 0
        """When it was last taken, as a count."""
        self.n_prompt = 0
        """How much of it was asked for; the rest was answered."""
        self.session = ""
        """The document that it was last taken for."""


class Slots:
    """All KV caches of one model, and the shelf of states that have none."""

    def __init__(self, runtime: Runtime, shelf: Shelf) -> None:
        # The mutable state is what the slots hold and which are taken, the count of takings, and `keep_all`.
        self._runtime = runtime
        self._shelf = shelf
        self._n_taken = 0
        self.keep_all = True
        """Whether nothing that was put away had to be thrown away: else a run that loses its slot starts all over."""
        self.all = [Slot(number) for number in range(runtime.n_sequences)]

    def take(self, wanted: Sequence[int], session: str, *, free: Collection[Slot]) -> Slot:
        """A slot of `free`, prepared: what it holds is a beginning of `wanted`, and not all of it.

        The last token is always read anew, for its logits.  `free` may hold slots of less urgent runs: one of those is
        chosen only for what it holds, or where there is no other.
        """
        most = len(wanted) - 1
        shared = {slot: min(common_prefix(slot.tokens, wanted), most) for slot in self.all}
        near = max(free, key=lambda slot: (shared[slot], not slot.taken, not slot.tokens, -slot.number))
        source = max(self.all, key=lambda slot: shared[slot])
        entry, on_shelf = self._shelf.best(wanted)
        on_shelf = min(on_shelf, most)
        if max(shared[source], on_shelf) < shared[near] + WORTH and _continues(near, shared[near], session):
            slot = near
        else:
            # Another document: what is held stays of use, in its slot or on the shelf.
            slot = min(free, key=lambda slot: (slot.taken, bool(slot.tokens), slot.used, slot.number))
            if entry is not None and on_shelf >= max(shared[source], shared[slot]) + WORTH:
                self._shelf.used(entry)  # before it is pushed out
                self._put_away(slot)
                self._restore(slot, entry, whole=on_shelf == len(entry.tokens))
            else:
                self._put_away(slot)
                if shared[source] >= shared[slot] + WORTH:
                    self._copy(source, slot)
        self.cut(slot, min(common_prefix(slot.tokens, wanted), most))
        self._n_taken += 1
        slot.used = self._n_taken
        slot.n_prompt = len(wanted)
        slot.session = session
        slot.taken = True
        return slot

    def release(self, slot: Slot) -> None:
        """What it holds stays, for the next prompt."""
        slot.taken = False

    def cut(self, slot: Slot, n_tokens: int) -> bool:
        """Drop what follows the first `n_tokens`; False: the cache cannot do it, and holds nothing any more."""
        if len(slot.tokens) <= n_tokens:
            return True
        return self.resync(slot, n_tokens)

    def resync(self, slot: Slot, n_tokens: int) -> bool:
        """As `cut`, where the cache may hold more than is known, after an abort."""
        could = self._runtime.keep(slot.number, n_tokens)
        del slot.tokens[n_tokens if could else 0 :]
        return could

    def empty(self, slot: Slot) -> None:
        """Drop everything, after an error."""
        self._runtime.keep(slot.number, 0)
        slot.tokens.clear()

    def put_all_away(self) -> None:
        """Every slot's state goes to the shelf, as far as it is worth it."""
        for slot in sorted(self.all, key=lambda slot: slot.used):
            self._put_away(slot)

    def _put_away(self, slot: Slot) -> None:
        """Save what the slot holds, unless it is little or held elsewhere as well."""
        if len(slot.tokens) < WORTH or self._shelf.has(slot.tokens):
            return
        others = (other for other in self.all if other is not slot)
        if any(common_prefix(other.tokens, slot.tokens) == len(slot.tokens) for other in others):
            return
        state = self._runtime.save(slot.number)
        entry = Entry(slot.tokens, len(state), lambda: state)
        self._shelf.put(entry)
        self.keep_all = self.keep_all and entry in self._shelf

    def _restore(self, slot: Slot, entry: Entry, *, whole: bool) -> None:
        state = entry.load()
        self.empty(slot)
        if state is not None and self._runtime.restore(slot.number, state):
            slot.tokens[:] = entry.tokens
            if not whole:
                return
        self._shelf.drop(entry)

    def _copy(self, source: Slot, target: Slot) -> None:
        # Through its saved state: a copy inside llama.cpp is carried out by the next decode only, and anything
        # done to either sequence before that would be lost or be copied.
        state = self._runtime.save(source.number)
        self.empty(target)
        if self._runtime.restore(target.number, state):
            target.tokens[:] = source.tokens


def _continues(slot: Slot, n_shared: int, session: str) -> bool:
    """Whether a prompt takes the place of what the slot holds: the same document, or little is lost by it."""
    if slot.session == session and n_shared >= WORTH:
        return True
    return min(len(slot.tokens), slot.n_prompt) - n_shared < WORTH
