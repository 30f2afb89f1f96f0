"""What the pipeline says, as frames, and what an engine process says, as chunks and errors.  Pure."""

from __future__ import annotations

from monkeycode_lsp.domain import Chunk, Finish, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineRefusedError, StreamBrokenError
from monkeycode_lsp.prompt import by_vocabulary


def model(ready: wire.Ready, fingerprint: str) -> Model:
    """What the pipeline wants to know of a loaded model."""
    return Model(
        name=f"{ready.name} {ready.quantization}".strip(),
        family=by_vocabulary(ready.markers, architecture=ready.architecture, name=ready.name),
        fingerprint=fingerprint,
        context_tokens=ready.context_tokens,
        takes_background=True,
        verifies_drafts=True,
        heals=True,
        is_here=True,
        tells_confidence=True,
    )


def generate(number: int, prompt: Prompt) -> wire.Generate:
    """The frame that asks a prompt."""
    return wire.Generate(
        id=number,
        segments=prompt.segments,
        max_tokens=prompt.max_tokens,
        sampling=prompt.sampling,
        grammar=prompt.grammar,
        heal=prompt.heal,
        stop=prompt.stop,
        draft=prompt.draft,
        priority=prompt.priority,
        session=prompt.session,
    )


def chunk(event: wire.Delta | wire.Done | wire.Failed) -> Chunk:
    """The chunk for an event.  Raises an `EngineError` for a failed answer."""
    match event:
        case wire.Delta():
            usage = None if event.read is None else Usage(reused=event.reused, read=event.read)
            return Chunk(text=event.text, logprob=event.logprob, n_tokens=event.n_tokens, usage=usage)
        case wire.Done():
            finish = Finish.STOP if event.finish == "stop" else Finish.LENGTH
            return Chunk(text="", finish=finish, usage=Usage(reused=event.reused, read=event.read, generated=event.generated))
        case wire.Failed(kind="overflow"):
            raise ContextOverflowError(
                event.message, limit_tokens=event.limit_tokens, remedy="Raise local.contextTokens or lower context.prefixTokens."
            )
        case wire.Failed(kind="template"):
            raise EngineRefusedError(event.message, remedy="Set template to the model's family, or to auto.")
        case wire.Failed(kind="grammar"):
            raise EngineRefusedError(f"The grammar of the answer cannot be used: {event.message}", remedy="It must be GBNF.")
        case wire.Failed(kind="busy"):
            raise EngineBusyError(event.message)
        case wire.Failed():
            raise StreamBrokenError(event.message)
