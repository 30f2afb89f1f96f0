"""The real llama.cpp with the real model, in this process: tokens, batches and KV caches."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from monkeycode_lsp.domain import Control, Plain, Sampling
from monkeycode_lsp.engines.local.batch.runtime import Row
from monkeycode_lsp.engines.local.batch.tokens import prompt_tokens
from monkeycode_lsp.engines.local.decoder import GenerationError, Options
from monkeycode_lsp.engines.local.wire import Generate
from tests.native.prompts import FIM, FUNCTIONS, PROMPTS

llama_cpp = pytest.importorskip("llama_cpp", reason="needs the native engine")
np = pytest.importorskip("numpy", reason="needs the native engine")
Llama = pytest.importorskip("monkeycode_lsp.engines.local.llama.context", reason="needs the native engine").Llama

pytestmark = [pytest.mark.model, pytest.mark.native]

NEAR = 0.6
"""Logits of one position differ by less than this between batches of different shapes."""


def never():
    return False


def rows(tokens, *, at=0, sequence=0):
    """All of them, the last one wanted."""
    last = len(tokens) - 1
    return [Row(token, at + n, sequence, n == last) for n, token in enumerate(tokens)]


def read(runtime, tokens, *, at=0, sequence=0):
    """Read in chunks; the logits after the last token."""
    for start in range(0, len(tokens), runtime.batch_tokens):
        chunk = rows(tokens[start : start + runtime.batch_tokens], at=at + start, sequence=sequence)
        assert runtime.decode(chunk, never)
    return runtime.logits(len(chunk) - 1).copy()


def likeliest(logits, n=10):
    return np.argpartition(logits, -n)[-n:]


def same(one, other):
    """Whether both are what the model says at one position, but for rounding."""
    top = likeliest(one)
    return float(np.abs(one[top] - other[top]).max()) < NEAR


def greedy(runtime, tokens, n, *, sequence=0):
    """The first `n` tokens of its answer."""
    said = [int(read(runtime, tokens, sequence=sequence).argmax())]
    while len(said) < n and not runtime.ends(said[-1]):
        said.append(int(read(runtime, said[-1:], at=len(tokens) + len(said) - 1, sequence=sequence).argmax()))
    return said


@pytest.fixture(scope="module")
def reference(model_path):
    """llama-cpp-python's own high-level interface, with batches of the same size."""
    reference = llama_cpp.Llama(str(model_path), n_ctx=1024, n_batch=128, n_ubatch=128, n_threads=1, n_threads_batch=1, verbose=False)
    yield reference
    reference.close()


def reference_greedy(reference, tokens, n, ends):
    reference.reset()
    said = []
    for token in reference.generate(tokens, temp=0.0):
        said.append(token)
        if len(said) == n or ends(token):
            break
    return said


@pytest.fixture(scope="module")
def code(llama):
    """Tokens of real code."""
    return llama.tokenize(Path(os.__file__).read_text(encoding="utf-8")[2000:6000])


# Batches


@pytest.mark.parametrize("name", PROMPTS)
def test_greedy_says_what_the_library_itself_says(runtime, reference, name):
    tokens = prompt_tokens(runtime, PROMPTS[name])
    assert greedy(runtime, tokens, 16, sequence=2) == reference_greedy(reference, tokens, 16, runtime.ends)


def test_sequences_side_by_side_say_what_each_says_alone(runtime, code):
    starts = [code[n * 50 : n * 50 + 40 + 3 * n] for n in range(4)]
    alone = [read(runtime, tokens) for tokens in starts if runtime.keep(0, 0)]
    for sequence, tokens in enumerate(starts):
        runtime.keep(sequence, 0)
        read(runtime, tokens[:-1], sequence=sequence)
    last = [Row(tokens[-1], len(tokens) - 1, sequence, wanted=True) for sequence, tokens in enumerate(starts)]
    assert runtime.decode(last, never)
    assert all(same(one, runtime.logits(row)) for row, one in enumerate(alone))
    assert not same(alone[0], alone[1])


def test_every_wanted_row_of_a_batch_has_its_own_logits(runtime, code):
    start, draft = code[:60], code[60:93]
    assert runtime.keep(0, 0)
    one_by_one = [read(runtime, start)]
    one_by_one += [read(runtime, [token], at=60 + n) for n, token in enumerate(draft)]
    read(runtime, start[:-1], sequence=1)
    assert runtime.decode([Row(token, 59 + n, 1, wanted=True) for n, token in enumerate([start[-1], *draft])], never)
    assert all(same(one, runtime.logits(row)) for row, one in enumerate(one_by_one))


def test_a_batch_with_logits_for_every_slots_draft_is_decoded(runtime, code):
    assert runtime.decode([Row(token, n // 4, n % 4, wanted=True) for n, token in enumerate(code[:64])], never)


def test_a_batch_that_would_end_the_process_is_refused(runtime, code):
    for n_tokens in (0, 65, 129):
        with pytest.raises(GenerationError) as caught:
            runtime.decode([Row(token, n, 0, wanted=n_tokens == 65) for n, token in enumerate(code[:n_tokens])], never)
        assert caught.value.kind == "internal"


def test_after_a_batch_with_a_gap_the_context_is_usable(runtime, code):
    fresh = read(runtime, code[:40])
    with pytest.raises(GenerationError) as caught:
        runtime.decode(rows(code[:3], at=300), never)
    assert caught.value.kind == "decode"
    runtime.keep(0, 0)
    assert (read(runtime, code[:40]) == fresh).all()


def test_a_full_cache_is_said_in_words_and_the_others_go_on(model_path, code):
    small = Llama(Options(model=model_path, context_tokens=256, slots=2, threads=1))
    read(small, code[:256])
    with pytest.raises(GenerationError, match="no room"):
        small.decode(rows(code[256:258], at=256), never)
    assert small.decode(rows(code[:3], sequence=1), never)
    small.close()


# KV caches


def test_what_was_cut_off_leaves_no_trace(runtime, code):
    fresh = read(runtime, code[:100])
    assert runtime.keep(0, 60)
    read(runtime, code[200:240], at=60)
    assert runtime.keep(0, 60)
    assert same(fresh, read(runtime, code[60:100], at=60))


def test_a_saved_state_goes_on_in_any_sequence_without_a_decode_between(runtime, code):
    fresh = read(runtime, code[:150])
    assert runtime.keep(0, 149)
    state = runtime.save(0)
    read(runtime, code[300:350], sequence=3)
    runtime.keep(0, 0)
    assert runtime.restore(3, state)
    assert runtime.restore(1, runtime.save(3))
    for sequence in (1, 3):
        assert same(fresh, read(runtime, code[149:150], at=149, sequence=sequence))
    assert runtime.keep(1, 100)
    assert same(fresh, read(runtime, code[100:150], at=100, sequence=1))


def test_a_state_that_is_of_no_use_leaves_the_sequence_empty(runtime, code):
    fresh = read(runtime, code[:50])
    state = runtime.save(0)
    for broken in (b"", b"\0" * 64, os.urandom(5000), state[:-1], state[: len(state) // 2]):
        assert not runtime.restore(0, broken)
        assert (read(runtime, code[:50]) == fresh).all()


def test_other_sequences_do_not_notice(runtime, code):
    fresh = read(runtime, code[:80], sequence=1)
    runtime.keep(1, 79)
    read(runtime, code[100:150])
    state = runtime.save(0)
    runtime.keep(0, 0)
    runtime.restore(2, state)
    runtime.restore(0, b"nonsense")
    assert same(fresh, read(runtime, code[79:80], at=79, sequence=1))


# Stopping


def test_a_stop_inside_a_prompt_keeps_what_was_read_before(runtime, code):
    fresh = read(runtime, code[:200])
    runtime.keep(0, 72)
    n_asked = 0

    def soon():
        nonlocal n_asked
        n_asked += 1
        return n_asked > 3

    assert not runtime.decode(rows(code[72:200], at=72), soon)
    assert runtime.keep(0, 72)
    assert same(fresh, read(runtime, code[72:200], at=72))


def test_a_stop_with_several_sequences_in_the_batch_is_cut_back_in_each(runtime, code):
    starts = [code[n * 60 : n * 60 + 50] for n in range(4)]
    fresh = []
    for sequence, tokens in enumerate(starts):
        fresh.append(read(runtime, tokens, sequence=sequence))
        runtime.keep(sequence, 20)
    batch = [row for sequence, tokens in enumerate(starts) for row in rows(tokens[20:], at=20, sequence=sequence)]
    for n_polls in (0, 1, 8, 40):
        asked = iter([False] * n_polls)
        if runtime.decode(batch, lambda asked=asked: next(asked, True)):
            pytest.skip("the machine is too fast for this")
        for sequence, tokens in enumerate(starts):
            assert runtime.keep(sequence, 20)
            assert same(fresh[sequence], read(runtime, tokens[20:], at=20, sequence=sequence))
            runtime.keep(sequence, 20)


def test_whether_to_stop_is_asked_often_but_not_at_every_node(runtime, code):
    read(runtime, code[:20])
    n_asked = 0

    def count():
        nonlocal n_asked
        n_asked += 1
        return False

    began = time.perf_counter()
    assert runtime.decode(rows(code[20:21], at=20), count)
    assert 1 <= n_asked <= (time.perf_counter() - began) / 0.0005 + 1


def test_a_stop_does_not_outlive_its_batch_and_is_no_error_in_the_log(runtime, code, caplog):
    assert not runtime.decode(rows(code[:100]), lambda: True)
    assert not caplog.records
    runtime.keep(0, 0)
    assert runtime.decode(rows(code[:5]), never)
    with pytest.raises(GenerationError):
        runtime.decode(rows(code[:5], at=300), never)
    assert caplog.records


# Tokens


def test_text_that_looks_like_a_control_token_is_plain_text(runtime):
    marker = runtime.control("<|fim_middle|>")
    tokens = prompt_tokens(runtime, (Control("<|fim_prefix|>"), Plain("a <|fim_middle|> b <|endoftext|>"), Control("<|fim_middle|>")))
    assert tokens.count(marker) == 1
    assert tokens[-1] == marker
    assert b"".join(runtime.piece(token) for token in tokens) == b"a <|fim_middle|> b <|endoftext|>"


def test_control_tokens_have_no_text_and_end_an_answer(runtime):
    for text in ("<|fim_prefix|>", "<|fim_middle|>", "<|endoftext|>", "<|im_end|>"):
        token = runtime.control(text)
        assert runtime.piece(token) == b""
        assert runtime.ends(token)
    assert not runtime.ends(runtime.tokenize("x")[0])


def test_a_control_token_that_the_vocabulary_lacks_is_refused(runtime):
    for text in ("<PRE>", "def", "x", ""):
        with pytest.raises(GenerationError) as caught:
            runtime.control(text)
        assert caught.value.kind == "template"


def test_begin_of_text_comes_at_most_once_where_a_model_wants_it(runtime):
    bos = runtime.control("<|endoftext|>")
    assert bos not in prompt_tokens(runtime, FIM)
    runtime.bos = bos
    try:
        assert prompt_tokens(runtime, FIM).count(bos) == 1
        assert prompt_tokens(runtime, FIM)[0] == bos
        assert prompt_tokens(runtime, (Control("<|endoftext|>"), *FIM)).count(bos) == 1
    finally:
        runtime.bos = None


def test_the_tokens_of_any_text_are_that_text(runtime):
    for text in ("", " ", "\n", "  x\n\ty  ", "é漢😀\u2028\x0c", "a" * 500, "x\x00y"):
        assert b"".join(map(runtime.piece, runtime.tokenize(text))) == text.encode()


def test_a_lone_surrogate_does_no_harm(runtime):
    assert b"".join(map(runtime.piece, runtime.tokenize("x = '\ud800'"))) == b"x = '?'"


def test_the_tokens_that_fit_a_beginning_spell_it(runtime):
    fitting = runtime.fitting(b"pri")
    pieces = {runtime.piece(token) for token in fitting}
    assert {b"p", b"pr", b"pri", b"print"} <= pieces
    assert all(piece.startswith(b"pri") or b"pri".startswith(piece) for piece in pieces)
    assert not any(map(runtime.ends, fitting))
    assert runtime.fitting("漢字".encode())


def test_the_model_tells_what_it_is(runtime):
    ready = runtime.describe()
    assert (ready.markers.prefix, ready.markers.middle, ready.markers.suffix) == ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
    assert (ready.architecture, ready.context_tokens, ready.add_bos, ready.n_slots) == ("qwen2", 1024, False, 4)
    assert (ready.n_gpu_layers > 0) == ready.on_gpu


# Memory


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_over_samplers_and_restored_states(runtime):
    ask = Generate(1, (), sampling=Sampling(temperature=0.7, top_p=0.9, repeat_penalty=1.1, seed=1), grammar="root ::= [a-z ]+")
    read(runtime, runtime.tokenize(FUNCTIONS)[:100])

    def work(n):
        for _ in range(n):
            sampler = runtime.sampler(ask)
            sampler.close()
            sampler.close()
            assert runtime.restore(1, runtime.save(0))

    work(50)
    before = resident_bytes()
    work(300)
    assert resident_bytes() - before < 16 * 1024 * 1024


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
