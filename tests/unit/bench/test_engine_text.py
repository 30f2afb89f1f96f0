"""What the engine benchmark asks."""

from __future__ import annotations

from itertools import takewhile

import pytest

from monkeycode_lsp.bench import engine_text
from monkeycode_lsp.prompt.families import FAMILIES

FILES = engine_text.library()
QWEN = next(family for family in FAMILIES if family.name == "qwen2.5-coder")


def test_the_same_number_is_the_same_code():
    assert engine_text.code(FILES, 5, 300) == engine_text.code(FILES, 5, 300)


def test_no_two_numbers_begin_alike():
    texts = [engine_text.code(FILES, number, 100) for number in range(len(FILES) + 3)]
    heads = {text[:12] for text in texts}
    assert len(heads) == len(texts)
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(texts[0], texts[len(FILES)], strict=False))
    assert len(list(shared)) < 12


@pytest.mark.parametrize("n_tokens", [50, 500, 2_000, 20_000])
def test_code_has_about_the_length_asked_for_and_ends_with_a_line(n_tokens):
    text = engine_text.code(FILES, 3, n_tokens)
    assert text.endswith("\n")
    assert 0.8 * n_tokens < len(text) / 4.3 < 1.1 * n_tokens + 10


def test_a_prompt_ends_where_the_model_says_so_and_nowhere_else():
    made = engine_text.ask("x = ", QWEN, max_tokens=7, session="a", draft="1")
    assert (made.stop, made.max_tokens, made.session, made.draft) == ((), 7, "a", "1")
    assert [segment.text for segment in made.segments] == ["<|fim_prefix|>", "x = ", "<|fim_suffix|>", "\n", "<|fim_middle|>"]


def test_a_model_without_insert_tokens_sees_what_stands_before():
    assert [segment.text for segment in engine_text.ask("x = ", None, max_tokens=1).segments] == ["x = "]
