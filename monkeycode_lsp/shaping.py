"""What is asked of an engine at a window, and what of its answer is fit to be shown there, by the settings."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence

import msgspec

from monkeycode_lsp import config, filters, prompt, stops
from monkeycode_lsp.context import healing
from monkeycode_lsp.context.redaction import Redaction, Redactor
from monkeycode_lsp.context.sticky import Sticky
from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Finish, Origin, Priority, Sampling, Snippet, Suggestion, Window
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.generation import Generation, Request

_MOST_MODELS = 32


class Shaping:
    """Of one configuration."""

    # The mutable state is the suffixes sent last, how each model ends its answers, and the answer that was cleaned last: when a stream ends, it is kept and shown,
    # and both want it clean.

    def __init__(self, settings: config.Config) -> None:
        completion = settings.completion
        self._redactor = Redactor(secrets.token_bytes(16)) if settings.privacy.redact_secrets else None
        self._sticky = Sticky()
        self._habits: dict[str, stops.Habit] = {}
        self._template = settings.template
        self._multiline = completion.multiline
        self._max_tokens = completion.max_tokens
        self._sampling = Sampling(
            temperature=completion.temperature,
            top_p=completion.top_p,
            min_p=completion.min_p,
            repeat_penalty=completion.repeat_penalty,
        )
        parts = (settings.template, settings.completion, settings.context, settings.privacy.redact_secrets)
        self._last: tuple[Generation, int, bool, bool] | None = None
        self._cleaned = filters.Cleaned("")
        self.fingerprint = hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()
        """Of every setting that could change an answer."""

    def plan(self, window: Window, *, accepted: bool = False, model: str = "") -> stops.Plan:
        """How much is wanted there, of that model (its fingerprint)."""
        return stops.plan(window, self._multiline, accepted=accepted, patience=self._habits.get(model, stops.Habit()).patience)

    def request(
        self,
        uri: str,
        window: Window,
        model: Model,
        *,
        snippets: Sequence[Snippet] = (),
        around: Surroundings = Surroundings(),  # noqa: B008 - frozen
        draft: str = "",
        background: bool = False,
        accepted: bool = False,
        stays_here: bool = False,
    ) -> Request:
        """What is asked at `window`, as the model's family wants it.

        `background`: as if a suggestion had been taken; `accepted`: one was taken just now.
        """
        family = prompt.by_setting(self._template, model.family)
        hidden = self._without_secrets(window, snippets, draft)
        texts, paths = hidden.others[: len(snippets)], hidden.others[len(snippets) + 1 : -2]
        before, heal = healing.split(hidden.before) if model.heals and family is not None else (hidden.before, "")
        rendered = prompt.render(
            msgspec.structs.replace(
                window, prefix=before, suffix=self._suffix(uri, hidden, model, family), path=hidden.others[-2], repository=hidden.others[-1]
            ),
            [msgspec.structs.replace(snippet, text=text, path=path) for snippet, text, path in zip(snippets, texts, paths, strict=True)],
            family,
            max_tokens=self._max_tokens,
            sampling=self._sampling,
            priority=Priority.LOOK_AHEAD if background else Priority.INTERACTIVE,
            session=uri,
        )
        draft = hidden.others[len(snippets)]
        rendered = msgspec.structs.replace(
            rendered, prefix=hidden.before, heal=heal, draft=draft, model=model.fingerprint, stays_here=stays_here
        )
        plan = self.plan(window, accepted=accepted or background, model=model.fingerprint)
        return Request(rendered, window, plan, around, hidden)

    def learn(self, generation: Generation) -> None:
        """How the model ends its answers."""
        if not generation.request.plan.single:
            known = self._habits.pop(generation.request.prompt.model, stops.Habit())
            self._habits[generation.request.prompt.model] = known.after(
                ended=generation.finish is Finish.STOP, ran_on=generation.ran_on or generation.finish is Finish.LENGTH
            )
            if len(self._habits) > _MOST_MODELS:
                del self._habits[next(iter(self._habits))]

    def _suffix(self, uri: str, hidden: Redaction, model: Model, family: prompt.Family | None) -> str:
        """Where the suffix is read first, the one that the engine has already will do while it is nearly the true one.

        One with other placeholders would not: they could not be told from what the model says by itself.
        """
        if family is None or not family.suffix_first:
            return hidden.after
        placeholders = "".join(sorted(placeholder.text for placeholder in hidden.hidden))
        return self._sticky.suffix(f"{model.fingerprint} {uri} {placeholders}", hidden.after)

    def _without_secrets(self, window: Window, snippets: Sequence[Snippet], draft: str) -> Redaction:
        """The others are the snippets' texts, the draft, the snippets' paths, the document's path and the repository's name."""
        names = [*(snippet.path for snippet in snippets), window.path, window.repository]
        others = [*(snippet.text for snippet in snippets), draft, *names]
        if self._redactor is None:
            return Redaction(window.prefix, window.suffix, tuple(others))
        return self._redactor.redact(window.prefix, window.suffix, others)

    def cleaned(self, generation: Generation, *, explicit: bool = False) -> filters.Cleaned:
        """What there is of the answer, for the place it was made for.

        `explicit`: the user asked by key, so filters of taste are off.
        """
        text = generation.text
        asked = (generation, len(text), generation.whole, explicit)
        if self._last == asked:
            return self._cleaned
        is_growing = not generation.whole
        if generation.finish is Finish.LENGTH or not generation.whole:
            likely = stops.broken_off(text, generation.window, generation.request.plan)
            if likely is not None:
                text, is_growing = text[: likely.at], False
            elif "\n" in text.strip("\n"):
                text, is_growing = text[: text.rfind("\n")], False  # the last line is only a part of what it would be
        self._last, self._cleaned = (
            asked,
            filters.explained(
                text,
                generation.window,
                plan=generation.request.plan,
                around=generation.request.around,
                explicit=explicit,
                is_growing=is_growing,
            ),
        )
        return self._cleaned

    def fitted(
        self, kept: Suggestion, window: Window, around: Callable[[], Surroundings] = Surroundings, *, explicit: bool
    ) -> Suggestion | None:
        """What was remembered, for the text around the cursor as it is now; what is typed through was cleaned as a whole."""
        if kept.origin is Origin.TYPED_THROUGH:
            return kept
        text = filters.clean(kept.text, window, plan=self.plan(window), around=around(), explicit=explicit)
        return msgspec.structs.replace(kept, text=text) if text else None
