"""The pipeline in time: what is followed, what is waited for, and what is not shown again."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from monkeycode_lsp.domain import Fate, Origin, OutcomeKind, Scope, Suggestion
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.errors import SupersededError
from monkeycode_lsp.following import PATIENCE_S
from tests.unit.places import URI, at
from tests.unit.test_completer import DEF, Pipeline
from tests.unit.virtual import now, on_virtual_time


def typed(text):
    return DEF.replace("‸", f"{text}‸")


async def typing(pipeline, *keys, gap_s=0.1):
    """Ask once before and once after each key, as an editor does; what the last ask brought."""
    text, asked = "", asyncio.create_task(pipeline(DEF))
    for key in keys:
        await asyncio.sleep(gap_s)
        text += key
        older, asked = asked, asyncio.create_task(pipeline(typed(text)))
        with pytest.raises(SupersededError):
            await older
    return await asked


# A generation that is behind the user


@on_virtual_time
async def test_one_that_is_a_little_behind_is_waited_for_and_adopted_when_it_agrees():
    pipeline = Pipeline([Answer(chunks=("ret", "urn a + b"), first_delay_ms=250, delay_ms=100)])
    (shown,) = await typing(pipeline, "r", "e")
    assert (shown.text, shown.origin) == ("turn a + b", Origin.ADOPTED)
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_as_soon_as_it_says_something_else_it_is_stopped_and_another_one_begins():
    pipeline = Pipeline([Answer(chunks=("re", "turn a + b"), first_delay_ms=250, delay_ms=5_000), "x = a"])
    (shown,) = await typing(pipeline, "x")
    assert (shown.text, shown.origin) == ("x = a", Origin.ENGINE)
    assert now() == pytest.approx(0.25, abs=0.01)
    assert pipeline.engine.n_closed_early == 1


@on_virtual_time
async def test_one_that_is_late_is_not_waited_for_any_longer():
    pipeline = Pipeline([Answer(chunks=("return a",), first_delay_ms=5_000), "eturn b"])
    (shown,) = await typing(pipeline, "r")
    assert shown.text == "eturn b"
    assert now() == pytest.approx(1.25 * 0.25, abs=0.02)  # the engine usually takes 250 ms
    assert pipeline.engine.n_closed_early == 1


@pytest.mark.parametrize(("keys", "gap_s"), [(("retu",), 0.1), (("r",), 0.32)], ids=["far behind", "late already"])
@on_virtual_time
async def test_one_that_is_far_behind_or_late_already_is_not_waited_for_at_all(keys, gap_s):
    pipeline = Pipeline([Answer(chunks=("return a",), first_delay_ms=5_000), "new"])
    (shown,) = await typing(pipeline, *keys, gap_s=gap_s)
    assert shown.origin is Origin.ENGINE
    assert now() == pytest.approx(gap_s, abs=0.01)


@on_virtual_time
async def test_an_engine_that_takes_long_is_not_followed_until_it_is_soon_ready():
    slow = Answer(chunks=("return a",), first_delay_ms=2_000)
    pipeline = Pipeline([slow, slow, "x", "new"])
    await pipeline(typed("elsewhere = "))  # and now it is known
    began = now()
    await typing(pipeline, "x", gap_s=0.1)
    assert now() - began == pytest.approx(0.1, abs=0.01)


@on_virtual_time
async def test_while_the_next_key_is_waited_for_anyway_following_costs_nothing():
    pipeline = Pipeline([Answer(chunks=("return a",), first_delay_ms=700), "new"], debounce={"mode": "fixed", "maxMs": 600})
    older = asyncio.create_task(pipeline(DEF))
    await asyncio.sleep(0.2)
    (shown,) = await pipeline(typed("r"), since_edit_ms=0.0)
    with pytest.raises(SupersededError):
        await older
    assert (shown.text, shown.origin, len(pipeline.engine.prompts)) == ("eturn a", Origin.ADOPTED, 1)


@on_virtual_time
async def test_what_leaves_nothing_to_show_is_followed_by_a_new_one():
    pipeline = Pipeline([Answer(chunks=("return a", ""), delay_ms=300), " + b"])
    (shown,) = await typing(pipeline, "return a")
    assert (shown.text, shown.origin) == (" + b", Origin.ENGINE)
    assert [prompt.prefix[-8:] for prompt in pipeline.engine.prompts] == ["b):\n    ", "return a"]


@on_virtual_time
async def test_one_that_breaks_off_is_followed_by_a_new_one():
    pipeline = Pipeline([Answer(chunks=("ret", "urn"), delay_ms=200, fault="break"), "urn b"])
    (shown,) = await typing(pipeline, "ret")
    assert (shown.text, shown.origin) == ("urn b", Origin.ENGINE)


@pytest.mark.parametrize("deadline_ms", [100, 250])
@on_virtual_time
async def test_neither_following_nor_waiting_for_a_key_goes_on_after_the_deadline(deadline_ms):
    pipeline = Pipeline(
        [Answer(chunks=("return a",), first_delay_ms=5_000)],
        completion={"deadlineMs": deadline_ms},
        debounce={"mode": "fixed", "maxMs": 1_000},
    )
    older = asyncio.create_task(pipeline(DEF))
    await asyncio.sleep(0.05)
    began = now()
    assert await pipeline(typed("r"), since_edit_ms=0.0) == []
    assert now() - began == pytest.approx(deadline_ms / 1e3, abs=0.01)
    assert pipeline.last.kind is OutcomeKind.EMPTY
    assert len(pipeline.engine.prompts) == 1
    with pytest.raises(SupersededError):
        await older
    assert await pipeline(typed("x = "), since_edit_ms=0.0) == []
    assert "debounce.maxMs" in pipeline.last.reason


# Patience

LINES = Answer(chunks=("x = a\n", "    y = b\n", "    z = x", " + y\n", "    return z"), delay_ms=250)


@on_virtual_time
async def test_an_automatic_ask_that_has_waited_long_takes_the_complete_lines():
    pipeline = Pipeline([LINES])
    (shown,) = await pipeline(DEF)
    assert (shown.text, shown.origin) == ("x = a\n    y = b", Origin.ENGINE)
    assert now() == pytest.approx(PATIENCE_S, abs=0.01)
    (more,) = await pipeline(typed("x ="))
    assert (more.text, more.origin) == (" a\n    y = b", Origin.ADOPTED)
    await asyncio.sleep(0.2)
    (more,) = await pipeline(typed("x ="))
    assert more.text == " a\n    y = b\n    z = x + y"
    await asyncio.sleep(0.5)
    (whole,) = await pipeline(typed("x = a"))
    assert (whole.text, whole.origin) == ("\n    y = b\n    z = x + y\n    return z", Origin.TYPED_THROUGH)
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_a_line_that_is_still_being_said_is_not_shown():
    pipeline = Pipeline([Answer(chunks=("x = a", " + b\n    y", " = 1"), delay_ms=1_000)])
    assert await pipeline.text(DEF) == "x = a + b"
    assert now() == pytest.approx(1.0, abs=0.01)
    await pipeline.completer.retire()


@on_virtual_time
async def test_an_ask_by_key_waits_for_the_whole():
    pipeline = Pipeline([LINES])
    assert await pipeline.text(DEF, invoked=True) == "x = a\n    y = b\n    z = x + y\n    return z"
    assert now() == pytest.approx(1.0, abs=0.01)


# What the user does not want


async def shown_and_left(pipeline, n):
    """Show something and type something else, `n` times; what was shown."""
    shown = []
    for _ in range(n):
        shown.append(await pipeline.text("a = ‸"))
        await pipeline("a = x‸")
    return shown


@on_virtual_time
async def test_what_was_shown_three_times_and_never_taken_is_not_shown_again():
    pipeline = Pipeline(["1", ""])
    assert await shown_and_left(pipeline, 3) == ["1", "1", "1"]
    n_asked = len(pipeline.engine.prompts)
    assert await pipeline("a = ‸") == []
    assert (pipeline.last.kind, "cache.showings" in pipeline.last.reason) == (OutcomeKind.EMPTY, True)
    assert len(pipeline.engine.prompts) == n_asked
    assert await pipeline.text("a = ‸", invoked=True) == "1"


@on_virtual_time
async def test_what_was_left_three_times_is_not_shown_again():
    pipeline = Pipeline(["1", ""])
    for _ in range(3):
        assert [await pipeline.text("a = ‸\nb\n") for _ in range(3)] == ["1"] * 3, "asking again is no other showing"
        await pipeline("a = \nb‸\n")
    assert await pipeline("a = ‸\nb\n") == []


@on_virtual_time
async def test_what_was_undone_three_times_is_not_shown_again_wherever_it_was_shown_first():
    pipeline = Pipeline(["diameter = radius * 2"])
    assert await pipeline.text("‸\nb\n") == "diameter = radius * 2"
    for begun in ("dia", "diam"):
        pipeline.completer.screen.edited(URI, ["b\n", ""])
        assert await pipeline.text(f"{begun}‸\nb\n") == "diameter = radius * 2".removeprefix(begun)
    pipeline.completer.screen.edited(URI, ["b\n", ""])
    assert await pipeline("diameter = ‸\nb\n") == []
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_the_setting_says_how_often():
    assert await shown_and_left(Pipeline(["1", ""], cache={"showings": 1}), 2) == ["1", None]
    assert await shown_and_left(Pipeline(["1", ""], cache={"showings": 0}), 5) == ["1"] * 5


@on_virtual_time
async def test_what_was_rejected_is_not_shown_again():
    pipeline = Pipeline(["1"])
    (shown,) = await pipeline("a = ‸")
    pipeline.completer.screen.rejected(shown.id)
    assert await pipeline("a = ‸") == []
    assert await pipeline.text("a = ‸", invoked=True) == "1"


@on_virtual_time
async def test_a_word_about_what_is_on_the_screen_no_more_says_nothing_about_what_is():
    pipeline = Pipeline(["1", "2"])
    (old,) = await pipeline("a = ‸")
    (new,) = await pipeline("b = ‸")
    pipeline.completer.screen.rejected(old.id)
    pipeline.completer.screen.rejected(new.id + 1_000)
    assert await pipeline.text("b = ‸") == "2"


@on_virtual_time
async def test_what_was_taken_counts_as_never_shown():
    pipeline = Pipeline(["1", ""])
    await shown_and_left(pipeline, 2)
    (shown,) = await pipeline("a = ‸")
    pipeline.completer.screen.accepted(shown.id)
    assert Fate.ACCEPTED.value in {outcome.fate for outcome in pipeline.outcomes.last()}
    await pipeline("a = x‸")
    assert await pipeline.text("a = ‸") == "1"


@on_virtual_time
async def test_what_never_came_to_the_screen_does_not_count_and_its_outcome_says_so():
    pipeline = Pipeline(["1", ""])
    await shown_and_left(pipeline, 2)
    shown = await pipeline("a = ‸")
    pipeline.completer.screen.unseen(shown)
    assert (pipeline.last.kind, pipeline.last.n_shown, "moved on" in pipeline.last.reason) == (OutcomeKind.SUPERSEDED, 0, True)
    await pipeline("a = x‸")
    assert await pipeline.text("a = ‸") == "1"


# What else helps


class Verifying(ScriptedEngine):
    """Can make use of drafts."""

    async def ready(self):
        return msgspec.structs.replace(await super().ready(), verifies_drafts=True)


@on_virtual_time
async def test_what_stands_at_a_place_like_this_goes_with_the_prompt_as_a_draft():
    said = "for user in users:\n        print(user.name)"
    pipeline = Pipeline(engine=Verifying([said, "pages"]))
    assert await pipeline.text("def show(users):\n    ‸\n") == said
    await pipeline("def show(pages):\n    ‸\n", uri="file:///w/other.py")
    assert [prompt.draft for prompt in pipeline.engine.prompts] == ["", "for page in pages:\n        print(page.name)"]


@on_virtual_time
async def test_another_document_that_was_worked_on_gives_drafts_too():
    block = "class Money:\n    def parse_amount(self, text):\n        amount = Decimal(text)\n        return amount.quantize(CENT)\n"
    pipeline = Pipeline(engine=Verifying([""]))
    await pipeline(f"{block}\nx = ‸\n")
    await pipeline("y = ‸\n", uri="file:///w/other.py")
    await asyncio.sleep(0.1)
    await pipeline("class Cash:\n    def parse_amount(self, text):\n        ‸\n", uri="file:///w/other.py")
    assert pipeline.engine.prompts[-1].draft.startswith("amount = Decimal(text)\n        return amount")


@on_virtual_time
async def test_an_engine_that_cannot_verify_gets_no_draft():
    pipeline = Pipeline(["for user in users:\n        print(user.name)", "pages"])
    await pipeline("def show(users):\n    ‸\n")
    await pipeline("def show(pages):\n    ‸\n", uri="file:///w/other.py")
    assert [prompt.draft for prompt in pipeline.engine.prompts] == ["", ""]


@on_virtual_time
async def test_what_is_remembered_is_cleaned_for_the_text_after_the_cursor_as_it_is():
    pipeline = Pipeline(["0"])
    await pipeline("z = ‸\n")
    completer = pipeline.completer
    scope = Scope(completer._readiness.model.fingerprint, completer._shaping.fingerprint, "file:///w")
    for here in ("x = g(‸)\n", "y = g(‸\n"):
        completer.recall.keep("file:///w/old.py", scope, at(here), Suggestion("a, b)"))
    assert await pipeline.text("x = g(‸)\n") == "a, b"
    assert await pipeline.text("y = g(‸\n") == "a, b)"
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_how_long_the_engine_takes_is_learned_from_what_somebody_waited_for():
    pipeline = Pipeline([Answer(chunks=("x", " + y"), first_delay_ms=900, delay_ms=50), "z"], lookAhead={"mode": "on"})
    assert pipeline.completer._rhythm.engine_ms == 250
    assert await pipeline.text("a = ‸") == "x + y"
    await asyncio.sleep(1)
    assert len(pipeline.engine.prompts) == 2  # the second one ahead of time, and at once
    assert pipeline.completer._rhythm.engine_ms == pytest.approx(900, abs=5)


# What is learned


@on_virtual_time
async def test_the_rhythm_is_learned_from_every_key_and_from_what_was_predicted():
    pipeline = Pipeline(["1"], debounce={"mode": "adaptive"})
    before = pipeline.completer._rhythm
    for n in range(40):
        pipeline.completer.typed(5_000.0, "a")  # pauses after each key, which nobody predicted
        await pipeline(f"a{'b' * n}‸", since_edit_ms=0.0, inserted="a")
    after = pipeline.completer._rhythm
    assert after.habit != before.habit
    assert after.bias > before.bias


@on_virtual_time
async def test_an_error_of_ours_in_a_followed_generation_is_told_as_one():
    class Broken(ScriptedEngine):
        async def stream(self, prompt):
            await asyncio.sleep(0.1)
            raise ZeroDivisionError
            yield  # a generator, as the protocol wants it

    pipeline = Pipeline(engine=Broken([]))
    first = asyncio.create_task(pipeline("a = ‸"))
    await asyncio.sleep(0.05)
    first.cancel()
    assert await pipeline("a = ‸") == []
    assert (pipeline.last.kind, "error of ours" in pipeline.last.reason) == (OutcomeKind.FAILED, True)
    await asyncio.wait({first})


@on_virtual_time
async def test_what_was_cleaned_to_nothing_is_not_asked_for_again_at_the_same_place():
    pipeline = Pipeline([Answer(chunks=("", "<|fim_middle|>"), first_delay_ms=100, delay_ms=100), "return a"])
    older = asyncio.create_task(pipeline(DEF))
    await asyncio.sleep(0.05)
    assert await pipeline(DEF) == []
    with pytest.raises(SupersededError):
        await older
    assert pipeline.last.kind is OutcomeKind.EMPTY
    assert len(pipeline.engine.prompts) == 1
