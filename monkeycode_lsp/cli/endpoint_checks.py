"""What `monkeycode doctor` asks of the endpoints: who answers, and, unless it is to be quick, how well.  Bounded in time."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Sequence

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.cli import answering, endpoint_report, endpoint_words
from monkeycode_lsp.cli.endpoint_report import EndpointReport
from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.engines import choose
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.examination import examining
from monkeycode_lsp.engines.remote.examination.examining import Examination
from monkeycode_lsp.engines.remote.pool import groups
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.errors import EngineBusyError, EngineUnavailableError, MonkeyCodeError

_REACH_S = 15.0
_EXAMINE_S = 30.0
_ROLES = {
    "first": "gets all requests",
    "shares": "shares the work with the others of this model",
    "stands in": "stands in when those before it are gone",
}


class _Answer(msgspec.Struct, frozen=True):
    """What came of asking one endpoint."""

    subject: str
    label: str
    base: str = ""
    name: str = ""
    """The model's name as proofs know it."""
    model: Model | None = None
    """None: it does not answer, see `error`."""
    inserts: bool = False
    """Whether it gets both halves without markers where the family is not known."""
    said: tuple[str, ...] = ()
    error: MonkeyCodeError | None = None
    examined: Examination | None = None

    @property
    def works(self) -> bool:
        return self.model is not None and (self.examined is None or self.examined.completes)

    @property
    def fault(self) -> MonkeyCodeError | None:
        """Why it does not work."""
        return self.error or (self.examined.error if self.examined else None)


async def check_endpoints(settings: config.Config, *, needed: bool, measure: bool) -> tuple[list[Finding], list[EndpointReport]]:
    """For people, and for programs.  `measure`: fill holes and take times, which are about ten short requests to each."""
    endpoints = choose.endpoints(settings)
    if needed and not endpoints:
        remedy = "Add one to `remote.endpoints`."
        return [Finding("endpoint", State.BROKEN, "engine says remote, and no endpoint is set", remedy)], []
    answers = await asyncio.gather(*(_ask(settings, endpoint, measure=measure) for endpoint in endpoints))
    proved = {
        (answer.base, answer.name): answer.examined.proof for answer in answers if answer.examined and answer.examined.proof is not None
    }
    if proved:
        await asyncio.to_thread(proofs.remember, proved)
    roles = _roles(answers)
    is_broken = needed and not any(answer.works for answer in answers)
    findings: list[Finding] = []
    for answer, role in zip(answers, roles, strict=True):
        findings += _findings(answer, role, is_broken=is_broken, deadline_ms=settings.completion.deadline_ms)
    return findings, [_report(answer, role) for answer, role in zip(answers, roles, strict=True)]


async def _ask(settings: config.Config, endpoint: config.Endpoint, *, measure: bool) -> _Answer:
    label = answering.host(endpoint)
    answer = _Answer(f"endpoint {label}", label)
    said: list[str] = []
    limits = Limits(first_s=settings.remote.timeout_ms / 1e3, stall_s=settings.remote.stall_ms / 1e3)
    asked: Endpoint | None = None
    try:
        http2 = settings.remote.http2 and importlib.util.find_spec("h2") is not None
        asked = Endpoint(endpoint, limits=limits, http2=http2, notify=said.append, environ=os.environ, proved=proofs.unproved)
        async with asyncio.timeout(_REACH_S):
            model = await asked.ready()
        answer = msgspec.structs.replace(
            answer, base=asked.address.base, name=asked.model, model=model, inserts=asked.terms.may_insert, said=tuple(said)
        )
        if measure:
            found = await examining.examine(asked, template=settings.template, within_s=_EXAMINE_S)
            answer = msgspec.structs.replace(answer, examined=found)
    except MonkeyCodeError as exc:
        answer = msgspec.structs.replace(answer, error=exc)
    except TimeoutError:
        late = EngineUnavailableError(f"no answer within {_REACH_S:g} seconds", remedy="Is the address right, and the server up?")
        answer = msgspec.structs.replace(answer, error=late)
    finally:
        if asked is not None:
            await asked.aclose()
    return answer


def _findings(answer: _Answer, role: str, *, is_broken: bool, deadline_ms: int) -> list[Finding]:
    if not answer.works and answer.fault is not None:
        is_busy = isinstance(answer.fault, EngineBusyError)
        state = State.BROKEN if is_broken and not is_busy else State.WARNING
        return [Finding(answer.subject, state, answer.fault.message, answer.fault.remedy)]
    if answer.examined is not None:
        findings = list(endpoint_words.findings(answer.subject, answer.examined, role=_in_words(role), deadline_ms=deadline_ms))
    else:
        findings = [_who(answer, role)]
    return findings + [Finding(f"{answer.subject}: settings", State.WARNING, " ".join(answer.said))] * bool(answer.said)


def _who(answer: _Answer, role: str) -> Finding:
    """Where nothing was tried."""
    assert answer.model is not None  # noqa: S101 - there is an error otherwise
    family = answer.model.family
    how = f"prompts of the family {family.name}" if family else "it is asked to fill in by itself" if answer.inserts else ""
    if not how:
        words = f"{answer.model.name} answers, but its prompt format is not known"
        return Finding(answer.subject, State.WARNING, words, "Set `template` to its family.")
    return Finding(answer.subject, State.OK, "; ".join(filter(None, (f"{answer.model.name} answers", _in_words(role), how))))


def _roles(answers: Sequence[_Answer]) -> list[str]:
    """What each is there for; empty: it does not work."""
    kinds = [groups.kind(_as_proved(answer.model, answer.examined)) if answer.works and answer.model else None for answer in answers]
    first = next((kind for kind in kinds if kind is not None), None)
    together = "shares" if kinds.count(first) > 1 else "only" if len(answers) == 1 else "first"
    return ["" if kind is None else together if kind == first else "stands in" for kind in kinds]


def _as_proved(model: Model, examined: Examination | None) -> Model:
    """As the pool will see it: it knows proofs, and no setting."""
    return model if examined is None or examined.proof is None else msgspec.structs.replace(model, family=examined.asked_as)


def _report(answer: _Answer, role: str) -> EndpointReport:
    if answer.examined is not None:
        return endpoint_report.of(answer.examined, endpoint=answer.label, role=role)
    return EndpointReport(
        answer.label,
        answers=answer.model is not None,
        role=role,
        model=answer.name,
        family=answer.model.family.name if answer.model and answer.model.family else "",
        context_tokens=answer.model.context_tokens if answer.model else None,
        failure=answer.fault.message if answer.fault else "",
    )


def _in_words(role: str) -> str:
    return _ROLES.get(role, "")
