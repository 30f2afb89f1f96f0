"""Which token comes next, from one row of logits, and how sure the model is of it.

The likeliest token is found without the library; everything else goes through llama.cpp's samplers.  The
log-probability is always the model's own: of the raw row, at temperature 1.  Where only some tokens may be drawn, since the
user has typed the beginning of one, it is that among these: what he typed was not for the model to guess.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

from monkeycode_lsp.domain import Sampling
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.llama.build import LOG
from monkeycode_lsp.engines.local.llama.vocabulary import Vocabulary
from monkeycode_lsp.engines.local.wire import Generate

Logits = npt.NDArray[np.float32]
Entries = npt.NDArray[np.void]
_ENTRY = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])
"""llama.cpp's `llama_token_data`."""
_MOST_GRAMMAR = 65_536
_DEEPEST_GRAMMAR = 100
"""llama.cpp reads a grammar recursively: a deeper one would end the process."""
_NEGLIGIBLE = 23.0
"""Tokens e^-23 times as likely as the likeliest one: a whole vocabulary of them is nothing to `top_p`."""


class Sampler:
    """See `runtime.Sampler`."""

    def __init__(self, ask: Generate, vocabulary: Vocabulary, logits: Callable[[int], Logits]) -> None:
        """`logits` gives a row of the last batch.  Raises `GenerationError`."""
        # The mutable state is inside llama.cpp's samplers: what was said, the grammar's place, the dice.
        self._logits = logits
        self._vocabulary = vocabulary
        self._sampling = ask.sampling
        self._grammar = _grammar(vocabulary, ask.grammar) if ask.grammar else None
        self._penalties = _penalties(vocabulary, ask) if ask.sampling.repeat_penalty != 1 else None
        self._dice = _dice(ask.sampling) if ask.sampling.temperature > 0 else None
        self._least = _least(ask.sampling)
        self._parts = [part for part in (self._grammar, self._penalties, self._dice) if part is not None]

    def draw(self, row: int, among: Sequence[int] | None = None) -> tuple[int, float]:
        """See `runtime.Sampler`.  Raises `GenerationError` where the grammar allows no token of `among`."""
        logits = self._logits(row)
        ids = np.asarray(among if among is not None else (), dtype=np.int32)
        if not self._parts:
            token = int(logits.argmax()) if among is None else int(ids[logits[ids].argmax()])
        else:
            token = self._choose(logits, among)
        for part in self._parts:
            llama_cpp.llama_sampler_accept(part, token)
        if among is None:
            return token, log_probability(logits, token)
        return token, log_probability(logits[ids], int((ids == token).argmax()))

    def close(self) -> None:
        """See `runtime.Sampler`."""
        for part in self._parts:
            llama_cpp.llama_sampler_free(part)
        self._parts = []

    def _entries(self, logits: Logits, among: Sequence[int] | None) -> Entries:
        """What can be drawn, with less for what was said."""
        ids = np.arange(len(logits), dtype=np.int32) if among is None else np.asarray(among, dtype=np.int32)
        entries = np.empty(len(ids), dtype=_ENTRY)
        entries["id"] = ids
        entries["logit"] = logits if among is None else logits[ids]
        if self._penalties is not None:
            _apply(self._penalties, entries)
        return entries

    def _choose(self, logits: Logits, among: Sequence[int] | None) -> int:
        entries = self._entries(logits, among)
        token = self._pick(entries)
        if self._grammar is None or self._allowed(entries[entries["id"] == token]).size:
            return token
        # Seldom, as a model mostly keeps to the grammar; asking it for every token takes long.
        entries = self._allowed(entries)
        if not entries.size:
            raise GenerationError("grammar", "The grammar allows nothing that could follow here.")
        return self._pick(entries)

    def _pick(self, entries: Entries) -> int:
        """One of the entries, which are left as they are."""
        best = entries["logit"].argmax()
        if self._dice is None:
            return int(entries["id"][best])
        likely = entries[entries["logit"] >= entries["logit"][best] + self._least]
        chosen = _apply(self._dice, likely)
        return int(chosen.data[chosen.selected].id)

    def _allowed(self, entries: Entries) -> Entries:
        """Those that the grammar allows."""
        entries = entries[~self._vocabulary.silent[entries["id"]]]
        if entries.size:
            left = entries.copy()
            _apply(self._grammar, left)
            entries = entries[np.isfinite(left["logit"])]
        return entries


def log_probability(logits: Logits, token: int) -> float:
    """Of one token, by the model."""
    top = logits.max()
    return float(logits[token] - top) - math.log(np.exp(logits - top).sum(dtype=np.float64))


def _apply(sampler: Any, entries: Entries) -> Any:
    """What a sampler of llama.cpp makes of the entries, in their own memory."""
    array = llama_cpp.llama_token_data_array(
        data=entries.ctypes.data_as(llama_cpp.llama_token_data_p), size=len(entries), selected=-1, sorted=False
    )
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    return array


def _least(sampling: Sampling) -> float:
    """Entries with logits so far below the best one are left out from the start: they cannot be drawn."""
    if sampling.top_p < 1:
        return -_NEGLIGIBLE  # the share that `top_p` cuts off is one of all tokens
    return math.log(sampling.min_p) if sampling.min_p > 0 else -math.inf


def _dice(sampling: Sampling) -> Any:
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    if sampling.top_p < 1:
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_top_p(sampling.top_p, 1))
    if sampling.min_p > 0:
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_min_p(sampling.min_p, 1))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_temp(sampling.temperature))
    random = llama_cpp.LLAMA_DEFAULT_SEED  # another one each time
    seed = random if sampling.seed is None else sampling.seed % random
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_dist(seed))
    return chain


def _penalties(vocabulary: Vocabulary, ask: Generate) -> Any:
    return llama_cpp.llama_sampler_init_penalties(vocabulary.n_tokens, ask.max_tokens, ask.sampling.repeat_penalty, 0.0, 0.0)


def _depth(grammar: str) -> int:
    """How many parentheses are open at most."""
    return max(itertools.accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in grammar), default=0)


def _grammar(vocabulary: Vocabulary, text: str) -> Any:
    LOG.complaints.clear()
    if len(text) > _MOST_GRAMMAR or _depth(text) > _DEEPEST_GRAMMAR:
        raise GenerationError("grammar", "It is too long or too deeply nested.")
    # A null character would end the text for llama.cpp, and what is left of it could mean something else.
    data = text.encode("utf-8", errors="replace")
    grammar = None if b"\0" in data else llama_cpp.llama_sampler_init_grammar(vocabulary.handle, data, b"root")
    if not grammar:
        raise GenerationError("grammar", " ".join(["llama.cpp cannot read the grammar.", *LOG.complaints]))
    return grammar
