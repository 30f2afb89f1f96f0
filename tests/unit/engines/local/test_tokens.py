"""Segments to tokens, over a vocabulary of bytes."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Control, Plain
from monkeycode_lsp.engines.local.batch.tokens import common_prefix, prompt_tokens
from tests.unit.engines.local.toy import CONTROLS, ToyRuntime
from tests.unit.places import at


def test_begin_of_text_comes_once_and_first():
    bos = CONTROLS["<bos>"]
    assert prompt_tokens(ToyRuntime(bos=bos), (Plain("a"),)) == [bos, 97]
    assert prompt_tokens(ToyRuntime(bos=bos), (Control("<bos>"), Plain("a"))) == [bos, 97]
    assert prompt_tokens(ToyRuntime(), (Plain("1, "), Control("<mid>"), Plain(", 5"))).count(bos) == 0


@pytest.mark.parametrize("lead", [(), (Control("<bos>"),)], ids=["a family without one of its own", "a family that begins with it"])
def test_in_the_prompt_of_a_place_begin_of_text_comes_once_and_first(lead):
    # ggml-org/llama.cpp#11092, abetlen/llama-cpp-python#1561
    window = at("1, ‸, 5")
    segments = (*lead, Control("<pre>"), Plain(window.prefix), Control("<mid>"), Plain(window.suffix))
    bos, runtime = CONTROLS["<bos>"], ToyRuntime(bos=CONTROLS["<bos>"])
    tokens = prompt_tokens(runtime, segments)
    assert tokens == [bos, CONTROLS["<pre>"], *b"1, ", CONTROLS["<mid>"], *b", 5"]


def test_an_empty_prompt_still_reads_something():
    assert prompt_tokens(ToyRuntime(), ()) == [0]


def test_plain_text_never_becomes_a_control_token_even_where_the_vocabulary_would_make_it_one():
    runtime = ToyRuntime(words=("<mid>", "<pre>"))
    tokens = prompt_tokens(runtime, (Control("<pre>"), Plain("a<mid>b<pre><mid>"), Control("<mid>")))
    assert tokens == [300, *b"a<mid>b<pre><mid>", 301]


def test_neighbouring_pieces_of_text_are_read_as_one():
    assert prompt_tokens(ToyRuntime(words=("<mid>",)), (Plain("a<m"), Plain("id>b"))) == [97, 301, 98]


def test_the_common_prefix_is_counted_in_tokens():
    assert [common_prefix(*pair) for pair in (([], [1]), ([1, 2], [1, 2, 3]), ([1, 2], [1, 3]), ([1], [2]))] == [0, 2, 1, 0]
