"""The pipeline stays quiet where the model guessed, and tells so."""

from monkeycode_lsp import config
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.domain import OutcomeKind
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.silence.history import History
from monkeycode_lsp.silence.judge import Silence
from monkeycode_lsp.turn import Turn
from tests.unit.places import ask
from tests.unit.virtual import on_virtual_time

TEXT = "compute(value)"


class Pipeline:
    """One window, in which the model is as sure as it is told."""

    def __init__(self, logprob, mode="auto"):
        decoded, problems = config.decode({"debounce": {"mode": "off"}, "completion": {"silence": mode}})
        assert not problems
        self.outcomes = Outcomes()
        self.engine = ScriptedEngine([Answer(chunks=(TEXT,), logprob=logprob)])
        self.completer = Completer(
            settings=decoded,
            engine=self.engine,
            recall=Recall(Memory(most_bytes=1 << 20, ttl_s=300), showings=decoded.cache.showings),
            silence=Silence(decoded.completion.silence, History()),
            turn=Turn(),
            outcomes=self.outcomes,
            report=lambda error: None,
        )

    async def __call__(self, marked, **how):
        shown = await self.completer.complete(ask(marked, **how))
        return shown[0].text if shown else None

    @property
    def last(self):
        return self.outcomes.last()[-1]


@on_virtual_time
async def test_a_guess_is_not_shown_and_the_outcome_says_why_and_how_sure_the_model_was():
    pipeline = Pipeline(-4.0)
    assert await pipeline("x = ‸\n") is None
    assert pipeline.last.kind is OutcomeKind.QUIET
    assert pipeline.last.reason.startswith("The model was not sure enough (")
    assert (pipeline.last.confidence, pipeline.last.model, pipeline.last.fate) == (-4.0, "scripted", "")
    assert pipeline.last.odds < 0.1


@on_virtual_time
async def test_what_the_model_is_sure_of_is_shown():
    pipeline = Pipeline(-0.1)
    assert await pipeline("x = ‸\n") == TEXT
    assert (pipeline.last.kind, pipeline.last.confidence, pipeline.last.fate) == (OutcomeKind.SHOWN, -0.1, "open")


@on_virtual_time
async def test_by_key_everything_is_shown_also_where_it_was_quiet_before():
    pipeline = Pipeline(-4.0)
    assert await pipeline("x = ‸\n") is None
    assert await pipeline("x = ‸\n", invoked=True) == TEXT
    assert len(pipeline.engine.prompts) == 1, "it was remembered"


@on_virtual_time
async def test_switched_off_everything_is_shown():
    assert await Pipeline(-4.0, "off")("x = ‸\n") == TEXT


@on_virtual_time
async def test_an_engine_that_does_not_tell_is_not_silenced():
    pipeline = Pipeline(None)
    assert await pipeline("x = ‸\n") == TEXT
    assert (pipeline.last.confidence, pipeline.last.odds) == (None, None)


@on_virtual_time
async def test_who_types_what_was_not_shown_gets_the_rest_of_it():
    pipeline = Pipeline(-4.0)
    assert await pipeline("x = ‸\n") is None
    assert await pipeline("x = c‸\n", inserted="c") is None
    assert await pipeline("x = com‸\n", inserted="m") == TEXT[3:]
    assert await pipeline("x = comp‸\n", inserted="p") == TEXT[4:]
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_what_was_typed_through_is_an_outcome_of_the_first_ask():
    pipeline = Pipeline(-0.1)
    await pipeline("x = ‸\n")
    await pipeline("x = comp‸\n", inserted="comp")
    pipeline.completer.screen.edited("file:///w/app.py", [f"x = {TEXT}\n", ""])
    first, second = pipeline.outcomes.last()
    assert (first.fate, first.n_taken, second.fate) == ("accepted", len(TEXT), "continued")
