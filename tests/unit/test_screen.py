"""What stands on the screen, and who learns what became of it."""

import asyncio

import pytest

from monkeycode_lsp.domain import Fate, Outcome, OutcomeKind, Suggestion
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.showings import Showings
from monkeycode_lsp.screen import READ_S, Screen
from monkeycode_lsp.silence.history import History
from monkeycode_lsp.silence.judge import Silence, Verdict
from tests.unit.places import URI, at, snapshot
from tests.unit.virtual import on_virtual_time

VERDICT = Verdict(odds=0.6, model="m")


class Window:
    """A screen, with its outcomes and what was learnt."""

    def __init__(self):
        self.outcomes = Outcomes()
        self.history = History()
        self.screen = Screen(Showings(3), self.outcomes, Silence("auto", self.history, now=lambda: 0.0))
        self.n_asks = 0

    def shows(self, marked, text, verdict=VERDICT):
        """As the pipeline does: the screen is told before the outcome is written."""
        self.n_asks += 1
        self.screen.shows(self.n_asks, snapshot(marked), at(marked), text, verdict)
        self.outcomes.add(Outcome(id=self.n_asks, at=0.0, kind=OutcomeKind.SHOWN, reason="", n_shown=len(text)))
        return self

    def has(self, marked):
        self.screen.edited(URI, snapshot(marked).lines)
        return self

    def fates(self):
        return [(outcome.fate, outcome.n_taken, outcome.accepted) for outcome in self.outcomes.last()]

    def learnt(self):
        return sum(taken for taken, _ in self.history.counts("m").bins), sum(left for _, left in self.history.counts("m").bins)


@on_virtual_time
async def test_an_outcome_says_what_became_of_it_and_the_silence_learns():
    window = Window().shows("x = ‸", "hello")
    assert window.fates() == [("open", 0, False)]
    window.has("x = hello‸")
    assert window.fates() == [("accepted", 5, True)]
    assert window.learnt() == (1.0, 0.0)
    window.screen.accepted(1)
    assert window.learnt() == (1.0, 0.0), "the command after it says nothing new"


@on_virtual_time
async def test_the_rest_of_a_suggestion_counts_with_the_first():
    window = Window().shows("x = ‸", "hello").has("x = he‸").shows("x = he‸", "llo", Verdict(odds=0.1, model="other"))
    window.screen.accepted(2)
    assert window.fates() == [("accepted", 5, True), ("continued", 0, False)]
    assert window.learnt() == (1.0, 0.0)


@on_virtual_time
async def test_a_no_is_learnt():
    window = Window().shows("x = ‸", "hello")
    window.screen.rejected(1)
    assert window.fates() == [("rejected", 0, False)]
    assert window.learnt() == (0.0, 1.0)


@on_virtual_time
async def test_what_never_came_to_the_screen_teaches_nothing():
    window = Window().shows("x = ‸", "hello")
    window.screen.unseen([Suggestion("hello", id=1)])
    window.has("x = hello‸")
    assert window.fates() == [("", 0, False)]
    assert window.outcomes.last(1)[0].kind is OutcomeKind.SUPERSEDED
    assert window.learnt() == (0.0, 0.0)


@on_virtual_time
async def test_a_document_that_is_closed_has_its_fate():
    window = Window().shows("x = ‸", "hello")
    await asyncio.sleep(READ_S)
    window.screen.closed(URI)
    assert window.fates() == [("ignored", 0, False)]
    assert window.learnt() == (0.0, 0.25)


@on_virtual_time
async def test_what_was_gone_before_it_could_be_read_teaches_nothing():
    window = Window().shows("x = ‸", "hello")
    await asyncio.sleep(READ_S / 2)
    window.has("x = y‸").shows("x = y‸", "z")
    assert window.fates() == [("brief", 0, False), ("open", 0, False)]
    assert window.learnt() == (0.0, 0.0)


@pytest.mark.parametrize("number", [0, 2, -1, 10**12])
def test_numbers_that_were_never_given_do_nothing(number):
    @on_virtual_time
    async def said():
        window = Window().shows("x = ‸", "hello")
        window.screen.accepted(number)
        window.screen.rejected(number)
        return window.fates()

    assert said() == [("open", 0, False)]


@on_virtual_time
async def test_after_half_a_minute_the_outcome_says_whether_it_is_still_there():
    window = Window().shows("x = ‸", "hello").has("x = hello‸")
    await asyncio.sleep(20)
    window.has("x = ‸")
    await asyncio.sleep(11)
    window.has("x = y‸")
    assert window.outcomes.last(1)[0].kept == {"30": 0.0}
    assert window.outcomes.last(1)[0].fate == Fate.ACCEPTED.value
