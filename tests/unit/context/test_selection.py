from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import enclosing, selection, similar, snippets
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.context.selection import NONE, Selection, choose
from monkeycode_lsp.domain import Snippet, Window

BUDGET = 400.0
EMPTY = Window("", "", "python", "here.py")


def at(line: int, uri: str = "u") -> Place:
    return Place(uri, "python", "here.py", line, max(0, line - 90), line + 20)


def snippet(name: str, kind: str = "definition", score: float = 0.8, n: int = 6, path: str = "") -> Snippet:
    text = "\n".join(f"{name}_{line} = {name}_factory({line})" for line in range(n))
    return msgspec.convert({"path": path or f"{name}.py", "text": text, "kind": kind, "score": score}, Snippet)


def take(
    previous: Selection,
    candidates: Iterable[Snippet],
    line: int = 0,
    window: Window = EMPTY,
    budget: float = BUDGET,
    *,
    uri: str = "u",
    changed: Iterable[str] = (),
    explicit: bool = False,
) -> Selection:
    return choose(previous, lambda: candidates, window, at(line, uri), budget, changed=frozenset(changed), explicit=explicit)


A, B, C, D = (snippet(name) for name in ("alpha", "beta", "gamma", "delta"))
LARGE = snippet("large", n=60)


def test_the_first_choice_is_the_best_that_fits_the_most_stable_first() -> None:
    edit, like, own = snippet("edit", "edit"), snippet("like", "similar"), snippet("own", "own")
    chosen = take(NONE, [edit, like, A, own])
    assert chosen.snippets == (own, A, like, edit)
    assert sum(map(snippets.cost, take(NONE, [LARGE, A, B, C, D]).snippets)) <= BUDGET


def test_what_one_snippet_of_a_file_says_is_not_said_by_another() -> None:
    shared = [f"shared_{n} = make_shared({n})" for n in range(4)]
    rest = [f"other_{n} = make_other_thing({n}, {n})" for n in range(9)]
    whole = Snippet("lib.py", "\n".join([*rest[:2], *shared, *rest[2:]]), kind="similar", score=1.0)
    known = Snippet("lib.py", "\n".join(shared), kind="definition", score=1.0)
    chosen = take(NONE, [known, whole], budget=800.0)
    assert [one.text.split("\n") for one in chosen.snippets] == [shared, rest[2:]]
    mostly = Snippet("lib.py", "\n".join([*shared[:2], rest[0], *shared[2:]]), kind="edit", score=1.0)
    assert take(NONE, [known, mostly], budget=800.0).snippets == (known,)
    elsewhere = msgspec.structs.replace(whole, path="more.py")
    assert take(NONE, [known, elsewhere], budget=800.0).snippets == (known, elsewhere)


def test_a_line_that_reads_the_same_is_no_repetition() -> None:
    one = Snippet("lib.py", "def one(value):\n    return value.result\n", kind="definition", score=1.0)
    two = Snippet("lib.py", "def two(value, more):\n    value.add(more, 2)\n    return value.result\n", kind="definition", score=0.9)
    assert take(NONE, [one, two], budget=800.0).snippets == (one, two)


def test_within_a_line_nothing_changes_and_candidates_are_not_even_looked_for() -> None:
    first = take(NONE, [A, B])

    def never() -> Sequence[Snippet]:
        raise AssertionError

    assert choose(first, never, EMPTY, at(0), BUDGET) is first


def test_additions_go_to_the_end() -> None:
    own = snippet("own", "own", 1.0)
    first = take(NONE, [A])
    assert take(first, [own, A], 20).snippets == (A, own)


def test_an_addition_waits_until_a_change_is_due() -> None:
    current = take(take(NONE, [A]), [A, B], 10)
    assert current.snippets == (A, B)
    lines = [line for line in range(11, 30) if (current := take(current, [A, B, C], line)).snippets == (A, B)]
    assert lines == list(range(11, 20))
    assert current.snippets == (A, B, C)


def test_what_was_not_ready_at_first_comes_with_the_next_line() -> None:
    assert take(take(NONE, []), [A], 1).snippets == (A,)


def test_an_explicit_ask_may_bring_something_new_within_a_line() -> None:
    first = take(NONE, [A])
    assert take(first, [A, B], explicit=True).snippets == (A, B)
    assert take(first, [A], explicit=True).snippets == first.snippets


def test_what_is_hardly_better_does_not_replace() -> None:
    several = [snippet(name, score=0.6, n=9) for name in ("one", "two", "three")]
    budget = sum(map(snippets.cost, several)) + 5
    full = take(NONE, several, budget=budget)
    assert len(full.snippets) == 3
    more = [*(one.source for one in full.chosen), snippet("four", score=0.7, n=9)]
    assert take(full, more, 20, budget=budget).snippets == full.snippets
    better = [*(one.source for one in full.chosen), snippet("four", score=1.0, n=9)]
    replaced = take(full, better, 20, budget=budget).snippets
    assert replaced[-1] == better[-1]
    assert replaced[:2] == full.snippets[:2]


def test_an_addition_of_little_worth_is_not_worth_reading_the_window_anew() -> None:
    first = take(NONE, [A])
    assert take(first, [A, snippet("little", "similar", 0.3)], 20).snippets == (A,)
    assert len(take(first, [A, snippet("more", "similar", 0.9)], 20).snippets) == 2


def test_what_stays_keeps_its_order_and_its_place_at_the_beginning() -> None:
    several = [snippet(name, score=score, n=9) for name, score in (("one", 0.4), ("two", 0.9), ("three", 0.5), ("four", 0.6))]
    budget = sum(map(snippets.cost, several)) + 5
    first = take(NONE, several, budget=budget)
    best = snippet("best", score=1.0, n=9)
    assert take(first, [best, *several], 20, budget=budget).snippets == (*first.snippets[:-1], best)


def test_what_is_no_candidate_any_more_stays_as_long_as_nothing_needs_its_room() -> None:
    assert take(take(NONE, [A, B]), [B], 20).snippets == (A, B)


def test_a_text_that_went_stale_goes_at_once() -> None:
    first = take(NONE, [A, B])
    newer = msgspec.structs.replace(A, text=A.text.replace("alpha_0", "changed"))
    stale = take(first, [newer, B], changed=[A.path])
    assert stale.snippets == (B, newer)
    assert take(first, [A, B], changed=[A.path]).snippets == (A, B)


def test_what_the_window_has_come_to_show_goes() -> None:
    first = take(NONE, [A, B])
    assert take(first, [A, B], 1, Window(A.text, "", "python", "here.py")).snippets == (B,)


def test_the_heads_of_another_function_replace_those_of_the_one_before() -> None:
    one, other = snippet("one", "own", path="here.py"), snippet("other", "own", path="here.py")
    assert take(take(NONE, [one, A]), [other, A], 1).snippets == (A, other)


def test_at_another_place_and_in_another_document_the_choice_is_free() -> None:
    first = take(NONE, [A, B])
    assert take(first, [C, D], 500).snippets[-2:] == (C, D)
    assert take(first, [C, D], uri="v").snippets == (C, D)
    assert take(first, [A, C], budget=100).snippets != first.snippets


def test_going_to_and_fro_between_two_functions_does_not_change_it_each_time() -> None:
    current = take(NONE, [A, B, C])
    seen = set()
    for turn in range(20):
        current = take(current, [A, B, C] if turn % 2 else [B, C, D], 15 * (turn % 2))
        seen.add(current.snippets)
    assert len(seen) <= 2


def test_no_budget_is_no_snippets() -> None:
    assert take(NONE, [A], budget=0).snippets == ()
    assert take(take(NONE, [A]), [A], budget=0).snippets == ()


def changes(selections: Sequence[Selection]) -> int:
    return sum(one.snippets != other.snippets for one, other in pairwise(selections))


@pytest.mark.parametrize("seed", range(4))
def test_typing_40_lines_while_scores_swing_changes_it_once_in_10_lines_at_most(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - for scores of a test
    current = NONE
    history: list[Selection] = []
    for line in range(40):
        pool = [snippet(f"name{n}", chance.choice(["definition", "similar", "edit"]), chance.random(), n=8) for n in range(20)]
        within = []
        for _letter in range(8):
            current = take(current, chance.sample(pool, 12), line)
            within.append(current)
        assert changes(within) == 0
        history += within
    assert changes(history) <= 4


@given(st.lists(st.tuples(st.integers(0, 120), st.sets(st.integers(0, 11), max_size=12)), max_size=30), st.floats(0, 600))
def test_it_never_breaks_the_budget_nor_says_a_thing_twice(asks: list[tuple[int, set[int]]], budget: float) -> None:
    pool = [snippet(f"name{n}", ["definition", "similar", "edit", "own"][n % 4], n / 12, n=4 * n + 2) for n in range(12)]
    current = NONE
    for line, which in asks:
        current = take(current, [pool[n] for n in which], line, budget=budget)
        assert sum(map(snippets.cost, current.snippets)) <= budget + 1e-6
        assert len({one.text for one in current.snippets}) == len(current.snippets)


def test_typing_real_code_with_everything_that_is_gathered() -> None:
    """Each letter of 40 lines of a module, with its siblings open."""
    folder = Path(selection.__file__).parent
    documents = [
        similar.chunked(path.name, 1, path.name, "python", path.read_text("utf-8").splitlines())
        for path in sorted(folder.glob("*.py"))
        if path.name != "similar.py"
    ]
    text = Path(similar.__file__).read_text("utf-8").splitlines(keepends=True)
    first = len(text) - 60
    current, history = NONE, []
    for line in range(first, first + 40):
        lines = [*text[: line + 1], *text[first + 40 :]]
        place = Place("u", "python", "similar.py", line, line - 60, line + 15)
        for column in range(0, len(lines[line]), 3):
            window = Window(
                "".join(lines[place.first : line]) + lines[line][:column], "".join(lines[line + 1 : place.stop]), "python", "similar.py"
            )

            def candidates(window: Window = window, place: Place = place, lines: list[str] = lines) -> list[Snippet]:
                return [*similar.find(similar.query(window), documents, place), *enclosing.own(lines, place)]

            before, current = current, choose(current, candidates, window, place, 512)
            assert column == 0 or current is before
        history.append(current)
    assert history[0].snippets
    assert changes(history) <= 4


def test_what_is_no_candidate_any_more_fades_with_each_line_and_gives_way() -> None:
    several = [snippet(name, score=0.9, n=9) for name in ("one", "two", "three")]
    budget = sum(map(snippets.cost, several)) + 5
    first = take(NONE, several, budget=budget)
    newer = [snippet(name, score=0.75, n=9) for name in ("four", "five", "six")]
    assert take(first, newer, 5, budget=budget).snippets == first.snippets
    assert set(take(first, newer, 30, budget=budget).snippets) <= set(newer)


def test_far_away_less_of_a_gain_is_worth_a_change() -> None:
    first = take(NONE, [A])
    little = snippet("little", "similar", 0.3)
    assert take(first, [A, little], selection.FAR_LINES - 1).snippets == (A,)
    assert take(first, [A, little], selection.FAR_LINES + 1).snippets == (A, little)


@pytest.mark.parametrize("kind", ["definition", "own", "edit", "similar"])
def test_no_snippet_takes_more_than_its_share_of_the_budget(kind: str) -> None:
    (large,) = take(NONE, [snippet("large", kind, n=60)]).snippets
    assert snippets.cost(large) <= snippets.LARGEST_SHARE[kind] * BUDGET + snippets.frame(large)
    assert snippets.cost(large) > 0.5 * snippets.LARGEST_SHARE[kind] * BUDGET
