from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.costs import Costs
from monkeycode_lsp.engines.local.batch.odds import Odds
from tests.unit.engines.local.words import CURVE, real_ms

SOURCES = ["text", "lookup", "model"]


@pytest.fixture
def costs():
    costs = Costs()
    for n_rows, ms in CURVE.items():
        costs.observe(n_rows, ms)
    return costs


def taught(source, chance, n=400):
    """Odds that have seen this share of hits at every level."""
    odds = Odds()
    for step in range(1, n + 1):
        for agreed in (0, 1, 2, 4, 8, 16):
            odds.learn(source, agreed, hit=int(step * chance) != int((step - 1) * chance))
    return odds


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9, 1.0])
def test_the_chance_becomes_the_share_of_hits(source, chance):
    assert taught(source, chance).chance(source, 5) == pytest.approx(chance, abs=0.12)


def test_sources_are_told_apart():
    odds = taught("lookup", 0.0)
    assert odds.chance("lookup", 4) < 0.05
    assert odds.chance("text", 4) == Odds().chance("text", 4)


@pytest.mark.parametrize("source", ["text", "lookup"])
def test_longer_agreement_is_believed_more(source):
    chances = [Odds().chance(source, agreed) for agreed in (0, 1, 2, 4, 8, 16)]
    assert chances == sorted(set(chances))


@pytest.mark.parametrize(("n_proposed", "n_accepted", "more"), [(3, 3, [1, 1, 1]), (3, 1, [1, -1, 0]), (2, 0, [-1, 0, 0])])
def test_a_proposal_teaches_up_to_its_first_wrong_token(n_proposed, n_accepted, more):
    odds = Odds()
    before = [odds.chance("text", agreed) for agreed in (1, 2, 4)]
    # One right token before: the three proposed ones come after 1, 2 and 3; so take steps of a level each.
    for n, agreed in enumerate((1, 2, 4)):
        if n < n_accepted:
            odds.judged("text", agreed, 1, 1)
        elif n == n_accepted and n < n_proposed:
            odds.judged("text", agreed, n_proposed - n, 0)
    after = [odds.chance("text", agreed) for agreed in (1, 2, 4)]
    assert [(new > old) - (new < old) for old, new in zip(before, after, strict=True)] == more


@pytest.mark.parametrize("chance", [0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99])
def test_the_length_is_the_one_with_the_most_tokens_per_millisecond(costs, chance):
    odds = taught("text", chance)
    learned = [odds.chance("text", agreed) for agreed in range(64)]

    def rate(n):
        expected = reached = 1.0
        for at in range(n):
            reached *= learned[4 + at]
            expected += reached
        return expected / real_ms(n + 1)

    best = max(range(1, 32), key=rate)
    assert odds.length("text", 4, costs, 31) == (best if rate(best) > 1.05 * rate(0) else 0)


def test_a_better_source_proposes_more_and_a_bad_one_nothing(costs):
    lengths = [taught("text", chance).length("text", 4, costs, 40) for chance in (0.5, 0.9, 1.0)]
    assert lengths[0] == 0 < lengths[1] < lengths[2]


def test_what_a_source_costs_itself_shortens_or_stops_it():
    """With rows that cost a tenth of a decode."""
    odds, cheap = taught("model", 0.9), Costs()
    free = odds.length("model", 0, cheap, 31)
    assert 0 < odds.length("model", 0, cheap, 31, lambda n: 0.3 * n) < free
    assert odds.length("model", 0, cheap, 31, lambda n: 2.0 * n) == 0


@given(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 40), st.booleans()), max_size=80), st.integers(-2, 200))
def test_the_length_never_passes_the_limit(seen, limit):
    odds = Odds()
    for source, agreed, hit in seen:
        odds.learn(source, agreed, hit=hit)
    for source in SOURCES:
        assert 0 < odds.chance(source, 3) < 1 or seen
        assert 0 <= odds.length(source, 3, Costs(), limit) <= max(limit, 0)


def test_a_source_that_got_better_is_believed_again(costs):
    odds = taught("text", 0.0)
    assert odds.length("text", 4, costs, 20) == 0
    for _ in range(200):
        for agreed in (4, 8, 16):
            odds.learn("text", agreed, hit=True)
    assert odds.length("text", 4, costs, 20) > 0


def test_a_hopeless_source_is_watched_in_a_few_runs_only(costs):
    assert Odds().watches("lookup", costs)
    odds = taught("lookup", 0.1)
    assert sum(odds.watches("lookup", costs) for _ in range(160)) == 10


def trials(odds, source, n_decodes, loss):
    """At which decodes a source that loses so much with each trial is tried."""
    tried = []
    for n in range(n_decodes):
        odds.earn()
        if odds.affords(source):
            odds.settle(source, -loss)
            tried.append(n)
    return tried


@pytest.mark.parametrize("loss", [0.5, 5.0, 50.0])
def test_what_a_source_that_only_loses_costs_is_bounded_by_a_share_of_the_time(loss):
    n_decodes = 20_000
    tried = trials(Odds(), "text", n_decodes, loss)
    assert tried[-1] > n_decodes * 0.7
    assert len(tried) * loss <= 20 + 0.01 * n_decodes + loss


def test_gains_are_credit_but_not_without_end():
    odds = Odds()
    odds.settle("text", 1e6)
    odds.settle("text", -19)
    assert odds.affords("text")
    odds.settle("text", -2)
    assert not odds.affords("text")
    odds.settle("text", 5)
    assert odds.affords("text")


def test_trials_of_a_draft_model_leave_it_the_credit_to_read_a_prompt():
    odds = Odds()
    n_trials = 0
    while odds.affords_trial("model", 3):
        odds.settle("model", -3)
        n_trials += 1
    assert n_trials == 6
    odds.settle("model", -35)
    assert odds.affords("model")


def test_one_sources_losses_are_not_anothers():
    odds = Odds()
    odds.settle("lookup", -100)
    assert not odds.affords("lookup")
    assert odds.affords("text")
    assert odds.affords("model")
