"""Show it or stay quiet?"""

import pytest

from monkeycode_lsp.domain import Fate, Suggestion
from monkeycode_lsp.silence.history import History
from monkeycode_lsp.silence.judge import CAREFUL_S, EVERY, LEAST, MANY_NO, Silence
from monkeycode_lsp.silence.odds import odds
from tests.unit.places import ask, at

MODEL = "local:a"
SURE, MIDDLING, HOPELESS = -0.1, -0.9, -3.0
TEXT = "total += value"


class User:
    """Somebody who types, and a clock."""

    def __init__(self, mode="auto", history=None):
        self.now = 100.0
        self.silence = Silence(mode, history or History(), now=lambda: self.now)
        self.n_lines = 0

    def judge(self, marked="x = ‸", text=TEXT, confidence=HOPELESS, model=MODEL, **more):
        return self.silence.judge(ask(marked, **more), at(marked), Suggestion(text, confidence=confidence), model)

    def elsewhere(self, confidence, **more):
        """The verdict at a place where nobody was before."""
        self.n_lines += 1
        return self.judge("\n" * self.n_lines + f"y{self.n_lines} = ‸", confidence=confidence, **more)

    def sees(self, n, confidence, fate, share=1.0, **more):
        """So many suggestions of which it is the fate, if they are shown."""
        n_shown = 0
        for _ in range(n):
            verdict = self.elsewhere(confidence, **more)
            if not verdict.reason:
                n_shown += 1
                self.silence.learn(verdict, fate, share)
        return n_shown


def test_the_figures_of_these_tests_mean_what_they_say():
    assert odds(HOPELESS, TEXT) < LEAST < odds(MIDDLING, TEXT) < 2 * LEAST < 0.4 < odds(SURE, TEXT)


def test_what_is_hopeless_is_not_shown_and_the_user_is_told_why():
    verdict = User().judge()
    assert verdict.reason == "The model was not sure enough (\N{MINUS SIGN}3.0 per token; setting completion.silence)."
    assert not User().judge(confidence=MIDDLING).reason
    assert not User().judge(confidence=SURE).reason


def test_what_is_asked_for_by_key_is_shown_and_teaches_nothing():
    user = User()
    verdict = user.judge(invoked=True)
    assert (verdict.reason, verdict.model) == ("", "")
    user.silence.learn(verdict, Fate.REJECTED)
    assert all(count == (0.0, 0.0) for count in user.silence.history.counts(MODEL).bins)


def test_an_engine_that_does_not_tell_is_never_quiet():
    user = User()
    verdict = user.judge(confidence=None)
    assert (verdict.reason, verdict.odds) == ("", None)
    user.silence.learn(verdict, Fate.ACCEPTED)
    assert not user.judge(confidence=None).reason


def test_switched_off_it_shows_everything_and_learns_on():
    user = User("off")
    verdict = user.judge()
    assert not verdict.reason
    user.silence.learn(verdict, Fate.ACCEPTED)
    assert user.silence.history.counts(MODEL).bins[0] == (1.0, 0.0)


def test_what_is_taken_again_and_again_is_shown_though_it_is_unlikely():
    user = User("off")
    user.sees(12, HOPELESS, Fate.ACCEPTED)
    taught = User(history=user.silence.history)
    assert not taught.elsewhere(HOPELESS).reason
    assert taught.elsewhere(HOPELESS, model="local:b").reason, "of another model nothing was learnt"


def test_what_is_never_taken_is_not_shown_for_long_but_now_and_then():
    user = User()
    n_shown = user.sees(400, MIDDLING, Fate.IGNORED)
    assert n_shown < 200
    assert user.elsewhere(MIDDLING).reason.startswith("You seldom take what the model is so unsure of (\N{MINUS SIGN}0.9 per token;")
    shown = [not user.elsewhere(MIDDLING).reason for _ in range(5 * EVERY)]
    assert sum(shown) == 5, "it tries again, and so can learn that it is wrong"
    assert not user.elsewhere(SURE).reason


def test_to_look_past_suggestions_is_no_reason_to_hide_good_ones():
    user = User()
    user.sees(1000, SURE, Fate.IGNORED)
    taken = User()
    for _ in range(100):
        taken.sees(3, SURE, Fate.IGNORED)
        taken.sees(1, SURE, Fate.ACCEPTED)
    assert not taken.elsewhere(SURE).reason
    assert sum(not user.elsewhere(SURE).reason for _ in range(5 * EVERY)) >= 5


def test_what_was_silenced_by_habit_comes_back_when_it_is_taken():
    user = User()
    user.sees(400, MIDDLING, Fate.IGNORED)
    assert user.sees(40 * EVERY, MIDDLING, Fate.TYPED) > 100


def test_a_part_that_is_taken_counts_as_a_part():
    user = User()
    user.sees(1, SURE, Fate.PARTIAL, 0.5)
    assert (0.5, 0.125) in user.silence.history.counts(MODEL).bins


@pytest.mark.parametrize("fate", [Fate.OPEN, Fate.CONTINUED])
def test_what_has_no_fate_yet_teaches_nothing(fate):
    user = User()
    user.sees(3, SURE, fate)
    assert all(count == (0.0, 0.0) for count in user.silence.history.counts(MODEL).bins)


def test_what_is_on_the_screen_stays_while_it_is_typed():
    user = User()
    assert not user.judge("x = ‸", "hello(1)", confidence=SURE).reason
    assert not user.judge("x = he‸", "llo(1)", confidence=HOPELESS).reason
    assert user.judge("x = ha‸", "llo(1)", confidence=HOPELESS).reason


def test_what_was_quiet_stays_quiet_and_is_shown_when_the_user_types_it():
    user = User()
    text = "hello there"
    assert user.judge("x = ‸", text).reason
    assert user.judge("x = ‸", text).reason
    assert user.judge("x = h‸", text[1:]).reason
    assert user.judge("x = he‸", text[2:]).reason
    verdict = user.judge("x = hel‸", text[3:])
    assert not verdict.reason
    assert verdict.model == MODEL, "and what becomes of it teaches"
    assert not user.judge("x = hell‸", text[4:]).reason


def test_an_answer_that_grows_is_the_same_one():
    user = User()
    assert not user.judge("x = ‸", "[\n", confidence=SURE).reason
    assert not user.judge("x = ‸", "[\n    1,\n]", confidence=HOPELESS).reason


def test_the_keys_of_one_line_are_one_place_for_what_is_shown_now_and_then():
    user = User()
    for number in range(5 * EVERY):
        assert user.judge(f"x = {'y' * number}‸", f"{number} z").reason


def test_after_several_noes_only_surer_ones_are_shown_for_a_while():
    user = User()
    user.sees(MANY_NO - 1, SURE, Fate.REJECTED)
    assert not user.elsewhere(MIDDLING).reason
    user.sees(1, SURE, Fate.REJECTED)
    assert user.elsewhere(MIDDLING).reason.startswith(
        "You said no several times in a row, and the model was not sure enough (\N{MINUS SIGN}0.9"
    )
    assert not user.elsewhere(SURE).reason
    user.now += CAREFUL_S
    assert not user.elsewhere(MIDDLING).reason


def test_one_that_is_taken_ends_the_caution():
    user = User()
    user.sees(MANY_NO, SURE, Fate.REJECTED)
    assert user.elsewhere(MIDDLING).reason
    user.sees(1, SURE, Fate.ACCEPTED)
    assert not user.elsewhere(MIDDLING).reason


def test_who_deletes_is_shown_what_is_surer():
    user = User()
    confidence = next(-n / 100 for n in range(1, 300) if odds(-n / 100, TEXT) < 1.2 * LEAST)
    assert odds(confidence, TEXT) > LEAST
    assert user.elsewhere(confidence, since_edit_ms=5.0).reason.startswith("You were deleting")
    assert not user.elsewhere(confidence, since_edit_ms=5.0, inserted="x").reason
    assert not user.elsewhere(confidence).reason


def test_documents_without_end_are_forgotten():
    user = User()
    for number in range(200):
        user.silence.judge(ask("x = ‸", uri=f"file:///w/{number}.py"), at("x = ‸"), Suggestion(TEXT, confidence=SURE), MODEL)
    assert len(user.silence._decided) <= 64
