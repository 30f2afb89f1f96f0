"""One endpoint, looked at from all sides for `monkeycode doctor`: what it is, whether it fills in, how fast it is, how it is reached.

Every answer is asked for as the pipeline asks.  About ten short requests, one after the other, because side by side they would
measure each other; what was found out before the time is over, or before something failed, is kept.
"""

from __future__ import annotations

import asyncio
import time
from typing import Literal

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.examination import filling, pace, stop_limit
from monkeycode_lsp.engines.remote.examination.filling import Filling
from monkeycode_lsp.engines.remote.examination.pace import Pace
from monkeycode_lsp.engines.remote.examination.stop_limit import StopLimit
from monkeycode_lsp.engines.remote.http.head import Head
from monkeycode_lsp.engines.remote.proofs import Proof
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.prompt import Family

_ANYTHING = "/v1/models"
"""Asked for what stands around its answer; that may be a 404."""


class Line(msgspec.Struct, frozen=True):
    """How the server is reached."""

    keeps: bool | None
    """Whether any request goes over a connection that served one before; None: it cannot be told."""
    clock_s: float | None
    """How far the server's clock is ahead of ours; None: it does not say."""
    certificate_days: float | None
    """How long its certificate is good; None: there is none."""


class Examination(msgspec.Struct, frozen=True):
    """What was found out.  None, and empty words: it was not, or there is nothing."""

    api: str
    model: str
    context_tokens: int | None
    family: Family | None = None
    """The one that was tried; its order is that of the setting or of our table."""
    family_from: Literal["", "setting", "name", "server"] = ""
    """Who says so."""
    takes_markers: bool = True
    """Whether prompts with markers are given to it at all."""
    line: Line | None = None
    stops: StopLimit | None = None
    filling: Filling | None = None
    pace: Pace | None = None
    proof: Proof | None = None
    """To be remembered."""
    error: MonkeyCodeError | None = None
    """What ended it early."""
    is_late: bool = False
    """The time was over."""

    @property
    def completes(self) -> bool:
        """Whether it gave answers, or at least nothing speaks against it."""
        return self.error is None or self.filling is not None

    @property
    def asked_as(self) -> Family | None:
        """The family as prompts are rendered from now on."""
        if not self.takes_markers:
            return None
        if self.family is None or self.filling is None or self.family_from == "setting":
            return self.family
        return None if self.filling.order is None else proofs.in_order(self.family, self.filling.order)


async def examine(endpoint: Endpoint, *, template: str | config.Template, within_s: float) -> Examination:
    """Look at an endpoint that is ready and was made with `proofs.unproved`, so that it is proved anew.  Raises nothing."""
    found = _known(endpoint, await endpoint.ready())
    try:
        async with asyncio.timeout(within_s):
            found = _with_family(found, template)
            found = await _look_around(endpoint, found)
            found = await _prove(endpoint, found)
            if found.stops is None:  # something else may have been refused, which the endpoint has learned to do without
                found = msgspec.structs.replace(found, stops=await _stops(endpoint, endpoint.inspect))
            speed = await pace.measure(endpoint, found.asked_as, context_tokens=found.context_tokens)
            found = msgspec.structs.replace(found, pace=speed)
    except TimeoutError:
        found = msgspec.structs.replace(found, is_late=True)
    except MonkeyCodeError as exc:
        found = msgspec.structs.replace(found, error=exc)
    return msgspec.structs.replace(found, api=endpoint.api)  # a server that only chats is known by its refusals


def _known(endpoint: Endpoint, model: Model) -> Examination:
    origin = _origin(model.family, endpoint.model)
    return Examination(endpoint.api, endpoint.model, model.context_tokens, model.family, origin, takes_markers=endpoint.marks)


def _origin(family: Family | None, model: str) -> Literal["", "name", "server"]:
    if family is None:
        return ""
    named = prompt.by_name(model)
    return "name" if named is not None and named.name == family.name else "server"


def _with_family(found: Examination, template: str | config.Template) -> Examination:
    """As the user wants it; naming what was found anyway changes nothing."""
    chosen = prompt.by_setting(template, found.family)
    return found if chosen is found.family else msgspec.structs.replace(found, family=chosen, family_from="setting")


async def _look_around(endpoint: Endpoint, found: Examination) -> Examination:
    heads: list[Head] = []

    async def ask(path: str, body: bytes | None) -> Head:
        heads.append(await endpoint.inspect(path, body))
        return heads[-1]

    first = await ask(_ANYTHING, None)
    now = time.time()
    stops = await _stops(endpoint, ask)
    await ask(_ANYTHING, None)
    line = Line(
        keeps=len({head.connection for head in heads}) < len(heads) if all(head.connection for head in heads) else None,
        clock_s=None if first.date is None else first.date - now,
        certificate_days=None if first.valid_until is None else (first.valid_until - now) / 86_400,
    )
    return msgspec.structs.replace(found, line=line, stops=stops)


async def _stops(endpoint: Endpoint, ask: stop_limit.Ask) -> StopLimit | None:
    dialect = endpoint.terms.dialect
    return None if dialect is None else await stop_limit.find(ask, dialect, model=endpoint.model, without=endpoint.terms.without)


async def _prove(endpoint: Endpoint, found: Examination) -> Examination:
    family, is_wanted = found.family, found.family_from == "setting"
    tried = () if family is None else (family.order,) if is_wanted else proofs.orders(family)
    filled = await filling.prove(endpoint, family, tried)
    proof = None
    if family is not None and endpoint.marks:
        if not is_wanted:
            proof = Proof(family.name, filled.order, time.time())
        elif filled.order is None:  # the user's own markers are given even so
            filled = msgspec.structs.replace(filled, fills=False)
    return msgspec.structs.replace(found, filling=filled, proof=proof, takes_markers=endpoint.marks)
