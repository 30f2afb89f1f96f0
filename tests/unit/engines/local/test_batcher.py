"""The batch loop over a model whose next token depends on every token that its cache holds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkeycode_lsp.domain import Control, Plain, Priority, Sampling
from monkeycode_lsp.engines.local.batch.batcher import Batcher
from monkeycode_lsp.engines.local.batch.shelf import Shelf
from monkeycode_lsp.engines.local.wire import Delta, Done, Failed, Generate
from tests.unit.engines.local.toy import END, ToyRuntime


class Clock:
    """A batch takes five milliseconds, and a fifth for each row: drafts pay."""

    def __init__(self, runtime):
        self.runtime = runtime

    def __call__(self):
        return (5 * len(self.runtime.batches) + 0.2 * sum(map(len, self.runtime.batches))) / 1e3


class Loop:
    """A batch loop, and what became of each ask."""

    def __init__(self, *, shelf_bytes=1 << 20, drafts=True, **more):
        self.runtime = ToyRuntime(**more)
        self.batcher = Batcher(self.runtime, shelf=Shelf(shelf_bytes), drafts=drafts, clock=Clock(self.runtime))
        self.events = {}
        self.cancelled = set()
        self.urgent = lambda priority: False
        self._jobs = itertools.count()

    def begin(self, *segments, **more):
        job = next(self._jobs)
        asked = Generate(job, tuple(Plain(one) if isinstance(one, str) else one for one in segments), **{"max_tokens": 8, **more})
        self.events[job] = []
        self.batcher.begin(job, asked, lambda: job in self.cancelled)
        return job

    def step(self):
        for step in self.batcher.step(self.urgent):
            assert step.event.id == step.job
            assert not self.over(step.job)
            assert not isinstance(step.event, Delta) or step.event.text
            self.events[step.job].append(step.event)

    def over(self, job):
        return bool(self.events[job]) and not isinstance(self.events[job][-1], Delta)

    def run(self, most_steps=10_000):
        for _ in range(most_steps):
            if not self.batcher.busy:
                assert self.runtime.n_open == 0
                return
            self.step()
        raise AssertionError("it does not come to an end")

    def until(self, condition):
        while not condition():
            assert self.batcher.busy
            self.step()

    def text(self, job):
        return "".join(event.text for event in self.events[job] if isinstance(event, Delta))

    def end(self, job):
        return self.events[job][-1]

    def answer(self, *segments, **more):
        job = self.begin(*segments, **more)
        self.run()
        return self.text(job), self.end(job)


def alone(*segments, **more):
    """What a fresh loop says."""
    return Loop(drafts=False).answer(*segments, **more)[0]


def test_an_emoji_over_three_tokens_is_one_piece_of_three_tokens():
    loop = Loop(script=[500, 501, 502, ord("!"), END])
    job = loop.begin("x")
    loop.run()
    assert loop.events[job] == [Delta(0, "😀", 3, -0.75, reused=0, read=1), Delta(0, "!", 1, -0.25), Done(0, "stop", read=1, generated=4)]


def test_one_more_letter_reads_one_token_more():
    loop = Loop()
    document = "x = 1\n" * 333
    _, first = loop.answer(document)
    assert (first.reused, first.read) == (0, len(document))
    _, second = loop.answer(document + "y")
    assert (second.reused, second.read) == (len(document), 1)


def test_the_same_prompt_again_reads_one_token_for_its_logits():
    loop = Loop()
    first, _ = loop.answer("hello")
    again, done = loop.answer("hello")
    assert again == first
    assert (done.reused, done.read) == (4, 1)


def test_after_an_edit_in_the_middle_only_what_follows_it_is_read():
    loop = Loop()
    loop.answer("a" * 1000 + "b" * 1000, session="doc")
    text, done = loop.answer("a" * 1000 + "c" + "b" * 1000, session="doc")
    assert text == alone("a" * 1000 + "c" + "b" * 1000)
    assert (done.reused, done.read) == (1000, 1001)


def test_an_accepted_answer_is_not_read_again():
    loop = Loop()
    text, done = loop.answer("hello ")
    _, after = loop.answer("hello " + text)
    assert after.reused == len("hello ") + done.generated - 1


def test_a_model_that_cannot_cut_its_cache_reads_all_again_and_is_right():
    loop = Loop(can_cut=False)
    loop.answer("hello world")
    text, done = loop.answer("hello there")
    assert text == alone("hello there")
    assert (done.reused, done.read) == (0, len("hello there"))


def test_a_model_that_cannot_cut_its_cache_is_given_no_more_drafts_after_the_first_wrong_one():
    loop = Loop(can_cut=False)
    prompt = "once upon a time " * 4
    right = alone(prompt)
    wrong = right[:4] + "xyz!"
    assert loop.answer(prompt, draft=wrong)[0] == right
    assert loop.answer(prompt + "!", draft=alone(prompt + "!"))[1].drafted == 0


def test_a_cancel_inside_the_prompt_keeps_the_finished_chunks():
    loop = Loop()
    job = loop.begin("x" * 500)
    loop.step()
    loop.runtime.during = lambda rows: loop.cancelled.add(job)
    loop.run()
    assert (loop.text(job), loop.end(job).finish, loop.end(job).read) == ("", "cancelled", 128)
    loop.runtime.during = lambda rows: None
    _, again = loop.answer("x" * 500)
    assert (again.reused, again.read) == (128, 372)


def test_a_cancel_while_writing_stops_within_one_token():
    loop = Loop()
    job = loop.begin("x", max_tokens=100)
    loop.until(lambda: len(loop.text(job)) == 5)
    n = len(loop.runtime.batches)
    loop.cancelled.add(job)
    loop.run()
    assert loop.end(job).finish == "cancelled"
    assert len(loop.text(job)) == loop.end(job).generated == 5
    assert len(loop.runtime.batches) == n


def test_a_cancel_of_one_of_many_leaves_the_others_alone():
    loop = Loop()
    jobs = [loop.begin(f"prompt {n}", max_tokens=20) for n in range(4)]
    loop.until(lambda: loop.text(jobs[2]))
    loop.cancelled.add(jobs[2])
    loop.run()
    assert [loop.end(job).finish for job in jobs] == ["length", "length", "cancelled", "length"]
    assert [loop.text(job) for job in jobs if job != jobs[2]] == [alone(f"prompt {n}", max_tokens=20) for n in (0, 1, 3)]


def test_a_stop_string_over_two_tokens_ends_the_answer():
    text, done = Loop(script=[*b"ab\n\ncd"]).answer("x", stop=("\n\n",))
    assert (text, done.finish) == ("ab", "stop")


def test_max_tokens_end_the_answer_by_its_length():
    text, done = Loop().answer("x", max_tokens=3)
    assert (len(text), done.finish, done.generated) == (3, "length", 3)


def test_no_tokens_asked_for_only_reads_the_prompt():
    loop = Loop()
    text, done = loop.answer("hello", max_tokens=0)
    assert (text, done.read, done.generated) == ("", 5, 0)
    assert loop.answer("hello!")[1].reused == 5


def test_a_prompt_that_fills_the_window_is_refused_with_the_limit():
    _, failed = Loop(context_tokens=100).answer("x" * 98)
    assert (failed.kind, failed.limit_tokens) == ("overflow", 100)


def test_an_answer_is_cut_to_the_room_that_is_left():
    _, done = Loop(context_tokens=100).answer("x" * 70, max_tokens=1000)
    assert (done.finish, done.generated) == ("length", 30)


@pytest.mark.parametrize(("more", "kind"), [({"segments": (Control("<no>"),)}, "template"), ({"grammar": "bad"}, "grammar")])
def test_what_cannot_be_asked_is_refused_and_others_go_on(more, kind):
    loop = Loop()
    other = loop.begin("hello")
    segments = more.pop("segments", ("x",))
    refused = loop.begin(*segments, **more)
    loop.run()
    assert loop.end(refused).kind == kind
    assert loop.text(other) == alone("hello")


def test_a_failure_to_decode_forgets_what_the_cache_held():
    loop = Loop()
    loop.answer("hello")
    loop.runtime.fails = True
    assert isinstance(loop.answer("hello there")[1], Failed)
    loop.runtime.fails = False
    text, done = loop.answer("hello")
    assert (text, done.reused) == (alone("hello"), 0)


def test_an_error_of_ours_fails_the_ask_and_not_the_loop():
    loop = Loop()

    def break_down(rows):
        raise ZeroDivisionError

    loop.runtime.during = break_down
    assert loop.answer("hello")[1].kind == "internal"
    loop.runtime.during = lambda rows: None
    assert loop.answer("hello")[0] == alone("hello")


def test_a_job_that_is_dropped_is_not_heard_of_again():
    loop = Loop()
    job = loop.begin("x" * 300)
    loop.step()
    loop.batcher.drop(job)
    loop.run()
    assert loop.events[job] == []


def test_a_job_that_was_refused_and_dropped_is_not_heard_of_either():
    loop = Loop()
    job = loop.begin("x", grammar="bad")
    loop.batcher.drop(job)
    assert not loop.batcher.busy
    assert loop.events[job] == []


def test_an_urgent_ask_interrupts_the_chunk_of_a_lesser_one_and_both_are_right():
    loop = Loop()
    lesser = loop.begin("y" * 500, priority=Priority.LOOK_AHEAD)
    loop.step()
    loop.urgent = lambda priority: priority > Priority.INTERACTIVE
    loop.step()
    urgent = loop.begin("hello")
    loop.urgent = lambda priority: False
    loop.until(lambda: loop.over(urgent))
    assert loop.events[lesser] == []
    loop.run()
    assert loop.text(urgent) == alone("hello")
    assert loop.text(lesser) == alone("y" * 500)
    assert loop.end(lesser).read == 500


def test_a_lesser_ask_waits_until_the_urgent_ones_are_over():
    loop = Loop()
    order = []
    lesser = loop.begin("a", priority=Priority.BATCH)
    look_ahead = loop.begin("b", priority=Priority.LOOK_AHEAD)
    urgent = loop.begin("c")
    while loop.batcher.busy:
        loop.step()
        order += [job for job in (lesser, look_ahead, urgent) if loop.over(job) and job not in order]
    assert order == [urgent, look_ahead, lesser]


def test_a_short_ask_is_answered_while_a_long_prompt_is_read_after_one_chunk_at_most():
    loop = Loop()
    long = loop.begin("x" * 1500)
    loop.step()
    short = loop.begin("hi", max_tokens=4)
    n = len(loop.runtime.batches)
    loop.until(lambda: loop.over(short))
    assert sum(len(batch) for batch in loop.runtime.batches[n:]) <= 64 + 2 + 4
    loop.run()
    assert loop.text(long) == alone("x" * 1500)


def test_an_answer_goes_on_while_a_new_long_prompt_is_read():
    loop = Loop(drafts=False)
    writing = loop.begin("y" * 1500, max_tokens=60)
    loop.until(lambda: len(loop.text(writing)) == 5)
    reading = loop.begin("x" * 3000, max_tokens=4)
    loop.until(lambda: loop.over(writing))
    assert not loop.over(reading)
    assert len(loop.runtime.cells[1]) < 1500
    loop.run()
    assert loop.text(reading) == alone("x" * 3000, max_tokens=4)


@pytest.mark.parametrize("n_long", [4, 6])
def test_a_short_ask_does_not_wait_until_other_windows_leave_a_slot(n_long):
    loop = Loop()
    long = [loop.begin(f"{n}" * 1500, session=f"{n}") for n in range(n_long)]
    for _ in range(30):
        loop.step()
    short = loop.begin("hi", max_tokens=4, session="short")
    n = len(loop.runtime.batches)
    loop.until(lambda: loop.over(short))
    assert sum(map(len, loop.runtime.batches[n:])) < 2500
    assert not all(loop.over(job) for job in long)
    loop.run()
    assert [loop.text(job) for job in long] == [alone(f"{n}" * 1500) for n in range(n_long)]
    assert sum(loop.end(job).read for job in long) == n_long * 1500


def test_without_room_for_states_nobody_who_has_begun_starts_all_over():
    loop = Loop(n_sequences=2, shelf_bytes=0)
    jobs = [loop.begin(f"{n}" * 1500) for n in range(4)]
    loop.run()
    assert [loop.text(job) for job in jobs] == [alone(f"{n}" * 1500) for n in range(4)]
    assert len([row for batch in loop.runtime.batches for row in batch]) < 5 * 1600


def test_a_prompt_is_read_in_smaller_chunks_while_others_wait():
    loop = Loop()
    loop.begin("x" * 500)
    loop.step()
    loop.begin("y" * 500)
    loop.step()
    loop.step()
    assert [len(batch) for batch in loop.runtime.batches] == [128, 64, 64]


def test_a_batch_is_asked_whether_something_more_urgent_has_come():
    loop = Loop()
    asked = []
    loop.begin("y" * 500, priority=Priority.LOOK_AHEAD)
    loop.urgent = asked.append
    loop.step()
    assert asked == [Priority.LOOK_AHEAD]
    loop.urgent = lambda priority: True
    loop.step()
    assert len(loop.runtime.cells[0]) == 128


def test_the_least_urgent_run_gives_its_slot_up_first():
    loop = Loop(n_sequences=2)
    ahead = loop.begin("ahead " * 40, priority=Priority.LOOK_AHEAD)
    loop.step()
    batch = loop.begin("batch " * 40, priority=Priority.BATCH)
    loop.step()
    loop.begin("urgent " * 40)
    loop.step()
    with_slot = [run.job for run in loop.batcher._runs if run.slot is not None]
    assert ahead in with_slot
    assert batch not in with_slot


def test_many_short_asks_do_not_starve_a_long_one():
    loop = Loop(n_sequences=2)
    long = loop.begin("x" * 1500)
    short = loop.begin("0")
    for n in range(60_000):
        if loop.over(long):
            break
        if loop.over(short):
            short = loop.begin(f"{n}", max_tokens=30)
        loop.step()
    assert loop.over(long)


def test_more_asks_than_slots_are_all_answered():
    loop = Loop(n_sequences=2)
    jobs = [loop.begin(f"prompt number {n}") for n in range(9)]
    loop.run()
    assert [loop.text(job) for job in jobs] == [alone(f"prompt number {n}") for n in range(9)]


def test_of_one_document_the_newest_ask_is_answered_first_and_other_documents_do_not_wait_for_all_of_them():
    loop = Loop(n_sequences=1)
    running = loop.begin("x", session="b")
    loop.step()
    old = loop.begin("old", session="a")
    new = loop.begin("new", session="a")
    other = loop.begin("other", session="c")
    order = []
    while loop.batcher.busy:
        loop.step()
        order += [job for job in (running, old, new, other) if loop.over(job) and job not in order]
    assert order == [running, new, other, old]


def test_candidates_of_one_document_are_answered_in_their_order():
    loop = Loop(n_sequences=1)
    jobs = [loop.begin("x", session="a", sampling=Sampling(temperature=1.0, seed=n)) for n in range(3)]
    order = []
    while loop.batcher.busy:
        loop.step()
        order += [job for job in jobs if loop.over(job) and job not in order]
    assert order == jobs


def test_an_urgent_ask_takes_the_slot_of_a_lesser_one_which_goes_on_later():
    loop = Loop(n_sequences=1, drafts=False)
    lesser = loop.begin("lesser " * 20, priority=Priority.LOOK_AHEAD, max_tokens=30)
    loop.until(lambda: len(loop.text(lesser)) == 10)
    urgent = loop.begin("urgent " * 20)
    loop.until(lambda: loop.over(urgent))
    assert len(loop.text(lesser)) == 10
    loop.run()
    assert loop.text(urgent) == alone("urgent " * 20)
    assert loop.text(lesser) == alone("lesser " * 20, max_tokens=30)
    assert loop.end(lesser).read == len("lesser " * 20)  # its state was put away, and back


def test_an_ask_takes_over_what_the_warm_up_of_its_document_has_read():
    loop = Loop()
    loop.begin("x" * 500, max_tokens=0, priority=Priority.WARM_UP, session="doc")
    loop.step()
    asked = loop.begin("x" * 500 + "y", session="doc")
    loop.until(lambda: loop.over(asked))
    assert loop.end(asked).reused == 128


def test_candidates_read_their_common_prompt_once():
    loop = Loop()
    prompt = "some long common prompt " * 30
    jobs = [loop.begin(prompt, sampling=Sampling(temperature=1.0, seed=n)) for n in range(4)]
    loop.run()
    assert sum(loop.end(job).read for job in jobs) < len(prompt) + 10
    assert {loop.text(job) for job in jobs} == {alone(prompt, sampling=Sampling(temperature=1.0))}


def test_candidates_of_one_document_and_its_newer_asks_read_their_common_prompt_once():
    loop = Loop()
    prompt = "some long common prompt " * 30
    jobs = [loop.begin(prompt + typed, session="doc") for typed in ("", "", "x", "xy")]
    loop.run()
    assert sum(loop.end(job).read for job in jobs) < len(prompt) + 10
    assert [loop.text(job) for job in jobs] == [alone(prompt + typed) for typed in ("", "", "x", "xy")]


def test_a_run_that_waits_for_another_to_read_keeps_none_of_those_before_it_alive():
    loop = Loop()
    prompt = "some long common prompt " * 30
    for _ in range(4):
        loop.begin(prompt)
    waiting = loop.batcher._runs[-1]
    loop.step()
    assert waiting.follows is not None
    loop.run()
    assert waiting.follows is None


def test_a_common_header_is_read_once_for_two_documents():
    loop = Loop()
    header = "repository header " * 20
    loop.answer(header + "first document " * 20, session="a")
    text, done = loop.answer(header + "second document " * 20, session="b")
    assert text == alone(header + "second document " * 20)
    assert done.reused == len(header)
    _, back = loop.answer(header + "first document " * 20 + "!", session="a")
    assert back.read == 1


def test_documents_beyond_the_slots_are_warm_when_the_user_comes_back():
    loop = Loop(n_sequences=2)
    documents = {name: f"document {name} says " * 20 for name in "abcde"}
    for name, text in documents.items():
        loop.answer(text, session=name)
    for name, text in documents.items():
        said, done = loop.answer(text + "!", session=name)
        assert said == alone(text + "!")
        assert done.read == 1, name


def test_without_room_on_the_shelf_documents_are_read_again_and_are_right():
    loop = Loop(n_sequences=1, shelf_bytes=0)
    for _ in range(2):
        for name in "ab":
            assert loop.answer(f"document {name} " * 20)[0] == alone(f"document {name} " * 20)


def test_a_state_that_cannot_be_put_back_is_read_again():
    loop = Loop(n_sequences=1)
    loop.answer("document a " * 20)
    loop.answer("document b " * 20)
    loop.runtime.restore = lambda sequence, state: loop.runtime.cells[sequence].clear()
    text, done = loop.answer("document a " * 20)
    assert (text, done.reused) == (alone("document a " * 20), 0)


PROMPT = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 2\n\n"


def test_a_right_draft_takes_few_batches_and_changes_nothing():
    right = alone(PROMPT, max_tokens=32)
    loop = Loop()
    text, done = loop.answer(PROMPT, max_tokens=32, draft=right)
    assert text == right
    assert done.accepted >= 20
    assert len(loop.runtime.batches) < 20


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@given(st.data())
def test_no_draft_ever_changes_the_answer(temperature, data):
    prompt = data.draw(st.text("abc \n", min_size=1, max_size=60)) * 2
    sampling = Sampling(temperature=temperature)
    right = alone(prompt, max_tokens=24, sampling=sampling)
    at = data.draw(st.integers(0, len(right)))
    draft = right[:at] + data.draw(st.text("0123456789xé😀", max_size=6)) + right[at:]
    loop = Loop()
    for _ in range(2):
        text, done = loop.answer(prompt, max_tokens=24, sampling=sampling, draft=draft)
        assert text == right
        assert 0 <= done.accepted <= done.drafted
    _, more = loop.answer(prompt + right + "!")
    assert more.reused >= len(prompt)


def test_what_is_drawn_with_seeded_dice_is_decoded_alone_and_has_no_drafts():
    loop = Loop()
    seeded = Sampling(temperature=1.0, seed=1)
    prompts = ["once upon a time " * 4, "and they lived happily " * 3]
    jobs = [loop.begin(prompt, sampling=seeded, draft=alone(prompt, sampling=seeded), max_tokens=16) for prompt in prompts]
    loop.until(lambda: all(map(loop.text, jobs)))
    n = len(loop.runtime.batches)
    loop.run()
    assert {len(batch) for batch in loop.runtime.batches[n:]} == {1}
    assert [loop.end(job).drafted for job in jobs] == [0, 0]


def test_many_that_wait_for_a_slot_are_not_compared_with_what_is_read():
    loop = Loop(n_sequences=2)
    for n in range(2):
        loop.begin(f"{n} " * 500)
    loop.step()
    for n in range(64):
        loop.begin(f"{n % 2} " * 500)
    compared = 0

    class Watched(list):
        def __iter__(self):
            nonlocal compared
            compared += 1
            return super().__iter__()

    for run in loop.batcher._runs[2:]:
        run.tokens = Watched(run.tokens)
    for _ in range(5):
        loop.step()
    assert compared == 0


def test_an_answer_heals_the_cut_beginning_of_its_first_token():
    loop = Loop(says=lambda cells: 97)
    text, done = loop.answer("def is_ev", heal="en", max_tokens=4)
    assert (text, done.generated) == ("aa", 4)


def test_what_only_spells_the_text_before_the_cursor_is_no_part_of_the_confidence():
    loop = Loop(says=lambda cells: 97)
    job = loop.begin("def is_ev", heal="en", max_tokens=4)
    loop.run()
    pieces = loop.events[job][:-1]
    assert sum(piece.n_tokens for piece in pieces) == 2
    assert sum(piece.logprob for piece in pieces) == -0.5


def test_the_totals_add_up():
    loop = Loop()
    loop.answer("hello")
    loop.answer("hello")
    totals = loop.batcher.totals
    assert (totals.asks, totals.reused, totals.read, totals.generated, totals.cancelled) == (2, 4, 6, 16, 0)
    assert totals.busy_s > 0


documents = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 200), st.integers(0, 30), st.text("abc", max_size=20), st.sampled_from(Priority)),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(edits=documents, slots=st.integers(1, 3), data=st.data())
def test_no_edit_no_cancel_and_no_company_ever_changes_an_answer(edits, slots, data):
    loop = Loop(n_sequences=slots)
    texts = ["the quick brown fox " * 10, "the quick brown dog " * 9, "jumps over " * 15, "it " * 40]
    asked = {}
    for which, at, n_removed, inserted, priority in edits:
        texts[which] = texts[which][:at] + inserted + texts[which][at + n_removed :]
        job = loop.begin(texts[which], session=str(which), priority=priority)
        asked[job] = texts[which]
        for _ in range(data.draw(st.integers(0, 6))):
            loop.step()
        if data.draw(st.booleans()):
            loop.cancelled.add(data.draw(st.sampled_from(sorted(asked))))
    loop.run()
    for job, text in asked.items():
        whole = alone(text)
        end = loop.end(job)
        assert loop.text(job) == (whole[: len(loop.text(job))] if end.finish == "cancelled" else whole)


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_cut_into_tokens():
    loop = Loop(context_tokens=100)
    loop.runtime.tokenize = None
    _, failed = loop.answer("x" * 5_000)
    assert (failed.kind, failed.limit_tokens) == ("overflow", 100)


def test_fewer_than_no_tokens_are_none():
    text, done = Loop().answer("hello", max_tokens=-5)
    assert (text, done.generated) == ("", 0)
