"""The real llama.cpp with the real model, in this process."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Control, Plain
from monkeycode_lsp.engines.local.decoder import GenerationError, LoadError, Options
from monkeycode_lsp.engines.local.sequence import prompt_tokens
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate

llama_cpp = pytest.importorskip("llama_cpp")
llama = pytest.importorskip("monkeycode_lsp.engines.local.llama")

pytestmark = [pytest.mark.model, pytest.mark.native]

FIM = (
    Control("<|fim_prefix|>"),
    Plain("def is_even(n):\n    return "),
    Control("<|fim_suffix|>"),
    Plain("\n\nprint(is_even(4))\n"),
    Control("<|fim_middle|>"),
)
PROMPTS = {
    "fill in the middle": FIM,
    "prefix only": (Plain("import os\n\ndef read(path):\n    with open(path) as f:\n        return "),),
    "go": (Plain('package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\t'),),
    "not ASCII": (Plain("# Die Straße heißt „Größe“ 😀漢字\nname = '"),),
    "several chunks": (Plain("".join(f"def f{n}(x):\n    return x + {n}\n\n" for n in range(20)) + "def f20(x):\n    return "),),
}


def never():
    return False


@pytest.fixture(scope="module")
def runtime(model_path):
    decoder = llama.LlamaDecoder(Options(model=model_path, context_tokens=1024, threads=1))
    decoder.build()
    decoder.load()
    yield decoder._llama
    decoder.close()


@pytest.fixture
def sequence(runtime):
    """A sequence that holds nothing."""
    runtime.keep(0)
    return llama.KvSequence(runtime)


def answer(sequence, segments, is_cancelled=never, **more):
    events = list(sequence.generate(Generate(1, segments, **{"max_tokens": 16, **more}), is_cancelled))
    assert all(isinstance(event, Delta) for event in events[:-1])
    assert isinstance(events[-1], Done)
    return "".join(event.text for event in events[:-1]), events[-1]


@pytest.fixture(scope="module")
def reference(model_path):
    """llama-cpp-python's own high-level interface, with batches of the same size."""
    reference = llama_cpp.Llama(str(model_path), n_ctx=1024, n_batch=128, n_ubatch=128, n_threads=1, n_threads_batch=1, verbose=False)
    yield reference
    reference.close()


def greedy(reference, tokens, n):
    """The first `n` tokens of its own greedy answer."""
    reference.reset()
    said = []
    for token in reference.generate(tokens, temp=0.0):
        if token in {reference.token_eos(), reference.token_bos()} or len(said) == n:
            return said
        said.append(token)
    return said


@pytest.mark.parametrize("name", PROMPTS)
def test_greedy_says_what_the_library_itself_says(sequence, runtime, reference, name):
    segments = PROMPTS[name]
    expected = b"".join(runtime.piece(token) for token in greedy(reference, prompt_tokens(runtime, segments), 16))
    text, _ = answer(sequence, segments)
    assert text
    assert expected.decode("utf-8", errors="ignore").startswith(text)


def test_what_stands_in_the_cache_never_changes_an_answer(sequence, runtime):
    source = "".join(f"def f{n}(x):\n    return x + {n}\n\n" for n in range(12))
    for at in (251, 40, 333, 120):
        segments = (Plain(source[:at]),)
        warm, done = answer(sequence, segments, max_tokens=8)
        assert done.reused + done.read == len(prompt_tokens(runtime, segments))
        runtime.keep(0)
        cold, _ = answer(llama.KvSequence(runtime), segments, max_tokens=8)
        assert warm == cold
        runtime.keep(0)
        sequence = llama.KvSequence(runtime)
        answer(sequence, (Plain(source[: at // 2] + "# edited"),), max_tokens=8)


def test_one_letter_more_reads_a_few_tokens(sequence):
    text = "".join(f"value_{n} = compute({n})\n" for n in range(40)) + "resu"
    _, cold = answer(sequence, (Plain(text),))
    assert cold.reused == 0
    _, warm = answer(sequence, (Plain(text + "l"),))
    assert warm.read <= 3
    assert warm.reused >= cold.read - 3


def test_a_cancel_inside_the_prompt_keeps_the_finished_chunks(sequence, runtime):
    segments = (Plain("".join(f"value_{n} = compute({n})\n" for n in range(60))),)
    n_tokens = len(prompt_tokens(runtime, segments))
    assert n_tokens > 400
    polls = 0

    def in_the_middle():
        nonlocal polls
        polls += 1
        return polls > 1500  # each chunk polls once per graph node, about 950 times

    text, done = answer(sequence, segments, in_the_middle)
    assert (text, done.finish) == ("", "cancelled")
    assert 0 < done.read < n_tokens
    assert done.read % runtime.chunk_tokens == 0
    warm, again = answer(sequence, segments)
    assert (again.reused, again.read) == (done.read, n_tokens - done.read)
    runtime.keep(0)
    assert warm == answer(llama.KvSequence(runtime), segments)[0]


def test_a_cancel_while_writing_leaves_a_usable_cache(sequence, runtime):
    polls = 0

    def soon():
        nonlocal polls
        polls += 1
        return polls > 2500

    _, done = answer(sequence, FIM, soon, max_tokens=200)
    assert done.finish == "cancelled"
    after, _ = answer(sequence, FIM)
    runtime.keep(0)
    assert after == answer(llama.KvSequence(runtime), FIM)[0]


def test_the_answer_to_a_hole_is_code_and_holds_no_control_token(sequence):
    text, done = answer(sequence, FIM, stop=("\n",))
    assert (text, done.finish) == ("n % 2 == 0", "stop")


def test_the_end_of_the_answer_is_not_text(sequence):
    text, done = answer(
        sequence,
        (Control("<|fim_prefix|>"), Plain("x = ("), Control("<|fim_suffix|>"), Plain(")\n"), Control("<|fim_middle|>")),
        max_tokens=64,
    )
    assert "<|" not in text
    assert done.generated <= 64


def test_text_that_looks_like_a_control_token_is_plain_text(runtime):
    marker = runtime.control("<|fim_middle|>")
    tokens = prompt_tokens(runtime, (Control("<|fim_prefix|>"), Plain("a <|fim_middle|> b <|endoftext|>"), Control("<|fim_middle|>")))
    assert tokens.count(marker) == 1
    assert tokens[-1] == marker
    assert b"".join(runtime.piece(token) for token in tokens) == b"a <|fim_middle|> b <|endoftext|>"


def test_a_control_token_that_the_vocabulary_lacks_is_refused(runtime):
    for text in ("<PRE>", "def", "x", ""):
        with pytest.raises(GenerationError) as caught:
            runtime.control(text)
        assert caught.value.kind == "template"


def test_the_markers_come_from_the_vocabulary(runtime):
    described = runtime.describe()
    assert (described.markers.prefix, described.markers.middle, described.markers.suffix) == (
        "<|fim_prefix|>",
        "<|fim_middle|>",
        "<|fim_suffix|>",
    )
    assert (described.architecture, described.context_tokens, described.add_bos) == ("qwen2", 1024, False)


def test_begin_of_text_comes_at_most_once_where_a_model_wants_it(runtime):
    bos = runtime.control("<|endoftext|>")
    runtime.bos = bos
    try:
        assert prompt_tokens(runtime, FIM).count(bos) == 1
        assert prompt_tokens(runtime, FIM)[0] == bos
        assert prompt_tokens(runtime, (Control("<|endoftext|>"), *FIM)).count(bos) == 1
    finally:
        runtime.bos = None
    assert bos not in prompt_tokens(runtime, FIM)


def test_a_lone_surrogate_and_a_null_character_do_no_harm(sequence):
    text, _ = answer(sequence, (Plain("x = '\ud800\x00' + "),), max_tokens=4)
    assert text


def test_the_tokens_of_any_text_are_that_text(runtime):
    for text in ("", " ", "\n", "  x\n\ty  ", "é漢😀\u2028\x0c", "a" * 500):
        assert b"".join(map(runtime.piece, runtime.tokenize(text))) == text.encode()


def test_the_likeliest_token_has_a_probability(sequence):
    events = list(sequence.generate(Generate(1, FIM, max_tokens=8, stop=("\n",)), never))
    logprobs = [event.logprob for event in events[:-1]]
    assert all(-20 < one <= 0 for one in logprobs)
    assert max(logprobs) > -0.1


def test_a_prompt_over_the_window_is_refused_with_the_limit(sequence):
    with pytest.raises(GenerationError) as caught:
        answer(sequence, (Plain("word " * 2000),))
    assert (caught.value.kind, caught.value.limit_tokens) == ("overflow", 1024)


def test_without_extra_buffers_the_answer_is_code_too(model_path):
    decoder = llama.LlamaDecoder(Options(model=model_path, context_tokens=256, extra_buffers=False, mmap=False))
    decoder.build()
    decoder.load()
    events = list(decoder.generate(Generate(1, FIM, max_tokens=16, stop=("\n",)), never))
    decoder.close()
    assert "".join(event.text for event in events[:-1]) == "n % 2 == 0"


def test_a_broken_file_is_a_load_error_with_what_the_library_says(tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\x03" * 64)
    decoder = llama.LlamaDecoder(Options(model=path))
    decoder.build()
    with pytest.raises(LoadError) as caught:
        decoder.load()
    assert caught.value.kind == "model"
    assert len(caught.value.message) > len("llama.cpp cannot load the file.")


def test_half_of_the_layers_is_counted_from_the_files_header(model_path):
    assert llama._layers_on_gpu(Options(model=model_path, gpu_share=0.5)) == 12
    assert llama._layers_on_gpu(Options(model=model_path, gpu_share=0.5, gpu_layers=10)) == 5
    assert llama._layers_on_gpu(Options(model=model_path)) == -1
