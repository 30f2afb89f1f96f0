"""The simulation: an editor and a backend that are played, and the real pipeline between them."""

from __future__ import annotations

import asyncio

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench.replay.author import follow
from monkeycode_lsp.bench.replay.oracle import Oracle, OracleEngine
from monkeycode_lsp.bench.replay.score import figures
from monkeycode_lsp.bench.replay.simulate import AT_ONCE, FIXED, PRODUCT, SYSTEMS, simulate
from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace
from monkeycode_lsp.bench.replay.virtual import VirtualLoop
from monkeycode_lsp.domain import Finish, Priority, Prompt

CODE = "total = price * count\nprint(total)\n"


def typing(text, *, gaps_s, start="", at=0):
    """One key a character; the gaps are used again and again."""
    keys, now = [], 0.0
    for index, char in enumerate(text):
        keys.append(Key(now, (Patch(at + index, 0, char),)))
        now += gaps_s[index % len(gaps_s)]
    return Trace("app.py", "python", start, tuple(keys))


def run(trace, system=PRODUCT, *, latency_s=0.25, q=1.0, **options):
    return simulate(trace, system, latency_s=latency_s, q=q, **options)


def engine_of(trace, *, q=1.0, keys=None, **options):
    typed = follow(trace)
    oracle = Oracle(typed, q=q, seed=0)
    oracle.typed(len(typed) - 1 if keys is None else keys)
    return OracleEngine(oracle, latency_s=0.2, **options)


def said(engine, prefix, suffix="", **options):
    async def read():
        return [chunk async for chunk in engine.stream(Prompt(segments=(), prefix=prefix, suffix=suffix, **options))]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(read())


# The backend


def test_a_sure_backend_says_what_the_author_typed_next():
    trace = typing("abcdef", gaps_s=[0.1])
    (chunk,) = said(engine := engine_of(trace), "abc")
    assert (chunk.text, chunk.finish) == ("def", Finish.STOP)
    (sent,) = engine.sent
    assert (sent.key, sent.right, sent.aborted, round(sent.ended - sent.at, 6)) == (2, True, False, 0.2)


def test_a_backend_without_luck_says_something_that_does_not_begin_like_the_truth():
    trace = typing("quux zebra wobble kraken", gaps_s=[0.1])
    for typed in follow(trace)[:-1]:
        (chunk,) = said(engine_of(trace, q=0.0), typed.prefix)
        assert chunk.text.strip()
        assert chunk.text[0] != typed.then[0]


def test_where_nothing_follows_even_a_sure_backend_is_wrong():
    said(engine := engine_of(typing("abc", gaps_s=[0.1])), "abc")
    assert not engine.sent[0].right


def test_the_luck_of_a_key_is_the_same_for_everyone_and_follows_from_the_seed():
    typed = follow(typing("x" * 30 + CODE, gaps_s=[0.1]))

    def luck(seed):
        oracle = Oracle(typed, q=0.5, seed=seed)
        answers = []
        for index, at in enumerate(typed):
            oracle.typed(index)
            answers.append(oracle.answer(at.prefix, at.suffix))
        return answers

    assert luck(1) == luck(1)
    assert [answer.right for answer in luck(1)] != [answer.right for answer in luck(2)]
    assert 10 < sum(answer.right for answer in luck(1)) < len(typed) - 10


def test_of_several_keys_with_the_same_text_the_newest_typed_counts():
    keys = (Key(0, (Patch(0, 0, "a"),)), Key(1, (Patch(1, 0, "b"),)), Key(2, (Patch(1, 1, ""),)), Key(3, (Patch(1, 0, "c"),)))
    oracle = Oracle(follow(Trace("t", "python", "", keys)), q=1.0, seed=0)
    assert oracle.answer("a", "").text == "b"
    oracle.typed(3)
    assert oracle.answer("a", "").text == "c"


def test_a_place_that_a_suggestion_leads_to_is_answered_with_what_is_typed_after_it():
    trace = typing("abc\ndef\nghi", gaps_s=[0.1])
    said(engine := engine_of(trace, keys=0), "abc", priority=Priority.LOOK_AHEAD)
    said(engine, "abX", priority=Priority.LOOK_AHEAD)
    ahead, nowhere = engine.sent
    assert (ahead.answer, ahead.right, ahead.background) == ("\ndef", True, True)
    assert not nowhere.right


def test_a_streamed_answer_comes_in_pieces_during_the_second_half():
    trace = typing("x" + "0123456789" * 3, gaps_s=[0.1])
    chunks = said(engine_of(trace, streamed=True), "x")
    assert len(chunks) > 3
    assert "".join(chunk.text for chunk in chunks) == "0123456789" * 3
    assert [chunk.finish for chunk in chunks if chunk.finish] == [Finish.STOP]


def test_a_prompt_that_is_only_to_be_read_is_no_request():
    said(engine := engine_of(typing("ab", gaps_s=[0.1])), "a", max_tokens=0, priority=Priority.WARM_UP)
    assert engine.sent == []


# The baselines


def test_without_debounce_every_key_asks_and_the_next_key_aborts():
    observed = run(typing("abcdef", gaps_s=[0.1, 0.1, 0.4]), AT_ONCE)
    assert [sent.key for sent in observed.sent] == [0, 1, 2, 3, 4, 5]
    assert [sent.aborted for sent in observed.sent] == [True, True, False, True, True, False]
    assert [reply.superseded for reply in observed.replied] == [True, True, False, True, True, False]
    assert observed.replied[2].text == "def"
    assert observed.replied[2].at == pytest.approx(0.2 + 0.25)


def test_with_a_fixed_wait_only_a_pause_asks():
    observed = run(typing("abcdef", gaps_s=[0.1, 0.1, 0.6]), FIXED)
    assert [sent.key for sent in observed.sent] == [2, 5]
    assert observed.replied[2].at == pytest.approx(0.2 + 0.2 + 0.25)


# The product


def test_what_the_author_types_through_is_asked_for_once():
    trace = typing("print(total_price)", gaps_s=[0.8], start="total_price = 3\n\n", at=16)
    observed = run(trace)
    found = figures(observed, latency_s=0.25)
    assert (observed.n_failed, found.n_wrong) == (0, 0)
    assert found.n_requests < 6
    assert found.fresh_by_origin["typed-through"] > 8


def test_the_product_sees_the_very_text_that_was_typed():
    keys = (
        Key(0.0, (Patch(4, 0, "x = f"),)),
        Key(2.0, (Patch(9, 0, "\n🎉 = "), Patch(0, 1, "A"))),
        Key(4.0, (Patch(14, 0, "1"),)),
        Key(6.0, (Patch(3, 11, "\n"),)),
        Key(8.0, (Patch(4, 0, "y = "),)),
    )
    observed = run(Trace("a.py", "python", "abc\n", keys), q=1.0)
    texts = {typed.prefix for typed in observed.typed}
    assert observed.sent
    assert all(any(text.endswith(sent.prefix) for text in texts) for sent in observed.sent)
    assert observed.n_failed == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_the_same_each_time(system):
    trace = typing(CODE * 3, gaps_s=[0.09, 0.12, 0.3, 0.11, 1.2])
    assert run(trace, system, q=0.5) == run(trace, system, q=0.5)


def test_an_editor_that_waits_asks_after_pauses_only():
    observed = run(typing("abcdef", gaps_s=[0.1, 0.1, 0.6]), AT_ONCE, editor_s=0.2)
    assert [index for index, reply in enumerate(observed.replied) if reply.at is not None] == [2, 5]


def test_settings_reach_the_product():
    trace = typing(CODE, gaps_s=[0.6])
    assert run(trace, settings=config.Config(enabled=False)).sent == []


def test_progress_is_told_to_the_end():
    told = []
    run(typing("x" * 250, gaps_s=[0.1]), AT_ONCE, progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 250), (100, 250), (200, 250), (250, 250)]


def test_no_wrong_hit_whatever_the_author_does():
    edits = [(0, 0, "def f(a):\n")]
    edits += [(10 + index, 0, char) for index, char in enumerate("    retrn a")]
    edits += [(17, 4, ""), *((17 + index, 0, char) for index, char in enumerate("urn a + 1\n"))]
    edits += [(0, 0, "#"), (0, 1, ""), (27, 0, "f"), (27, 1, ""), (27, 0, "f"), (28, 0, "(1)")]
    keys = tuple(Key(0.4 * index, (Patch(*edit),)) for index, edit in enumerate(edits))
    for seed in range(5):
        observed = simulate(Trace("a.py", "python", "", keys), PRODUCT, latency_s=0.15, q=0.5, seed=seed)
        assert figures(observed, latency_s=0.15).n_wrong == 0
