from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engines.local.words import CONTROL, Machine, alone_ms

RIGHT = "".join(f" value{n}{'=(+'[n % 3]}" for n in range(30))
OTHER = "".join(f" item{n}{':[-'[n % 3]}" for n in range(30))
"""No two tokens of these follow each other twice: there is nothing to look up in them."""
REPETITIVE = "    self.rows.append(None)\n" * 6


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def answer(machine):
    """32 tokens."""
    return machine.words.tokenize(RIGHT)[:32]


def text_of(machine, tokens):
    return b"".join(map(machine.words.piece, tokens)).decode()


# The figures that must hold.


def test_a_right_draft_halves_the_time_of_32_tokens(machine, answer):
    draft = text_of(machine, answer)
    assert machine.run(answer, machine.drafter(draft)) <= 0.5 * alone_ms(answer)


def test_a_right_draft_halves_the_time_where_nothing_is_known_of_the_machine():
    machine = Machine(measured=False)
    answer = machine.words.tokenize(RIGHT)[:32]
    draft = text_of(machine, answer)
    assert machine.run(answer, machine.drafter(draft)) <= 0.5 * alone_ms(answer)


def test_a_useless_draft_costs_nothing(machine, answer):
    assert machine.run(answer, machine.drafter(OTHER)) <= 1.05 * alone_ms(answer)


def test_a_useless_draft_costs_nothing_after_many_right_ones(machine, answer):
    draft = text_of(machine, answer)
    for _ in range(30):
        machine.run(answer, machine.drafter(draft))
    assert machine.run(answer, machine.drafter(OTHER)) <= 1.05 * alone_ms(answer)


def test_a_draft_with_one_word_changed_in_the_middle_still_pays(machine, answer):
    draft = text_of(machine, [*answer[:12], machine.words.token(b"other"), *answer[13:]])
    machine.run(answer, machine.drafter(draft))
    assert machine.run(answer, machine.drafter(draft)) <= 0.9 * alone_ms(answer)


@pytest.mark.parametrize("n_right", [1, 2, 3, 5])
def test_drafts_that_begin_right_and_go_wrong_are_soon_proposed_no_more(machine, answer, n_right):
    """The worst kind: each earns some trust.  A trial costs 85 ms, so there may be few."""
    wrong = text_of(machine, answer[:n_right]) + OTHER
    times = [machine.run(answer, machine.drafter(wrong)) for _ in range(200)]
    assert sum(times) <= 1.02 * 200 * alone_ms(answer)
    assert times[-1] <= 1.05 * alone_ms(answer)


def test_drafts_that_become_right_are_proposed_again_though_none_was_tried(machine, answer):
    wrong, right = text_of(machine, answer[:3]) + OTHER, text_of(machine, answer)
    for _ in range(200):
        machine.run(answer, machine.drafter(wrong))
    times = [machine.run(answer, machine.drafter(right)) for _ in range(40)]
    assert times[0] > times[-1]
    assert times[-1] <= 0.45 * alone_ms(answer)


def test_an_answer_that_repeats_itself_is_looked_up(machine):
    answer = machine.words.tokenize(REPETITIVE)
    times = [machine.run(answer, machine.drafter(prompt=[CONTROL])) for _ in range(30)]
    assert times[-1] < 0.9 * alone_ms(answer)
    assert max(times) <= 1.1 * alone_ms(answer)


def test_text_that_repeats_what_was_read_is_looked_up(machine, answer):
    prompt = [5, 6, 7, *answer, 8, CONTROL]
    assert machine.run(answer, machine.drafter(prompt=prompt)) <= 0.7 * alone_ms(answer)


def test_a_lookup_that_is_never_right_stops_and_costs_next_to_nothing(machine):
    """Every third word repeats two words of the prompt, and goes on otherwise."""
    words = [machine.words.token(f"w{n}".encode()) for n in range(600)]
    prompt = [token for n in range(100) for token in (words[n], words[n + 1], words[n + 2], words[n + 3], words[500 + n % 90])]
    answer = [token for n in range(0, 80, 8) for token in (words[n], words[n + 1], words[n + 2], words[n + 3], words[400 + n])]
    times = [machine.run(answer, machine.drafter(prompt=prompt)) for _ in range(100)]
    assert sum(times) <= 1.02 * 100 * alone_ms(answer)


def test_dear_rows_are_found_out_and_nothing_is_proposed_then(answer):
    """A machine on which a batch of many rows is no cheaper than its rows one by one."""
    machine = Machine(measured=False)
    for n_rows in range(1, 40):
        machine.costs.observe(n_rows, 17.0 * n_rows)
    answer = machine.words.tokenize(RIGHT)[:32]
    drafter = machine.drafter(text_of(machine, answer))
    assert all(drafter.propose(answer[:n], 20) == [] for n in range(1, 30))


# What is proposed.


def test_the_first_token_that_agrees_is_not_yet_trusted(machine, answer):
    drafter = machine.drafter(text_of(machine, answer))
    assert drafter.propose(answer[:1], 30) == []
    proposed = drafter.propose(answer[:2], 30)
    assert proposed
    assert proposed == answer[2 : 2 + len(proposed)]


def test_longer_agreement_proposes_more(machine, answer):
    machine.costs = Machine(measured=False).costs
    lengths = [len(machine.drafter(RIGHT).propose(answer[:n], 60)) for n in (2, 4, 8)]
    assert 0 < lengths[0] < lengths[1] < lengths[2]


def test_right_drafts_make_longer_proposals(machine, answer):
    draft = text_of(machine, answer)
    first = len(machine.drafter(draft).propose(answer[:2], 29))
    for _ in range(40):
        machine.run(answer, machine.drafter(draft))
    assert 0 < first < len(machine.drafter(draft).propose(answer[:2], 29)) == 29


def test_other_cuts_of_the_same_text_are_followed(machine, answer):
    draft = text_of(machine, answer)
    first = machine.words.piece(answer[1])
    said = [answer[0], machine.words.token(first[:3]), machine.words.token(first[3:])]
    proposed = machine.drafter(draft).propose(said, 30)
    assert proposed == answer[2 : 2 + len(proposed)] != []


def test_nothing_is_proposed_inside_a_character(machine):
    face = "😀".encode()
    said = [machine.words.token(piece) for piece in (b"'", face[:2], face[2:3], face[3:])]
    draft = "'😀' in one two three four five six seven eight nine ten"
    drafter = machine.drafter(draft)
    assert [bool(drafter.propose(said[:n], 30)) for n in range(1, 5)] == [False, False, False, True]


def test_an_answer_that_is_back_in_the_draft_is_trusted_after_two_more_tokens(machine, answer):
    said = [*answer[:5], machine.words.token(b"different"), *answer[6:]]
    drafter = machine.drafter(text_of(machine, answer))
    proposed = [bool(drafter.propose(said[:n], 20)) for n in range(1, 14)]
    assert proposed[:5] == [False, True, True, True, True]
    assert not any(proposed[5:10])
    assert any(proposed[10:])


def test_a_proposal_stops_at_a_control_token(machine):
    words = [machine.words.token(f"w{n}".encode()) for n in range(12)]
    prompt = [*words[:9], CONTROL, *words[:9], CONTROL]
    assert machine.drafter(prompt=prompt).propose(words[:5], 20) in ([], words[5:9])
    machine.costs = Machine(measured=False).costs  # many rows are cheap: everything that may be proposed is
    assert machine.drafter(prompt=prompt).propose(words[:5], 20) == words[5:9]


def test_the_prompt_may_grow_with_the_answer_in_the_callers_list(machine, answer):
    machine.costs = Machine(measured=False).costs
    tokens = [5, 6, 7, *answer, 8, CONTROL]
    n_prompt = len(tokens)
    drafter = machine.drafter(prompt=tokens)
    tokens += answer[:9]
    proposed = drafter.propose(tokens[n_prompt:], 20)
    assert proposed == answer[9 : 9 + len(proposed)] != []


def test_a_proposal_that_was_not_read_teaches_nothing(machine, answer):
    drafter = machine.drafter(text_of(machine, answer))
    assert drafter.propose(answer[:3], 20)
    before = [machine.odds.chance("text", agreed) for agreed in range(32)]
    drafter.judged(0, 0)
    assert drafter.propose(answer[:3], 20)
    assert [machine.odds.chance("text", agreed) for agreed in range(32)] == before


def test_each_token_teaches_once_whether_it_was_proposed_or_not(machine, answer):
    seen = []
    learn = machine.odds.learn
    machine.odds.learn = lambda source, agreed, *, hit: (seen.append((source, agreed, hit)), learn(source, agreed, hit=hit))
    drafter = machine.drafter(text_of(machine, answer))
    assert len(drafter.propose(answer[:2], 3)) in (0, 3)
    proposed = drafter.propose(answer[:3], 20)
    drafter.judged(len(proposed), len(proposed))
    drafter.propose(answer[: 3 + len(proposed) + 1], 3)
    assert seen == [("text", 2 + n, True) for n in range(len(proposed) + 2)]


@settings(max_examples=60)
@given(st.data())
def test_no_proposal_is_longer_than_asked_for_and_none_holds_a_control_token(data):
    machine = Machine(measured=data.draw(st.booleans()))
    alphabet = st.text("ab (\n😀", max_size=30)
    prompt = [*machine.words.tokenize(data.draw(alphabet)), CONTROL, *machine.words.tokenize(data.draw(alphabet))]
    drafter = machine.drafter(data.draw(alphabet), prompt=prompt)
    said = []
    for _ in range(data.draw(st.integers(0, 12))):
        said += machine.words.tokenize(data.draw(alphabet))
        limit = data.draw(st.integers(-1, 20))
        proposed = drafter.propose(said, limit)
        assert len(proposed) <= max(0, limit)
        assert CONTROL not in proposed
        if proposed and data.draw(st.booleans()):
            n_right = data.draw(st.integers(0, len(proposed)))
            drafter.judged(len(proposed), n_right)
            said += proposed[:n_right]


# A draft model.


class Guesser:
    """Guesses from the real answer, right as often as it is told."""

    def __init__(self, answer, n_prompt, *, wrong_every=0, token_ms=1.0, lag_ms=0.0):
        self._answer = answer
        self._n_prompt = n_prompt
        self._wrong_every = wrong_every
        self._token_ms = token_ms
        self._lag_ms = lag_ms
        self.spent_ms = 0.0
        self.n_asked = 0

    def propose(self, tokens, n):
        at = len(tokens) - self._n_prompt
        self.n_asked += 1
        self.spent_ms += self._lag_ms + self._token_ms * n
        return [
            token + 1 if self._wrong_every and (at + k) % self._wrong_every == 0 else token
            for k, token in enumerate(self._answer[at : at + n])
        ]

    def lag_ms(self, tokens):
        return self._lag_ms

    def token_ms(self):
        return self._token_ms

    def take_ms(self):
        spent, self.spent_ms = self.spent_ms, 0.0
        return spent


@pytest.fixture
def long_answer(machine):
    return [machine.words.token(f"u{n}".encode()) for n in range(200)]


def test_a_good_draft_model_is_asked_and_pays(machine, long_answer):
    guesser = Guesser(long_answer, 3)
    for _ in range(5):
        ms = machine.run(long_answer, machine.drafter(prompt=[1, 2, 3], proposer=guesser), extra_ms=guesser.take_ms)
    assert ms <= 0.6 * alone_ms(long_answer)


def test_a_bad_draft_model_costs_less_than_two_percent(machine, long_answer):
    guesser = Guesser(long_answer, 3, wrong_every=2)
    total = sum(machine.run(long_answer, machine.drafter(prompt=[1, 2, 3], proposer=guesser), extra_ms=guesser.take_ms) for _ in range(100))
    assert guesser.n_asked > 5
    assert total <= 1.02 * 100 * alone_ms(long_answer)


def test_a_draft_model_that_got_better_is_used_again(machine, long_answer):
    bad, good = Guesser(long_answer, 3, wrong_every=2), Guesser(long_answer, 3)
    for _ in range(20):
        machine.run(long_answer, machine.drafter(prompt=[1, 2, 3], proposer=bad), extra_ms=bad.take_ms)
    for _ in range(100):
        ms = machine.run(long_answer, machine.drafter(prompt=[1, 2, 3], proposer=good), extra_ms=good.take_ms)
    assert ms <= 0.6 * alone_ms(long_answer)


def test_a_draft_model_that_is_far_behind_is_not_asked(machine, long_answer):
    guesser = Guesser(long_answer, 3, lag_ms=5000.0)
    machine.run(long_answer[:32], machine.drafter(prompt=[1, 2, 3], proposer=guesser))
    assert guesser.n_asked == 0


def test_a_draft_model_that_cannot_tell_is_not_judged(machine, long_answer):
    drafter = machine.drafter(prompt=[1, 2, 3], proposer=Guesser([], 3))
    before = machine.odds.chance("model", 0)
    assert drafter.propose(long_answer[:3], 20) == []
    drafter.judged(0, 0)
    assert machine.odds.chance("model", 0) == before


def test_a_draft_model_that_lost_its_credit_pauses_though_it_seems_to_pay(machine, long_answer):
    machine.costs = Machine(measured=False).costs
    drafter = machine.drafter(prompt=[1, 2, 3], proposer=Guesser(long_answer, 3, token_ms=0.01))
    assert drafter.propose(long_answer[:3], 20)
    machine.odds.settle("model", -100)
    assert drafter.propose(long_answer[:4], 20) == []


def test_the_draft_text_comes_before_the_draft_model(machine, answer):
    guesser = Guesser(answer, 0)
    assert machine.drafter(text_of(machine, answer), proposer=guesser).propose(answer[:4], 20)
    assert guesser.n_asked == 0
