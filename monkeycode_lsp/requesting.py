"""What is asked of the engine for one ask: the window, what helps from other places, a draft, all of it rendered."""

from __future__ import annotations

import msgspec

from monkeycode_lsp import clock, config
from monkeycode_lsp.admission import Admission
from monkeycode_lsp.context import surroundings
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Ask, Priority, Prompt, Scope, Snapshot, Trigger, Window
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.counting import TokenCounts
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.generation import Generation, Request
from monkeycode_lsp.recall.near import Near
from monkeycode_lsp.scale import Scale
from monkeycode_lsp.shaping import Shaping


class Requesting:
    """Of one configuration."""

    def __init__(
        self,
        settings: config.Config,
        *,
        admission: Admission,
        counts: TokenCounts,
        gathering: Gathering,
        near: Near,
        scale: Scale,
        shaping: Shaping,
    ) -> None:
        self._settings = settings
        self._admission = admission
        self._counts = counts
        self._gathering = gathering
        self._near = near
        self._scale = scale
        self._shaping = shaping

    def window(self, ask: Ask, model: Model | None) -> Window:
        """What the model may see of the document."""
        counter = self._counts.at(model, ask.snapshot.language)
        window = windows.around(ask.snapshot, self._settings.context, ask.selected, scale=self._scale.window, counter=counter)
        self._counts.count_soon()
        return window

    def gather(self, ask: Ask, window: Window, model: Model | None) -> None:
        """Look for what helps from other places, while there is time."""
        is_here = model is not None and model.is_here
        explicit = ask.trigger is Trigger.INVOKED
        self._gathering.begin(ask.snapshot, window, scale=self._scale.snippets, is_here=is_here, explicit=explicit)

    def request(self, ask: Ask, window: Window, model: Model, *, background: bool = False) -> Request:
        """For `window`; `background`: the document as it would be with a suggestion taken."""
        snapshot = ask.snapshot
        return self._shaping.request(
            snapshot.uri,
            window,
            model,
            snippets=self._gathering.current(snapshot, is_here=model.is_here),
            around=surroundings.of(snapshot, self.window(ask, model) if background else window),
            draft=self._near.draft(self.scope(model, snapshot).own, window) if self.uses_drafts(model) else "",
            background=background,
            accepted=ask.accepted,
            stays_here=ask.stays_here or self._gathering.is_private(snapshot, is_here=model.is_here),
        )

    async def ahead(self, ask: Ask, model: Model) -> tuple[Window, Prompt] | None:
        """The window of an ask, and its prompt to be read only; None: the document must not be read."""
        ask, rule = await self._admission.admitted(ask, n_nuls=0)
        if rule:
            return None
        window = self.window(ask, model)
        self.gather(ask, window, model)
        await self._gathering.ready(ask.snapshot.uri, clock.now() + self._settings.context.budget_ms / 1e3)
        prompt = self.request(ask, window, model).prompt
        return window, msgspec.structs.replace(prompt, max_tokens=0, draft="", priority=Priority.WARM_UP)

    def learn(self, generation: Generation) -> None:
        """What a whole answer tells of the engine: how fast it reads, and what text costs there."""
        usage, request = generation.usage, generation.request
        self._shaping.learn(generation)
        self._counts.learn(request.window.language, request.prompt, usage)
        if generation.first_ms is not None and not generation.background:
            self._scale.learn(usage.read, generation.first_ms)
            self._gathering.learn(usage.read, generation.first_ms)

    def scope(self, model: Model, snapshot: Snapshot) -> Scope:
        """What else must be the same for an answer to be good for that document."""
        # A file of no workspace belongs to those beside it, and what is no file to itself.
        alone = snapshot.uri.rpartition("/")[0] if snapshot.uri.startswith("file:") else snapshot.uri
        return Scope(model.fingerprint, self._shaping.fingerprint, snapshot.workspace or alone)

    def uses_drafts(self, model: Model | None) -> bool:
        """Whether it is worth while to look for one."""
        return model is not None and model.verifies_drafts and self._settings.cache.enabled
