"""What nobody wants at a place is not shown there again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.recall.showings import MOST_PLACES, Showings
from tests.unit.places import URI, at, snapshot

PLACE, TEXT = "x = he‸\n", "llo(1)"
OTHER = "file:///w/other.py"
LONG = "".join(f"line {n}\n" for n in range(30))


class Screen:
    """An editor that asks after every step; what stands on the screen is what was shown last."""

    def __init__(self, most=3):
        self.showings = Showings(most)

    def shows(self, marked, text):
        self.showings.saw(URI, at(marked))
        self.showings.shown(snapshot(marked), at(marked), text)
        return self

    def asks(self, *places):
        for marked in places:
            self.showings.saw(URI, at(marked))
        return self

    def edits(self, *texts):
        """Changes that no ask follows."""
        for marked in texts:
            self.showings.edited(URI, snapshot(marked).lines)
        return self

    def contradicts(self, n=1):
        for _ in range(n):
            self.shows(PLACE, TEXT).asks("x = hex‸\n")
        return self

    def is_tired(self, marked=PLACE, text=TEXT):
        return self.showings.tired(at(marked), text)


def test_what_was_contradicted_so_often_is_not_shown_again():
    screen = Screen().contradicts(2)
    assert not screen.is_tired()
    assert screen.contradicts().is_tired()


def test_it_is_shown_again_at_another_place_and_so_is_another_text_here():
    screen = Screen(1).contradicts()
    assert screen.is_tired()
    assert not screen.is_tired("y = he‸\n")
    assert not screen.is_tired("x = he‸\n\n")
    assert not screen.is_tired(text="llo(2)")
    assert not screen.showings.tired(at(PLACE, language="ruby"), TEXT)
    assert not screen.showings.tired(at(PLACE, uri=OTHER), TEXT)


def test_only_the_text_around_makes_a_place():
    far = "".join(f"line {n}\n" for n in range(60))
    screen = Screen(1).shows(f"{far}x = he‸\n{far}", TEXT).asks(f"{far}x = hex‸\n{far}")
    above, below = far.replace("line 1", "new"), far.replace("line 59", "new")
    assert screen.is_tired(f"{above}x = he‸\n{below}")
    assert screen.is_tired(f"{above}x = hel‸\n{below}", "lo(1)")
    assert screen.is_tired(f"{above}x = h‸\n{below}", "ello(1)")
    assert not screen.is_tired(f"{below}x = he‸\n{below}")
    assert not screen.is_tired(f"{above}x = he‸\n{above}")


def test_typing_through_in_a_long_document_is_no_verdict():
    screen = Screen(1).shows(f"{LONG}x = he‸\n{LONG}", TEXT).shows(f"{LONG}x = hel‸\n{LONG}", "lo(1)")
    assert not screen.is_tired(f"{LONG}x = he‸\n{LONG}")
    screen.asks(f"{LONG}x = hello(1)‸\n{LONG}", f"{LONG}x = hello(1)!‸\n{LONG}")
    assert not screen.is_tired(f"{LONG}x = he‸\n{LONG}")


def test_typing_through_is_no_verdict_and_no_other_showing():
    screen = Screen(1).shows(PLACE, TEXT).shows("x = hel‸\n", "lo(1)").shows("x = hell‸\n", "o(1)")
    assert not screen.is_tired()
    screen.asks("x = hellx‸\n")
    assert screen.is_tired(), "known where it began"
    assert screen.is_tired("x = hell‸\n", "o(1)"), "and where it goes on"
    assert not screen.is_tired("x = hell‸\n", "o(2)")


def test_one_showing_counts_once_however_far_it_was_typed():
    screen = Screen(2)
    screen.shows(PLACE, TEXT).shows("x = hel‸\n", "lo(1)").asks("x = helx‸\n", "x = helxy‸\n", "x = helx‸\n")
    assert not screen.is_tired()
    screen.shows(PLACE, TEXT).shows("x = hel‸\n", "lo(1)").asks("x = helx‸\n")
    assert screen.is_tired()


def test_what_was_shown_first_within_a_word_is_known_at_its_beginning():
    screen = Screen(1).shows("x = hel‸\n", "lo(1)").asks("x = helx‸\n")
    assert screen.is_tired("x = h‸\n", "ello(1)")
    assert not screen.is_tired("x‸\n", " = hello(1)"), "more was said than the end of a word"
    assert not Screen(1).shows("f(x‸\n", ")").asks("f(x,‸\n").is_tired("f(‸\n", "x)")


def test_what_was_shown_first_a_little_later_is_known_where_most_of_it_was_to_come():
    screen = Screen(1).shows("diameter = ‸\n", "radius * 2 + border").asks("diameter = x‸\n")
    assert screen.is_tired("diameter‸\n", " = radius * 2 + border")
    assert screen.is_tired("diam‸\n", "eter = radius * 2 + border")
    assert not screen.is_tired("d‸\n", "iameter = radius * 2 + border"), "more was said than was turned down"
    assert not screen.is_tired("diameter‸\n", " = radius * 3 + border")


def test_showings_at_wandering_places_are_counted_together():
    screen = Screen(3)
    for head, text in (("dia", "meter = radius * 2"), ("diameter = ", "radius * 2"), ("diam", "eter = radius * 2")):
        assert not screen.is_tired(f"{head}‸\n", text)
        screen.shows(f"{head}‸\n", text).asks("‸\n")
    assert screen.is_tired("dia‸\n", "meter = radius * 2")
    screen.shows("dia‸\n", "meter = radius * 2").asks("diameter = radius * 2‸\n")
    assert not screen.is_tired("diameter = ‸\n", "radius * 2"), "once taken, all is forgotten"
    assert not screen.is_tired("dia‸\n", "meter = radius * 2")


def test_what_is_taken_is_forgotten_at_all_the_places_that_it_was_known_at():
    places = [("diameter = ", "radius * 2 + border"), ("diam", "eter = radius * 2 + border"), ("d", "iameter = radius * 2 + border")]
    screen = Screen(1)
    for head, text in (places[0], places[2]):
        screen.shows(f"{head}‸\n", text).asks(f"{head}!‸\n")
    screen.shows(f"{places[1][0]}‸\n", places[1][1]).asks("diameter = radius * 2 + border‸\n")
    assert not any(screen.is_tired(f"{head}‸\n", text) for head, text in places)


def test_what_is_left_counts_where_it_began():
    screen = Screen(2).contradicts().shows("x = hel‸\n", "lo(1)").asks("x = helx‸\n")
    assert screen.is_tired()


def test_less_of_it_is_the_same_showing():
    screen = Screen(1).shows(PLACE, TEXT).shows(PLACE, "llo").asks("x = hex‸\n")
    assert screen.is_tired()


def test_asking_again_is_no_other_showing():
    screen = Screen(2)
    for _ in range(5):
        screen.shows(PLACE, TEXT)
    assert not screen.asks("x = hex‸\n").is_tired()


def test_a_text_that_was_still_being_made_is_the_same_showing():
    screen = Screen(1).shows("x = ‸\n", "f(").shows("x = f‸\n", "(").shows("x = f‸\n", "(1)").asks("x = fx‸\n")
    assert screen.is_tired("x = ‸\n", "f(1)")


def test_another_text_in_its_place_is_not_the_users_verdict():
    screen = Screen(1).shows(PLACE, TEXT).shows(PLACE, "y()").asks("x = hex‸\n")
    assert not screen.is_tired()
    assert screen.is_tired(text="y()")


@pytest.mark.parametrize("change", ["x = hex‸\n", "x = h‸\n", "x = he‸x\n", "x = he \n‸\n", "‸\n", "x = he(‸)\n"])
def test_every_change_at_the_place_contradicts(change):
    screen = Screen(2)
    for _ in range(2):
        assert not screen.is_tired()
        screen.shows(PLACE, TEXT).asks(change)
    assert screen.is_tired()


@pytest.mark.parametrize(
    ("place", "away"),
    [
        (PLACE, "x =‸ he\n"),
        (PLACE, "x = he\n‸"),
        (f"{LONG}x = he‸\n{LONG}", f"{LONG}x = he\n{LONG}‸"),
        (f"{LONG}x = he‸\n{LONG}", f"lin‸{LONG[3:]}x = he\n{LONG}"),
        (f"{LONG}x = he‸", f"{LONG}x‸ = he"),
        (f"x = he‸\n{LONG}", f"x = he\n{LONG}‸"),
    ],
)
def test_going_away_counts_each_time(place, away):
    screen = Screen(3)
    for _ in range(3):
        assert not screen.is_tired(place)
        screen.shows(place, TEXT).asks(place, away, away)
    assert screen.is_tired(place)


def test_looking_into_another_document_counts_each_time():
    screen = Screen(2)
    for _ in range(2):
        assert not screen.shows(PLACE, TEXT).is_tired()
        for _ in range(2):
            screen.showings.saw(OTHER, at("y‸\n", uri=OTHER))
        screen.asks(PLACE, PLACE)
    assert screen.is_tired()


@pytest.mark.parametrize("gone", [["‸\n"], ["x‸\n"], ["a\n‸\n", "‸\n"], [f"{LONG}‸\n"]], ids=str)
@pytest.mark.parametrize("back", [PLACE, "x = hel‸\n", "x = hello‸\n"])
def test_taking_back_what_led_there_and_typing_it_again_is_another_showing_even_if_nothing_was_asked_between(gone, back):
    screen = Screen(2)
    for _ in range(2):
        assert not screen.is_tired()
        screen.shows(PLACE, TEXT).edits(*gone, PLACE, back).asks(back, back)
    assert screen.is_tired()


@pytest.mark.parametrize(
    ("place", "undone"),
    [("a\nx = he‸\nb\n", "a\n‸b\n"), ("a\n‸\nb\n", "a\n‸b\n"), ("a\n    ‸\nb\n", "a\n‸\nb\n"), ("h‸", "‸"), ("a\r\nx =‸\r\n", "a\r\n‸")],
)
def test_undoing_the_line_ends_a_showing(place, undone):
    screen = Screen(1).shows(place, TEXT).edits(undone, place).asks(place)
    assert screen.is_tired(place)


@pytest.mark.parametrize(
    "edits",
    [
        ["x = hel‸\n", "x = hello‸\n", "x = hel‸\n"],
        ["x = h‸\n"],
        ["x = ‸\n", "x = h‸\n"],
        ["x = helx‸\n", "x = hel‸\n"],
        ["x = he‸\n\ny\n", "x = he‸\n"],
        ["import os\nx = he‸\n", "x = he‸\n"],
    ],
    ids=str,
)
def test_a_corrected_letter_or_two_and_an_edit_elsewhere_end_nothing(edits):
    screen = Screen(1).shows(PLACE, TEXT).edits(*edits)
    assert not screen.asks(PLACE).is_tired()


def test_letters_that_are_taken_back_within_what_was_typed_along_count_nothing():
    screen = Screen(1).shows(PLACE, TEXT).shows("x = hell‸\n", "o(1)").shows("x = he‸\n", TEXT).shows("x = hel‸\n", "lo(1)")
    assert not screen.shows("x = h‸\n", "ello(1)").shows(PLACE, TEXT).is_tired()
    assert screen.asks("x = hex‸\n").is_tired(), "it is the one that began there"


def test_what_was_taken_counts_as_never_shown_although_the_user_was_elsewhere_before_the_next_ask():
    screen = Screen(1)
    for lines in ("x = hello(1)‸\n", "import os\nx = hello(1)‸\n", "x = hello(1) + 2‸\n"):
        screen.shows(PLACE, TEXT).edits(lines).asks(f"{lines.replace('‸', '')}y‸\n")
        assert not screen.is_tired()


@pytest.mark.parametrize(
    ("place", "change"), [("x = he‸", "x = hex‸"), (f"{LONG}x = he‸", f"{LONG}x = hex‸"), (f"‸\n{LONG}", f"z‸\n{LONG}")]
)
def test_an_edit_at_the_start_or_end_of_a_document_contradicts(place, change):
    screen = Screen(2)
    for _ in range(2):
        screen.shows(place, TEXT).asks(change)
    assert screen.is_tired(place)


@pytest.mark.parametrize("taken", ["x = hello(1)‸\n", "x = hello(1) + 2‸\n", "x = hello(1‸)\n"])
def test_what_was_taken_counts_as_never_shown(taken):
    screen = Screen(2).contradicts().shows(PLACE, TEXT).asks(taken, "y‸\n")
    assert not screen.contradicts().is_tired()


def test_a_long_text_can_be_taken_too():
    text = "llo(" + "1, " * 100 + ")"
    screen = Screen(1).shows(PLACE, text).asks(f"x = he{text}‸\n")
    assert not screen.is_tired(text=text)


def test_lines_that_were_taken_are_seen_under_every_line_end():
    screen = Screen(1).shows("x = he‸\r\ny\r\n", "llo(\n    1)").edits("x = hello(\r\n    1)‸\r\ny\r\n")
    assert not screen.asks("‸x = hello(\r\n    1)\r\ny\r\n").is_tired("x = he‸\ny\n", "llo(\n    1)")


def test_what_was_taken_and_undone_is_on_the_screen_no_more():
    screen = Screen(1).shows(PLACE, TEXT).edits("x = hello(1)‸\n", PLACE).asks(PLACE, "x = hex‸\n")
    assert not screen.is_tired()
    screen.shows(PLACE, TEXT).edits("x = hello(1)‸\n", PLACE).shows(PLACE, TEXT).asks("x = hex‸\n")
    assert screen.is_tired(), "it was shown again"


def test_what_the_editor_says_was_taken_counts_as_never_shown():
    screen = Screen(2).contradicts().shows(PLACE, TEXT)
    screen.showings.accepted(URI)
    screen.asks("something else‸\n")
    assert not screen.contradicts().is_tired()


def test_what_comes_behind_an_automatic_closer_belongs_to_it():
    screen = (
        Screen(1).shows("x = ‸\n", "foo(bar) + 1").shows("x = foo(‸)\n", "bar").shows("x = foo(bar)‸\n", " + 1").asks("x = foo(bar)!‸\n")
    )
    assert screen.is_tired("x = ‸\n", "foo(bar) + 1")
    assert screen.is_tired("x = foo(‸)\n", "bar")


def test_one_no_is_enough():
    screen = Screen().shows(PLACE, TEXT).shows("x = hel‸\n", "lo(1)")
    screen.showings.rejected(URI)
    screen.showings.rejected(URI)
    assert screen.is_tired()
    assert screen.is_tired("x = hell‸\n", "o(1)")


def test_a_no_where_nothing_was_shown_says_nothing():
    screen = Screen().shows(PLACE, TEXT).asks("x = hex‸\n")
    screen.showings.rejected(URI)
    assert not screen.is_tired()


@pytest.mark.parametrize("says", ["editor", "text", "editor, then text", "text, then editor"])
def test_undoing_at_once_what_was_taken_is_a_no(says):
    screen = Screen(1).shows(PLACE, TEXT)
    for teller in says.split(", then "):
        if teller == "editor":
            screen.showings.accepted(URI)
        else:
            screen.shows("x = hello(1)‸\n", " + 1")
    screen.asks(PLACE)
    assert screen.is_tired()
    assert not screen.is_tired("x = hello(1)‸\n", " + 1"), "what came after it went with it"


def test_undoing_after_something_else_was_done_is_no_verdict():
    screen = Screen().shows(PLACE, TEXT).asks("x = hello(1)‸\n", "x = hello(1)!‸\n", PLACE)
    assert not screen.is_tired()


def test_taking_back_the_last_letter_that_was_typed_is_no_undo():
    screen = Screen().shows("x = hello(1‸\n", ")").asks("x = hello(1)‸\n", "x = hello(1‸\n")
    assert not screen.is_tired("x = hello(1‸\n", ")")


def test_two_taken_in_a_row_are_both_told():
    screen = Screen().shows(PLACE, TEXT).shows("x = hello(1)‸\n", " + 1")
    screen.showings.accepted(URI)  # of the first; the text was faster
    screen.showings.accepted(URI)
    screen.asks("x = hello(1)‸\n")
    assert screen.is_tired("x = hello(1)‸\n", " + 1")
    assert not screen.is_tired()


def test_nothing_is_ever_known_where_the_setting_is_zero():
    screen = Screen(0).contradicts(5).shows(PLACE, TEXT)
    screen.showings.rejected(URI)
    assert not screen.is_tired()


def test_documents_do_not_meet():
    screen = Screen(1).shows(PLACE, TEXT)
    screen.showings.saw(OTHER, at("y‸\n", uri=OTHER))
    screen.showings.rejected(OTHER)
    assert not screen.is_tired()


def test_a_document_or_all_can_be_forgotten():
    screen = Screen(1).contradicts()
    screen.showings.forget(OTHER)
    assert screen.is_tired()
    screen.shows("a‸\n", "b")
    screen.showings.forget(URI)
    assert not screen.is_tired()
    assert not screen.asks("ax‸\n").is_tired("a‸\n", "b"), "nor is what stood on the screen known"
    screen.contradicts().showings.forget()
    assert not screen.is_tired()


def test_the_oldest_places_make_room():
    screen = Screen(1)
    for n in range(MOST_PLACES + 1):
        screen.shows(f"{n} = ‸\n", "1").asks(f"{n} = x‸\n")
    assert not screen.is_tired("0 = ‸\n", "1")
    assert screen.is_tired("1 = ‸\n", "1")
    assert screen.is_tired(f"{MOST_PLACES} = ‸\n", "1")
    screen.shows("more = ‸\n", "1").asks("more = x‸\n")
    assert screen.is_tired("1 = ‸\n", "1"), "it was asked for"
    assert not screen.is_tired("2 = ‸\n", "1")


STEPS = st.lists(st.tuples(st.sampled_from(["shows", "asks", "accepted", "rejected"]), st.text("he(\n", max_size=4)), max_size=12)


@given(STEPS, st.integers(1, 3))
def test_nobody_is_tired_of_what_was_shown_less_often(steps, most):
    screen, shown = Screen(most), []
    for step, text in steps:
        if step == "shows":
            screen.shows(f"x = {text}‸\n", "made")
            shown.append(text)
        elif step == "asks":
            screen.asks(f"x = {text}‸\n")
        else:
            getattr(screen.showings, step)(URI)
    has_said = any(step in {"accepted", "rejected"} for step, _ in steps)
    for _, text in steps:
        if screen.is_tired(f"x = {text}‸\n", "made"):
            assert text in shown
            assert shown.count(text) >= most or has_said


WHOLE = "llo(1,\n    2)"
ALL = 99
MOVES = st.lists(st.tuples(st.integers(-4, 6), st.booleans()), max_size=12)


def typed(n):
    """The document with the suggestion typed along so far; less than none: letters before its place are gone."""
    return f"import os\n\n\nx = he{WHOLE[:n]}‸\ny\n" if n >= 0 else f"import os\n\n\n{'x = he'[:n]}‸\ny\n"


def goes_along(screen, moves, lowest):
    """Type and take back letters, asking now and then, and at last type all of it."""
    screen.shows(typed(0), WHOLE)
    n = 0
    for move, asks in [*moves, (ALL, True)]:
        to = max(lowest, min(len(WHOLE) - (move < ALL), n + move))
        while n != to:
            n += 1 if to > n else -1
            screen.edits(typed(n))
        if asks:
            screen.asks(typed(n))
            yield n
            if n < len(WHOLE):
                screen.shows(typed(n), f"x = he{WHOLE}"[n + 6 :])


@given(MOVES)
def test_corrections_within_what_is_typed_along_never_count(moves):
    screen = Screen(1)
    for n in goes_along(screen, moves, 0):
        assert not screen.is_tired(typed(n), WHOLE[n:])


@given(MOVES)
def test_what_is_typed_along_to_its_end_counts_as_never_shown_whatever_was_done_before(moves):
    screen = Screen(1)
    for _ in goes_along(screen, moves, -6):
        pass
    assert not any(screen.is_tired(typed(n), WHOLE[n:]) for n in range(len(WHOLE)))
