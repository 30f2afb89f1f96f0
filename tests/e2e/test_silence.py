"""An answer that the model itself holds for unlikely; and what is written down of what became of suggestions."""

from __future__ import annotations

import pytest

from monkeycode_lsp.observe import figures, outcomes
from monkeycode_lsp.silence.history import FILE, Counts, History
from tests import servers
from tests.e2e.scene import running

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

TEXT = "compute(value)"


def guessing(logprob, text=TEXT):
    """A server that says how sure its model is, as many do unasked."""
    said = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": {"token_logprobs": [logprob] * 4}}
    return servers.stream(servers.event({"object": "text_completion", "choices": [said]}), servers.DONE)


async def test_a_guess_is_shown_by_key_only_and_why_says_so(home):
    async with running(home) as scene:
        await scene.ready()
        shown = await scene.show("guessed = ‸", guessing(-4.0))
        assert shown.text is None
        (outcome,) = await scene.lsp.why()
        assert outcome["outcome"] == "quiet"
        assert "completion.silence" in outcome["reason"]
        assert (await scene.ask(shown.uri, 0, 10, invoked=True)).text == TEXT
        assert (await scene.show("known = ‸", guessing(-0.05))).text == TEXT


async def test_the_setting_switches_it_off(home):
    async with running(home, options={"completion": {"silence": "off"}}) as scene:
        assert (await scene.show("guessed = ‸", guessing(-4.0))).text == TEXT


async def test_fates_are_written_down_and_learnt_without_a_text(home):
    async with running(home) as scene:
        await scene.ready()
        taken = await scene.show("taken = ‸", guessing(-0.05))
        scene.lsp.change(taken.uri, (0, 8), (0, 8), TEXT)
        await scene.show("ignored = ‸", guessing(-0.05, "secretive()"))
    folder = home / "state"
    written = outcomes.load(folder / outcomes.FOLDER)
    assert [(one.kind.value, one.fate) for one in written[-2:]] == [("shown", "accepted"), ("shown", "open")]
    assert (written[-2].confidence, written[-2].n_taken) == (-0.05, len(TEXT))
    assert figures.summary(written).whole.taken_rate == 1
    history = History(folder / FILE)
    history.load()
    bins = [counts.bins for counts in history._models.values()]
    assert len(bins) == 1
    assert sum(taken for taken, _ in bins[0]) == 1
    assert history.counts("unknown") == Counts()
    for file in [folder / FILE, *(folder / outcomes.FOLDER).iterdir()]:
        assert b"secretive" not in file.read_bytes()
        assert b"compute" not in file.read_bytes()
