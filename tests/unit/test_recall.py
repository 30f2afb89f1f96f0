"""What is found again, and what must not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Origin, Suggestion
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.table import continues
from tests.unit.places import URI, at


def recall(**more):
    return Recall(Memory(**({"most_bytes": 1 << 20, "ttl_s": 300} | more)))


def kept(marked, text, scope="s"):
    memory = recall()
    memory.keep(URI, scope, at(marked), Suggestion(text))
    return memory


def test_the_same_place_is_found_again():
    found = kept("he‸\n", "llo()").find(URI, "s", at("he‸\n"))
    assert (found.text, found.origin) == ("llo()", Origin.MEMORY)


def test_typing_along_hits_and_leaving_misses():
    memory = kept("he‸\n", "llo()\n    more()")
    found = memory.find(URI, "s", at("hel‸\n"))
    assert (found.text, found.origin) == ("lo()\n    more()", Origin.TYPED_THROUGH)
    assert memory.find(URI, "s", at("hello()\n    m‸\n")).text == "ore()"
    assert memory.find(URI, "s", at("hex‸\n")) is None
    assert memory.find(URI, "s", at("hello()\n    more()‸\n")) is None, "nothing is left to show"


@pytest.mark.parametrize(
    "other", ["if not user.active:\n    ‸", "if user.inactive:\n    ‸", "if user.active:\n    ‸\nx", "if user.active :\n    ‸"]
)
def test_a_place_that_differs_is_another_place(other):
    assert kept("if user.active:\n    ‸", "enable(user)").find(URI, "s", at(other)) is None


def test_another_scope_or_language_is_another_place():
    memory = kept("KEY = ‸", '"a-secret"')
    assert memory.find(URI, "other workspace", at("KEY = ‸")) is None
    assert memory.find("file:///w/b.rb", "s", at("KEY = ‸", language="ruby")) is None


def test_the_same_text_in_another_document_of_the_scope_is_found():
    assert kept("a‸", "b").find("file:///w/other.py", "s", at("a‸", uri="file:///w/other.py")).text == "b"


def test_empty_text_is_not_kept():
    assert kept("a‸", "").find(URI, "s", at("a‸")) is None


def test_old_entries_are_gone():
    now = [0.0]
    memory = recall(ttl_s=10, clock=lambda: now[0])
    memory.keep(URI, "s", at("a‸"), Suggestion("b"))
    memory.forget(URI)
    now[0] = 11
    assert memory.find(URI, "s", at("a‸")) is None


def test_memory_is_bounded_by_bytes():
    memory = Memory(most_bytes=10_000, ttl_s=300)
    for n in range(1_000):
        memory.put(n.to_bytes(4, "big"), Suggestion("x" * 100))
    assert 0 < len(memory) <= 10_000 // 600 + 1
    assert memory.get((999).to_bytes(4, "big")) is not None
    assert memory.get((0).to_bytes(4, "big")) is None


@given(st.text("ab\n(", max_size=30), st.text("ab\n(", min_size=1, max_size=30), st.integers(0, 30), st.text("ab\n(", max_size=5))
def test_what_continues_is_exactly_what_was_not_typed_yet(prefix, text, n, other):
    then, now = at(prefix + "‸"), at(prefix + text[:n] + other + "‸")
    rest = continues(then, text, now)
    typed = text[:n] + other
    if text.startswith(typed):
        assert rest is not None
    if rest is not None:
        assert (prefix + text) == now.prefix + rest
