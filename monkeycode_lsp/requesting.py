"""What is asked of the engine for one ask: the window, what helps from other places, a draft, all of it rendered."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.context import surroundings
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Ask, Scope, Snapshot, Window
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.generation import Request
from monkeycode_lsp.recall.near import Near
from monkeycode_lsp.scale import Scale
from monkeycode_lsp.shaping import Shaping


class Requesting:
    """Of one configuration."""

    def __init__(self, settings: config.Config, *, shaping: Shaping, near: Near, gathering: Gathering, scale: Scale) -> None:
        self._settings = settings
        self._shaping = shaping
        self._near = near
        self._gathering = gathering
        self._scale = scale

    def window(self, ask: Ask) -> Window:
        """What the model may see of the document."""
        return windows.around(ask.snapshot, self._settings.context, ask.selected, scale=self._scale.value)

    def request(self, ask: Ask, window: Window, model: Model, *, background: bool = False) -> Request:
        """For `window`; `background`: the document as it would be with a suggestion taken."""
        snapshot = ask.snapshot
        return self._shaping.request(
            snapshot.uri,
            window,
            model,
            snippets=self._gathering.current(snapshot, is_here=model.is_here),
            around=surroundings.of(snapshot, self.window(ask) if background else window),
            draft=self._near.draft(self.scope(model, snapshot).own, window) if self.uses_drafts(model) else "",
            background=background,
            stays_here=ask.stays_here,
        )

    def scope(self, model: Model, snapshot: Snapshot) -> Scope:
        """What else must be the same for an answer to be good for that document."""
        # A file of no workspace belongs to those beside it, and what is no file to itself.
        alone = snapshot.uri.rpartition("/")[0] if snapshot.uri.startswith("file:") else snapshot.uri
        return Scope(model.fingerprint, self._shaping.fingerprint, snapshot.workspace or alone)

    def uses_drafts(self, model: Model | None) -> bool:
        """Whether it is worth while to look for one."""
        return model is not None and model.verifies_drafts and self._settings.cache.enabled
