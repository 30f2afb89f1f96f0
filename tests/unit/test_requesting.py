"""What is asked of the engine for one ask, and what is learnt from how it was answered."""

import asyncio

import msgspec
import pytest

from monkeycode_lsp.context import tokens
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.domain import Chunk, Finish, Plain, Usage
from monkeycode_lsp.engines.scripted import ScriptedEngine
from tests.unit.places import ask, snapshot
from tests.unit.test_completer import Pipeline, until
from tests.unit.test_gathering import CELSIUS, HERE, Index, gathering, opened
from tests.unit.virtual import on_virtual_time

WEATHER = "file:///w/weather.py"
ASKED = HERE.replace("‸", "return to_celsius(‸")


def text(prompt):
    return "".join(segment.text for segment in prompt.segments if isinstance(segment, Plain))


@pytest.mark.parametrize(("verdict", "stays_here"), [(Verdict(Level.LOCAL), True), (ANYWHERE, False)])
@on_virtual_time
async def test_a_prompt_that_quotes_what_must_not_leave_stays_here(verdict, stays_here):
    pipeline = Pipeline(gathering=gathering(Index(CELSIUS), said={WEATHER: verdict}))
    await pipeline.completer.warm()
    opened(pipeline.completer.gathering, ASKED)
    await pipeline(ASKED)
    (prompt,) = pipeline.engine.prompts
    assert CELSIUS.text in text(prompt)
    assert prompt.stays_here is stays_here


@pytest.mark.parametrize(("verdict", "is_quoted"), [(Verdict(Level.LOCAL), False), (ANYWHERE, True)])
@on_virtual_time
async def test_an_engine_elsewhere_is_told_of_what_may_leave_only(verdict, is_quoted):
    class Elsewhere(ScriptedEngine):
        async def ready(self):
            return msgspec.structs.replace(await super().ready(), is_here=False)

    pipeline = Pipeline(engine=Elsewhere(["reading)"]), gathering=gathering(Index(CELSIUS), said={WEATHER: verdict}))
    await pipeline.completer.warm()
    opened(pipeline.completer.gathering, ASKED)
    await pipeline(ASKED)
    (prompt,) = pipeline.engine.prompts
    assert (CELSIUS.text in text(prompt)) is is_quoted
    assert not prompt.stays_here


@on_virtual_time
async def test_what_is_read_ahead_is_what_the_ask_will_bring_with_all_that_is_quoted_there():
    pipeline = Pipeline(gathering=gathering(Index(CELSIUS, takes_s=0.01)))
    await pipeline.completer.warm()
    model = await pipeline.engine.ready()
    opened(pipeline.completer.gathering, ASKED)
    _, ahead = await pipeline.completer._requesting.ahead(ask(ASKED), model)
    assert CELSIUS.text in text(ahead)
    await pipeline(ASKED)
    assert ahead.segments == pipeline.engine.prompts[0].segments


class Dense(ScriptedEngine):
    """Whose text takes twice the tokens that an estimate says."""

    async def stream(self, prompt):
        self.prompts.append(prompt)
        n_tokens = sum(tokens.estimate(line, tokens.rates("python")) for line in text(prompt).splitlines(keepends=True))
        yield Chunk("x", finish=Finish.STOP, usage=Usage(reused=0, read=round(2 * n_tokens), generated=1))


async def test_what_prompts_really_took_makes_the_next_window_smaller():
    pipeline = Pipeline(engine=Dense([]), read_s=60.0, cache={"enabled": False})
    document = "total = compute(first, second)\n" * 2_000
    for n in range(5):
        await pipeline(f"{document}value_{n} = ‸\n")
    first, *_, last = (len(prompt.prefix) for prompt in pipeline.engine.prompts)
    assert last < 0.7 * first


@on_virtual_time
async def test_how_fast_an_engine_reads_is_learnt_from_what_somebody_asked_for():
    """What nobody asked for waits behind what somebody did."""

    class Late(ScriptedEngine):
        async def ready(self):
            return msgspec.structs.replace(await super().ready(), takes_background=True)

        async def stream(self, prompt):
            self.prompts.append(prompt)
            is_ahead = len(self.prompts) > 1
            await asyncio.sleep(0.5 if is_ahead else 0.05)
            yield Chunk("x", finish=Finish.STOP, usage=Usage(reused=0, read=1_000, generated=1))

    pipeline = Pipeline(engine=Late([]), read_s=0.2)
    document = "total = compute(first, second)\n" * 2_000
    assert await pipeline.text(f"{document}a = ‸\n", invoked=True) == "x"
    await until(lambda: len(pipeline.engine.prompts) == 2)
    await asyncio.sleep(3.0)
    await pipeline(f"{document}b = ‸\n", uri="file:///w/another.py")
    first, _, last = (len(prompt.prefix) for prompt in pipeline.engine.prompts[:3])
    assert last == pytest.approx(first, rel=0.05)
    await pipeline.completer.retire()


@pytest.mark.parametrize(
    ("uri", "other", "is_shared"),
    [
        ("file:///home/me/a.py", "file:///home/me/b.py", True),
        ("file:///home/me/a.py", "file:///home/you/b.py", False),
        ("untitled:Untitled-1", "untitled:Untitled-2", False),
    ],
)
async def test_without_a_workspace_the_files_of_one_folder_share_what_is_known(uri, other, *, is_shared):
    pipeline = Pipeline()
    model = await pipeline.engine.ready()
    one, two = (pipeline.completer._requesting.scope(model, snapshot("‸", uri=found, workspace="")) for found in (uri, other))
    assert (one == two) is is_shared
