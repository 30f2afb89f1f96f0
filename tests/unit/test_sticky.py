"""The sticky suffix: when the one sent last may stand for the true one."""

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import sticky
from monkeycode_lsp.context.sticky import Sticky, close, distance

LINES = "".join(f"value_{n} = compute({n})\n" for n in range(40))


def edits(one, other):
    """Levenshtein's distance, the plain way."""
    row = list(range(len(other) + 1))
    for n, left in enumerate(one, 1):
        before, row[0] = row[0], n
        for m, right in enumerate(other, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (left != right))
    return row[-1]


@given(st.text("ab", max_size=12), st.text("ab", max_size=12), st.integers(0, 12))
def test_the_distance_is_levenshteins_or_more_than_asked(one, other, most):
    true = edits(one, other)
    assert distance(one, other, most=most) == (true if true <= most else None)


def test_a_word_changed_far_below_keeps_what_was_sent():
    kept = Sticky()
    first = "\n" + LINES
    changed = first.replace("value_30", "total_30")
    assert kept.suffix("a", first) == first
    assert kept.suffix("a", changed) == first
    assert kept.suffix("b", changed) == changed  # another document


def test_many_small_changes_do_not_creep_away_from_the_true_one():
    kept = Sticky()
    lines = LINES.splitlines(keepends=True)
    n_sent = 0
    sent = kept.suffix("a", "\n" + "".join(lines))
    for n in range(200):
        lines[2 + n * 7 % (len(lines) - 2)] = f"other_{n} = 1\n"
        true = "\n" + "".join(lines)
        now = kept.suffix("a", true)
        n_sent += now != sent
        sent = now
        assert close(sent, true)
    assert 5 < n_sent < 60


def test_what_stands_behind_the_cursor_is_never_kept():
    kept = Sticky()
    kept.suffix("a", ")\n" + LINES)
    assert kept.suffix("a", "\n" + LINES) == "\n" + LINES
    below = LINES[LINES.index("\n") :]
    assert kept.suffix("a", below) == below


def test_a_suffix_of_a_word_or_none_is_never_kept():
    kept = Sticky()
    assert [kept.suffix("a", text) for text in ("", "x", "y", "")] == ["", "x", "y", ""]


def test_documents_that_are_long_gone_are_forgotten():
    kept = Sticky()
    first = "\n" + LINES
    kept.suffix("a", first)
    for n in range(sticky._MOST_DOCUMENTS):
        kept.suffix(f"other {n}", "x")
    changed = first.replace("value_30", "total_30")
    assert kept.suffix("a", changed) == changed
