"""Which members serve the same model, and what their pool is called.  Pure.

A prompt is rendered for one model, so only members that serve the same one share the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.prompt import Family


class Group(msgspec.Struct, frozen=True):
    """Members that serve one model."""

    model: Model
    members: tuple[Member, ...]
    """In the order of the settings."""


def gather(members: Iterable[Member], digest: str) -> list[Group]:
    """The groups of those whose model is known, each where its first member stands."""
    found: dict[tuple[str, Family | None], list[tuple[Member, Model]]] = {}
    for member in members:
        if member.model is not None:
            found.setdefault(kind(member.model), []).append((member, member.model))
    return [Group(_shared([model for _, model in pairs], digest), tuple(member for member, _ in pairs)) for pairs in found.values()]


def kind(model: Model) -> tuple[str, Family | None]:
    """The same for models that can share the work."""
    return _plain_name(model.name), model.family


def allowed(members: Sequence[Member], prompt: Prompt) -> Sequence[Member]:
    """Those of them that may see a prompt: only what is on this machine, if its text must not leave it."""
    if not prompt.stays_here:
        return members
    return [member for member in members if member.model is not None and member.model.is_here]


def digest(endpoints: Iterable[tuple[config.Endpoint, Address]]) -> str:
    """Changes when the settings could make another model answer; headers may be secrets, so nothing else of them is kept."""
    told = sorted((address.base, endpoint.api, sorted(endpoint.headers.items())) for endpoint, address in endpoints)
    return hashlib.blake2b(msgspec.json.encode(told), digest_size=8).hexdigest()


def _shared(models: Sequence[Model], digest: str) -> Model:
    """The model as the whole group serves it.  Its fingerprint stays the same while members come and go."""
    first = models[0]
    how = f"{first.family.name}/{first.family.order}" if first.family else ""
    is_here = all(model.is_here for model in models)
    known = [model.context_tokens for model in models if model.context_tokens is not None]
    return msgspec.structs.replace(
        first, fingerprint=f"remote:pool:{_plain_name(first.name)}:{how}:{digest}", context_tokens=min(known, default=None), is_here=is_here
    )


def _plain_name(name: str) -> str:
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
