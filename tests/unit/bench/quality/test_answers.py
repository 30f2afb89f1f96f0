"""What a model said is asked for once."""

from __future__ import annotations

import msgspec
import pytest

from monkeycode_lsp.bench.quality.answers import Answer, Remembering, key
from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.domain import Control, Finish, Plain, Prompt
from monkeycode_lsp.engines.scripted import Answer as Script
from monkeycode_lsp.engines.scripted import ScriptedEngine

PROMPT = Prompt((Control("<P>"), Plain("a = "), Control("<M>")), "a = ", "", max_tokens=8, draft="1 + 1")


class OneModel(ScriptedEngine):
    """The same one, whatever its script."""

    async def ready(self):
        return msgspec.structs.replace(await super().ready(), fingerprint="same")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "answers.jsonl"


def remembering(path, *scripts):
    inner = OneModel([Script(chunks=script) for script in scripts])
    return inner, Remembering(inner, Ledger(path, Answer))


async def read(engine, prompt=PROMPT, *, most=1_000):
    said, finish = [], None
    stream = engine.stream(prompt)
    async for chunk in stream:
        said.append(chunk.text)
        finish = chunk.finish
        if len(said) == most:
            break
    await stream.aclose()
    return "".join(said), finish


async def test_a_whole_answer_is_told_again_by_another_run_without_the_model(path):
    inner, engine = remembering(path, ("1", " + 2"))
    assert await read(engine) == ("1 + 2", Finish.STOP)
    _, later = remembering(path, ("other",))
    assert await read(later) == ("1 + 2", Finish.STOP)
    assert len(inner.prompts) == 1


async def test_of_an_answer_that_was_stopped_the_rest_is_asked_for_from_there(path):
    inner, engine = remembering(path, ("1", " + 2"), (" + 3", " + 4"))
    assert await read(engine, most=1) == ("1", None)
    assert await read(engine) == ("1 + 3 + 4", Finish.STOP)
    assert inner.prompts[1].segments == (*PROMPT.segments, Plain("1"))
    assert inner.prompts[1].max_tokens == 7
    assert await read(remembering(path, ("other",))[1]) == ("1 + 3 + 4", Finish.STOP)


async def test_what_was_known_is_enough_for_who_wants_no_more(path):
    inner, engine = remembering(path, ("1", " + 2"))
    await read(engine, most=2)
    assert await read(engine, most=2) == ("1 + 2", None)
    assert len(inner.prompts) == 1


async def test_nobody_gets_more_tokens_than_were_asked_for(path):
    short = msgspec.structs.replace(PROMPT, max_tokens=2)
    _, engine = remembering(path, ("1", "2", "3"), ("never",))
    await read(engine, short, most=2)
    assert await read(engine, short) == ("12", Finish.LENGTH)


async def test_after_text_the_rest_joins_it_so_that_it_is_tokenized_as_one(path):
    prompt = msgspec.structs.replace(PROMPT, segments=(Plain("a = "),), heal="b")
    inner, engine = remembering(path, ("1",), ("2",))
    await read(engine, prompt, most=1)
    await read(engine, prompt)
    assert inner.prompts[1].segments == (Plain("a = b1"),)
    assert inner.prompts[1].heal == ""


async def test_drafts_are_not_passed_on_and_every_prompt_is_heard(path):
    inner, engine = remembering(path, ("1",))
    await read(engine)
    assert inner.prompts[0].draft == ""
    assert engine.heard == [PROMPT]


async def test_the_key_is_what_can_change_the_answer(path):
    _, engine = remembering(path, ("1",))
    model = await engine.ready()
    same = msgspec.structs.replace(PROMPT, session="other", draft="")
    assert key(model, same) == key(model, PROMPT)
    for change in ({"segments": (Plain("b"),)}, {"stop": ("x",)}, {"max_tokens": 9}, {"heal": "b"}, {"grammar": 'root ::= "a"'}):
        assert key(model, msgspec.structs.replace(PROMPT, **change)) != key(model, PROMPT)
    assert key(msgspec.structs.replace(model, fingerprint="other"), PROMPT) != key(model, PROMPT)


async def test_an_answer_that_never_began_is_not_kept(path):
    inner = ScriptedEngine([Script(fault="unavailable")])
    with pytest.raises(Exception, match="unavailable"):
        await read(Remembering(inner, Ledger(path, Answer)))
    assert not path.exists()
