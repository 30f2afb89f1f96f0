"""What outcomes add up to."""

import json

import pytest

from monkeycode_lsp.domain import Outcome, OutcomeKind
from monkeycode_lsp.observe import figures


def ask(kind="shown", reason="Shown.", **more):
    return Outcome(**{"id": 1, "at": 1.0, "kind": OutcomeKind(kind), "reason": reason, **more})


def quiet(how):
    return ask("quiet", f"The model was not sure enough ({how} per token; setting completion.silence).")


def test_nothing_asked_is_no_rate():
    one = figures.summary([])
    assert (one.since, one.groups) == (None, ())
    assert (one.whole.n_asks, one.whole.show_rate, one.whole.quiet_rate, one.whole.taken_rate, one.whole.total) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_what_was_overtaken_is_in_no_rate():
    one = figures.figures([ask(), ask("superseded", ""), ask("cancelled", ""), ask("empty", "Nothing.")])
    assert (one.n_asks, one.n_overtaken, one.show_rate) == (2, 2, 0.5)


def test_quiet_is_a_share_of_what_the_model_said_how_sure_it_was_of_and_its_reasons_are_one():
    mute = [ask()] * 5
    one = figures.figures([ask(confidence=-0.2), *mute, quiet("-1.9"), quiet("-2.2"), quiet("-3"), ask("gated", "No.")])
    assert (one.n_sure, one.quiet_rate) == (4, 0.75)
    assert one.not_shown == {"The model was not sure enough.": 3, "No.": 1}


def test_where_no_model_says_how_sure_it_is_there_is_no_rate_of_quiet():
    assert figures.figures([ask(), ask()]).quiet_rate is None
    assert figures.figures([ask(confidence=-0.2)]).quiet_rate == 0


def test_a_suggestion_that_was_typed_along_with_counts_once():
    one = figures.figures([ask(fate="typed", n_shown=8, n_taken=8), ask(fate="continued", n_shown=5), ask(fate="open", n_shown=5)])
    assert (one.n_shown, one.n_suggestions, one.fates, one.taken_rate) == (3, 1, {"typed": 1}, 1)


def test_taking_is_weighed_by_suggestion_and_by_character():
    one = figures.figures(
        [ask(fate="accepted", n_shown=90, n_taken=90), ask(fate="partial", n_shown=10, n_taken=5), ask(fate="ignored", n_shown=100)]
    )
    assert one.taken_rate == pytest.approx(1 / 3)
    assert one.taken_characters_rate == pytest.approx(95 / 200)


def test_what_grew_while_it_was_shown_is_never_taken_more_than_whole():
    assert figures.figures([ask(fate="accepted", n_shown=3, n_taken=9)]).taken_characters_rate == 1


def test_retention_is_weighed_by_characters():
    one = figures.figures(
        [
            ask(fate="accepted", n_shown=30, n_taken=30, kept={"30": 1.0, "120": 0.5}),
            ask(fate="accepted", n_shown=10, n_taken=10, kept={"30": 0.0}),
        ]
    )
    assert one.kept_rate == {"30": 0.75, "120": 0.5}


def test_times_are_those_of_what_was_shown_and_each_stage_has_its_own():
    asks = [ask(total_ms=float(n), stages_ms={"gate": float(n)}) for n in range(100)]
    one = figures.figures([*asks, ask("gated", "No.", total_ms=9e9, stages_ms={"gate": 1.0}), ask(total_ms=float("inf"))])
    assert (one.total.n, one.total.p50_ms, one.total.p95_ms) == (100, 50, 95)
    assert one.stages["gate"].n == 101
    assert one.first is None


def test_models_and_languages_are_told_apart():
    asks = [ask(model="a", language="go"), ask(model="a", language="go"), ask(model="b", language="go"), ask(model="a", language="c")]
    found = figures.summary(asks)
    assert [(one.model, one.language, one.figures.n_asks) for one in found.groups] == [("a", "go", 2), ("a", "c", 1), ("b", "go", 1)]
    assert found.since == 1.0


def test_editors_get_plain_values():
    told = figures.value([ask(model="a", total_ms=2.0, confidence=-0.1), quiet("-2")])
    assert json.loads(json.dumps(told))["whole"]["quietRate"] == 0.5
    assert [group["figures"]["total"] for group in told["groups"] if group["model"] == "a"] == [{"n": 1, "p50Ms": 2.0, "p95Ms": 2.0}]
