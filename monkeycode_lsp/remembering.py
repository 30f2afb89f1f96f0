"""What is remembered, fitted to the text as it is now; and what of an answer is remembered, and how far it may go."""

from __future__ import annotations

import asyncio
from functools import partial

from monkeycode_lsp import config
from monkeycode_lsp.context import surroundings
from monkeycode_lsp.context.redaction import has_secret
from monkeycode_lsp.domain import Ask, Snapshot, Suggestion, Trigger, Window
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.tier import reach
from monkeycode_lsp.requesting import Requesting
from monkeycode_lsp.shaping import Shaping


class Remembering:
    """Of one configuration.  Without a model, or with the cache switched off, nothing is known and nothing is kept."""

    def __init__(self, settings: config.Config, recall: Recall, requesting: Requesting, shaping: Shaping) -> None:
        self._enabled = settings.cache.enabled
        self._redacts = settings.privacy.redact_secrets
        self._recall = recall
        self._requesting = requesting
        self._shaping = shaping

    def find(self, ask: Ask, window: Window, model: Model | None) -> Suggestion | None:
        """What this process knows."""
        if model is None or not self._enabled:
            return None
        kept = self._recall.find(ask.snapshot.uri, self._requesting.scope(model, ask.snapshot), window)
        return self._fitted(kept, ask, window) if kept is not None else None

    def knows(self, ask: Ask, window: Window, model: Model) -> bool:
        """Whether there is anything for that window."""
        return self._recall.find(ask.snapshot.uri, self._requesting.scope(model, ask.snapshot), window) is not None

    async def look_further(self, ask: Ask, window: Window, model: Model | None, for_s: float) -> Suggestion | None:
        """What the tiers beyond know, in so much time, which passes in any case."""
        if model is None or not self._enabled:
            await asyncio.sleep(for_s)
            return None
        far = reach(has_secret=has_secret(window.prefix, window.suffix), stays_here=ask.stays_here)
        scope = self._requesting.scope(model, ask.snapshot)
        kept = await self._recall.look_further(ask.snapshot.uri, scope, window, for_s=for_s, reach=far)
        return self._fitted(kept, ask, window) if kept is not None else None

    def keep(self, uri: str, generation: Generation, model: Model | None) -> None:
        """What a whole answer said, cleaned."""
        text = self._shaping.cleaned(generation).text
        if not text or not self._enabled:
            return
        window, request = generation.window, generation.request
        # Redaction has looked at all of the window already.
        before, after = (window.line_before, window.line_after) if self._redacts else (window.prefix, window.suffix)
        secret = request.redaction.found or has_secret(before + text, after)
        far = reach(has_secret=secret, stays_here=request.prompt.stays_here)
        self._recall.keep(uri, generation.scope, window, Suggestion(text, confidence=generation.confidence), reach=far)
        if self._requesting.uses_drafts(model):
            self._recall.near.add(generation.scope.own, window, text)

    def learn(self, snapshot: Snapshot, model: Model | None) -> None:
        """The user goes to another document: what is in this one may be a draft there."""
        if model is not None and self._requesting.uses_drafts(model):
            self._recall.learn(self._requesting.scope(model, snapshot), snapshot.uri, snapshot.language, snapshot.lines)

    def _fitted(self, kept: Suggestion, ask: Ask, window: Window) -> Suggestion | None:
        around = partial(surroundings.of, ask.snapshot, window)
        return self._shaping.fitted(kept, window, around, explicit=ask.trigger is Trigger.INVOKED)
