from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import snippets
from monkeycode_lsp.domain import Snippet, Window


def snippet(text: str, path: str = "other.py", kind: str = "similar", score: float = 0.5) -> Snippet:
    return msgspec.convert({"path": path, "text": text, "kind": kind, "score": score}, Snippet)


def passage(name: str, n: int = 10) -> str:
    return "\n".join(f"{name}_{line} = {name}_factory({line})" for line in range(n))


def window(prefix: str = "", suffix: str = "") -> snippets.Seen:
    return snippets.seen(Window(prefix, suffix, "python", "here.py"))


def ranked(*candidates: Snippet, prefix: str = "", suffix: str = "") -> list[Snippet]:
    return [one.snippet for one in snippets.ranked(candidates, window(prefix, suffix))]


def test_definitions_come_before_similar_passages_and_higher_scores_before_lower_ones() -> None:
    definition = snippet(passage("a"), kind="definition", score=0.8)
    first, second = snippet(passage("b"), score=0.9), snippet(passage("c"), score=0.1)
    edit = snippet(passage("d"), kind="edit", score=0.5)
    assert ranked(second, first, edit, definition) == [definition, first, edit, second]


def test_the_same_text_is_quoted_once_from_whichever_file_it_is_worth_more() -> None:
    once, twice = snippet(passage("a"), path="a.py"), snippet(passage("a"), path="b.py", score=0.4)
    assert ranked(twice, once, once) == [once]


def test_nearly_the_same_texts_are_one_and_half_alike_ones_are_two() -> None:
    one = snippet(passage("a", 40))
    assert ranked(one, snippet(passage("a", 40) + "\nlast = 1", score=0.4)) == [one]
    half = snippet(passage("a", 20) + "\n" + passage("b", 20), score=0.4)
    assert ranked(one, half) == [one, half]


def test_texts_of_the_same_words_are_one_though_no_line_is_the_same() -> None:
    one = snippet(passage("a", 40))
    assert ranked(one, snippet(passage("a", 40).replace(" = ", " += "), score=0.4)) == [one]


def test_a_piece_of_another_snippet_is_not_quoted_beside_it() -> None:
    whole = snippet(passage("a", 40))
    assert ranked(snippet(passage("a", 5), path="copy.py", score=0.4), whole) == [whole]


@pytest.mark.parametrize(("n_shown", "kept"), [(0, True), (5, True), (6, False), (10, False)])
def test_what_the_window_shows_for_the_most_part_is_not_quoted(n_shown: int, *, kept: bool) -> None:
    for prefix, suffix in ((passage("a", n_shown), ""), ("", passage("a", n_shown))):
        assert bool(ranked(snippet(passage("a")), prefix=prefix, suffix=suffix)) is kept


def test_empty_texts_are_no_snippets() -> None:
    assert ranked(snippet(""), snippet("\n  \n"), snippet("}\n")) == []


def test_a_snippet_that_fits_is_not_cut() -> None:
    one = snippet(passage("a"))
    assert snippets.fitted(one, snippets.cost(one), window()) is one


def test_of_a_definition_the_head_is_kept_and_cut_at_a_line_end() -> None:
    one = snippet(passage("a", 60), kind="definition")
    cut = snippets.fitted(one, 100, window())
    assert cut is not None
    assert snippets.cost(cut) <= 100
    assert one.text.startswith(cut.text + "\n")


def test_of_the_documents_own_imports_the_last_ones_are_kept() -> None:
    one = snippet("\n".join(f"import module_{n}" for n in range(60)), kind="own")
    cut = snippets.fitted(one, 100, window())
    assert cut is not None
    assert snippets.cost(cut) <= 100
    assert one.text.endswith("\n" + cut.text)


def test_of_a_passage_the_part_that_the_window_is_about_is_kept() -> None:
    one = snippet(passage("a", 30) + "\n\n" + passage("invoice", 8) + "\n\n" + passage("b", 30))
    cut = snippets.fitted(one, 130, window(prefix="invoice_3 = invoice_factory(invoice_1, invoice_2, invoice_4"))
    assert cut is not None
    assert snippets.cost(cut) <= 130
    assert passage("invoice", 8).startswith(cut.text.split("\n\n")[0])


def test_a_cut_is_not_made_of_what_the_window_shows() -> None:
    shown = passage("invoice", 12)
    one = snippet(passage("parcel", 12) + "\n\n" + shown)
    here = window(prefix=shown + "\nparcel_1 = parcel_factory(")
    for budget in range(50, 300, 10):
        cut = snippets.fitted(one, budget, here)
        assert cut is None or "parcel" in cut.text.split("\n")[0]
    assert snippets.fitted(snippet(shown, kind="definition"), 60, here) is None


def test_too_little_is_nothing() -> None:
    assert snippets.fitted(snippet(passage("a", 60)), 20, window()) is None
    assert snippets.fitted(snippet(passage("a", 60)), 0, window()) is None
    assert snippets.fitted(snippet("x" * 5_000_000), 200, window()) is None


def test_worth_is_between_0_and_1_whatever_the_score() -> None:
    assert snippets.worth(snippet("a", score=-3)) == 0
    assert snippets.worth(snippet("a", kind="definition", score=1e9)) == 1


def test_very_many_candidates_are_bounded() -> None:
    assert len(ranked(*(snippet(f"unlike_{n} = {n}{n}") for n in range(500)))) == snippets.MOST_CANDIDATES


def test_of_a_huge_candidate_only_the_beginning_counts() -> None:
    (one,) = ranked(snippet(passage("a", 100_000), kind="definition"), snippet("x" * 5_000_000))
    assert len(one.text) <= snippets.LONGEST
    assert passage("a", 100_000).startswith(one.text + "\n")


def test_lone_surrogates_and_nuls_are_text_like_any_other() -> None:
    odd = snippet("name_\ud800 = \0\nother_\udfff = 1")
    assert ranked(odd) == [odd]
    assert snippets.fitted(odd, 1_000, window("\ud800\0")) == odd


@given(
    st.lists(st.tuples(st.text(max_size=200), st.sampled_from(["definition", "similar", "edit", "own"])), max_size=8),
    st.text(max_size=200),
    st.floats(0, 300),
)
def test_cuts_fit_and_are_runs_of_lines_of_what_was_cut(texts: list[tuple[str, str]], prefix: str, budget: float) -> None:
    here = window(prefix)
    for one in snippets.ranked([snippet(text, kind=kind) for text, kind in texts], here):
        cut = snippets.fitted(one.snippet, budget, here)
        if cut is not None:
            assert snippets.cost(cut) <= budget
            assert cut.text in one.snippet.text


def test_texts_that_have_most_but_not_nearly_all_in_common_are_two() -> None:
    one, other = snippet(passage("a", 40)), snippet(passage("a", 30) + "\n" + passage("b", 10), score=0.4)
    assert ranked(one, other) == [one, other]
