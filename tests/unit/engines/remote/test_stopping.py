from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.remote.stream.stopping import StopStrings


def through(stops: list[str], *pieces: str) -> tuple[str, bool]:
    strings = StopStrings(stops)
    shown = ""
    for piece in pieces:
        text, hit = strings.feed(piece)
        shown += text
        if hit:
            return shown, True
    return shown + strings.rest(), False


def test_text_without_stop_strings_passes_at_once() -> None:
    assert StopStrings(["<|end|>"]).feed("a < b") == ("a < b", False)


def test_a_possible_beginning_is_held_back() -> None:
    strings = StopStrings(["<|end|>"])
    assert strings.feed("x<|e") == ("x", False)
    assert strings.feed("lse") == ("<|else", False)


def test_a_stop_string_over_three_chunks_cuts() -> None:
    assert through(["<|end|>"], "a<|", "en", "d|>b") == ("a", True)


def test_what_was_held_back_is_shown_at_the_end() -> None:
    assert through(["<|end|>"], "a<|") == ("a<|", False)


def test_the_first_of_several_wins() -> None:
    assert through(["\n\n", "b"], "ab\n\n") == ("a", True)


@given(st.lists(st.text("ab<", min_size=1, max_size=4), max_size=3), st.text("ab<", max_size=20), st.data())
def test_cutting_into_chunks_changes_nothing(stops: list[str], text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *cuts, len(text)]
    shown, hit = through(stops, *(text[a:b] for a, b in itertools.pairwise(edges)))
    assert hit == any(stop in text for stop in stops)
    assert text.startswith(shown)
    assert not any(stop in shown for stop in stops)
    if not hit:
        assert shown == text
