"""What a run of `monkeycode doctor` has proved: in which order a model fills in, or that its markers are no use at an address.

Kept in one small file of the user's own.  Addresses and names stand in it as digests only; a proof of another family,
or one that has grown old, proves nothing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.prompt import Family

logger = logging.getLogger(__name__)

Order = Literal["psm", "spm"]
Apply = Callable[[Family | None, str, str], Family | None]
"""A family, an address without credentials and a model's name → the family as it is to be asked there."""

_GOOD_FOR_S = 90 * 86_400
"""A server may get another model under the same name."""
_MOST = 256
_MOST_BYTES = 131_072


class Proof(msgspec.Struct, frozen=True):
    """Of one model at one address."""

    family: str
    """Name of the family that was tried."""
    order: Order | None
    """The better one; None: the markers are no use, and the model gets none."""
    at: float
    """Unix time in seconds."""


def orders(family: Family) -> tuple[Order, ...]:
    """In which orders it can be asked, its own first.  A template of its own has only one."""
    if family.fim:
        return (family.order,)
    return ("psm", "spm") if family.order == "psm" else ("spm", "psm")


def in_order(family: Family, order: Order) -> Family:
    """The family, asked in one of its `orders`."""
    return family if order == family.order else msgspec.structs.replace(family, order=order)


def apply(family: Family | None, base: str, model: str) -> Family | None:
    """The family as it was proved for `model` at `base`.  Reads a file."""
    proof = _load().get(_key(base, model))
    if family is None or proof is None or proof.family != family.name or not 0 <= time.time() - proof.at < _GOOD_FOR_S:
        return family
    if proof.order is None:
        return None
    return in_order(family, proof.order) if proof.order in orders(family) else family


def unproved(family: Family | None, base: str, model: str) -> Family | None:  # noqa: ARG001 - the form of `apply`
    """As if nothing was proved."""
    return family


def remember(proved: Mapping[tuple[str, str], Proof]) -> None:
    """Keep proofs by address and model, in place of what was proved of these before.  Reads and writes a file."""
    fresh = {_key(base, model): proof for (base, model), proof in proved.items()}
    kept = {key: proof for key, proof in _load().items() if key not in fresh}
    _save(dict([*kept.items(), *fresh.items()][-_MOST:]))


def _save(kept: Mapping[str, Proof]) -> None:
    try:
        folder = folders.private(folders.state())
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="proofs-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(kept))
        Path(temporary).replace(_path())
    except OSError as exc:
        logger.warning("What is proved of the endpoints could not be kept: %s.", exc.strerror)


def _load() -> dict[str, Proof]:
    try:
        with _path().open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=dict[str, Proof])
    except (OSError, ValueError, RecursionError):
        return {}


def _key(base: str, model: str) -> str:
    return hashlib.sha256(f"{base}\0{model}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _path() -> Path:
    return folders.state() / "endpoint-proofs.json"
