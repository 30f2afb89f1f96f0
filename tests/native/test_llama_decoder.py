"""The decoder of the engine process with the real model: whole answers, and what can be loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import msgspec
import pytest

from monkeycode_lsp.domain import Control, Plain
from monkeycode_lsp.engines.local.batch.tokens import prompt_tokens
from monkeycode_lsp.engines.local.decoder import LoadError, Options
from monkeycode_lsp.engines.local.wire import Delta, Done, Failed, Generate, Totals
from tests.native import lora
from tests.native.prompts import FIM, FUNCTIONS, PROMPTS

pytest.importorskip("llama_cpp", reason="needs the native engine")
decoder_module = pytest.importorskip("monkeycode_lsp.engines.local.llama.decoder", reason="needs the native engine")
LlamaDecoder, scope = decoder_module.LlamaDecoder, decoder_module.scope
loading = pytest.importorskip("monkeycode_lsp.engines.local.llama.loading", reason="needs the native engine")

pytestmark = [pytest.mark.model, pytest.mark.native]


def never():
    return False


def load(options, **more):
    decoder = LlamaDecoder(msgspec.structs.replace(options, **more))
    decoder.build()
    decoder.load()
    return decoder


def answers(decoder, *asks):
    """Text and end of each, asked at the same time."""
    for number, ask in enumerate(asks):
        decoder.begin(number, ask, never)
    texts, ends = [""] * len(asks), [None] * len(asks)
    while decoder.busy:
        for step in decoder.step(lambda priority: False):
            if isinstance(step.event, Delta):
                texts[step.job] += step.event.text
            else:
                assert ends[step.job] is None
                ends[step.job] = step.event
    return list(zip(texts, ends, strict=True))


def answer(decoder, segments, **more):
    return answers(decoder, Generate(1, segments, **{"max_tokens": 16, **more}))[0]


@pytest.fixture(scope="module")
def options(model_path):
    return Options(model=model_path, context_tokens=512, slots=2, threads=1)


@pytest.fixture(scope="module")
def loaded(options):
    decoder = load(options)
    yield decoder
    decoder.close()


def test_the_answer_to_a_hole_is_code_and_holds_no_control_token(loaded):
    text, done = answer(loaded, FIM, stop=("\n",))
    assert (text, done.finish) == ("n % 2 == 0", "stop")


def test_the_end_of_the_answer_is_not_text(loaded):
    text, done = answer(loaded, FIM, max_tokens=40)
    assert "<|" not in text
    assert done.finish == "stop"


def test_a_character_of_several_tokens_is_never_cut(loaded):
    text, _ = answer(loaded, (Plain("emoji = ['😀', '😃', '😄', '😁', '"),), max_tokens=12)
    assert text
    assert "\N{REPLACEMENT CHARACTER}" not in text


def test_more_asks_than_slots_are_all_answered_as_they_are_alone(loaded):
    asks = [Generate(n, PROMPTS[name], max_tokens=6, stop=("\n",)) for n, name in enumerate(("fill in the middle", "prefix only", "go"))]
    together = answers(loaded, *asks)
    alone = [answers(loaded, ask)[0][0] for ask in asks]
    assert sum(one == text for one, (text, _) in zip(alone, together, strict=True)) >= len(asks) - 1  # but for a near tie


def test_one_letter_more_reads_a_few_tokens(loaded):
    text = "".join(f"value_{n} = compute({n})\n" for n in range(30)) + "resu"
    _, cold = answer(loaded, (Plain(text),))
    _, warm = answer(loaded, (Plain(text + "l"),))
    assert cold.read > 100
    assert warm.read <= 3
    assert warm.reused >= cold.reused + cold.read - 3


def test_a_cancel_inside_the_prompt_keeps_the_finished_chunks(loaded):
    segments = (Plain("# another document\n" + FUNCTIONS),)
    n_tokens = len(prompt_tokens(loaded._models[0], segments))
    assert n_tokens > 256
    cancelled = False
    loaded.begin("it", Generate(1, segments), lambda: cancelled)
    assert loaded.step(lambda priority: False) == []
    cancelled = True
    (step,) = loaded.step(lambda priority: False)
    assert (step.event.finish, step.event.read, loaded.busy) == ("cancelled", 128, False)
    _, done = answer(loaded, segments, max_tokens=1)
    assert (done.reused, done.read) == (128, n_tokens - 128)


def test_a_lone_surrogate_and_a_null_character_do_no_harm(loaded):
    text, _ = answer(loaded, (Plain("x = '\ud800\x00' + "),), max_tokens=4)
    assert text


def test_what_cannot_be_answered_is_said_and_the_next_ask_is_answered(loaded):
    ((_, overflow),) = answers(loaded, Generate(1, (Plain("word " * 1000),)))
    assert isinstance(overflow, Failed)
    assert (overflow.kind, overflow.limit_tokens) == ("overflow", 512)
    ((_, template),) = answers(loaded, Generate(1, (Control("<PRE>"), Plain("x"))))
    assert template.kind == "template"
    ((_, grammar),) = answers(loaded, Generate(1, FIM, grammar="root ::= ("))
    assert grammar.kind == "grammar"
    assert answer(loaded, FIM, stop=("\n",))[0] == "n % 2 == 0"


def test_an_answer_obeys_its_grammar(loaded):
    text, done = answer(loaded, FIM, grammar='root ::= "n & 1 == " [01]')
    assert text in {"n & 1 == 0", "n & 1 == 1"}
    assert done.finish == "stop"


def test_the_rest_of_a_word_is_said_where_its_beginning_was_cut_off(loaded):
    text, _ = answer(loaded, (Plain("import os\n\nfor name in os.listdir('.'):\n    "),), heal="pri", max_tokens=4)
    assert text.startswith("nt(")


def test_the_beginning_of_a_word_says_little_of_the_confidence(loaded):
    text = "import os\n\nfor name in os.listdir('.'):\n    "
    loaded.begin("job", Generate(2, (Plain(text),), heal="pri", max_tokens=1), never)
    events = []
    while loaded.busy:
        events += [step.event for step in loaded.step(lambda priority: False)]
    assert (events[0].text, events[0].n_tokens) == ("nt", 1)
    assert events[0].logprob > -0.7  # among all tokens that begin so


def test_while_a_word_is_typed_nothing_is_read_anew(loaded):
    before, after = "def total(values):\n    result = 0\n    for value in ", ":\n        result += value\n    return result\n" * 5
    done = []
    for typed in ("v", "va", "val"):
        segments = (
            Control("<|fim_prefix|>"),
            Plain(before.rstrip(" ")),
            Control("<|fim_suffix|>"),
            Plain(after),
            Control("<|fim_middle|>"),
        )
        done.append(answer(loaded, segments, heal=" " + typed, max_tokens=6)[1])
    assert done[0].read > 40
    assert [one.read for one in done[1:]] == [1, 1]


def test_it_counts_tokens_beside_its_work(loaded):
    texts = ("def total(values: list[int]) -> int:\n", "", "\ud800", "汉字")
    assert loaded.count(texts)[:2] == [10, 0]
    assert all(loaded.count(texts)[2:])


def test_a_decoder_without_a_model_counts_nothing(options):
    assert LlamaDecoder(options).count(("x",)) == []


def test_it_counts_what_it_does(loaded):
    before = loaded.totals
    answer(loaded, FIM, stop=("\n",))
    assert loaded.totals.asks == before.asks + 1
    assert loaded.totals.generated > before.generated


@pytest.mark.parametrize("more", [{"extra_buffers": False, "mmap": False}, {"kv_type": "q8_0"}, {"slots": 1, "batch_tokens": 16}])
def test_the_answer_is_code_with_other_settings_too(options, more):
    decoder = load(options, **more)
    text, _ = answer(decoder, PROMPTS["prefix only"], stop=("\n",))
    decoder.close()
    assert text.strip() == "f.read()"


def test_a_smaller_model_that_drafts_changes_no_answer(options, loaded):
    decoder = load(options, draft_model=str(options.model), slots=1)
    drafted, _ = answer(decoder, FIM, max_tokens=10)
    decoder.close()
    assert drafted[:9] == answer(loaded, FIM, max_tokens=10)[0][:9]  # after the hole's own code the model is unsure


def test_the_states_on_disk_make_the_next_process_warm(options, tmp_path):
    segments = (Plain(FUNCTIONS[:300]),)
    decoder = load(options, state_folder=str(tmp_path / "states"))
    cold, done = answer(decoder, segments, max_tokens=4)
    decoder.close()
    decoder = load(options, state_folder=str(tmp_path / "states"))
    warm, again = answer(decoder, segments, max_tokens=4)
    decoder.close()
    assert warm == cold
    assert (done.reused, again.read) == (0, 1)
    # Under other settings they mean nothing.
    decoder = load(options, state_folder=str(tmp_path / "states"), kv_type="q8_0")
    assert answer(decoder, segments, max_tokens=1)[1].reused == 0
    decoder.close()


def test_an_adapter_is_applied_at_its_strength(options, tmp_path):
    says = {}
    for name, value, strength in (("nothing", 0.0, 1.0), ("off", 0.05, 0.0), ("much", 0.05, 1.0)):
        adapter = lora.write(tmp_path / f"{name}.gguf", value=value)
        decoder = load(options, lora=((adapter, strength),), slots=1)
        says[name], _ = answer(decoder, FIM, stop=("\n",))
        decoder.close()
    assert says["nothing"] == says["off"] == "n % 2 == 0"
    assert says["much"] != "n % 2 == 0"


def test_an_adapter_that_cannot_be_used_is_named(options, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(60))
    for path in (str(broken), lora.write(tmp_path / "other.gguf", architecture="llama"), str(options.model), str(tmp_path / "none.gguf")):
        decoder = LlamaDecoder(msgspec.structs.replace(options, lora=((path, 1.0),)))
        decoder.build()
        with pytest.raises(LoadError) as caught:
            decoder.load()
        assert caught.value.kind == "model"
        assert path in caught.value.message
        decoder.close()


def test_a_broken_file_is_a_load_error_with_what_the_library_says(options, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\x03" * 64)
    decoder = LlamaDecoder(msgspec.structs.replace(options, model=path))
    decoder.build()
    with pytest.raises(LoadError) as caught:
        decoder.load()
    decoder.close()
    assert caught.value.kind == "model"
    assert len(caught.value.message) > len("llama.cpp cannot load the file.")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's addresses")
@pytest.mark.parametrize("mmap", [True, False])
def test_a_whole_file_for_which_there_is_no_memory_is_not_called_broken(model_path, mmap):
    script = """
import resource, sys
from pathlib import Path
from monkeycode_lsp.engines.local.decoder import LoadError, Options
from monkeycode_lsp.engines.local.llama.decoder import LlamaDecoder
decoder = LlamaDecoder(Options(model=Path(sys.argv[1]), context_tokens=512, slots=1, threads=1, mmap=sys.argv[2] == "True"))
decoder.build()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
try:
    decoder.load()
except LoadError as exc:
    print(exc.kind, exc.message)
"""
    command = [sys.executable, "-c", script, str(model_path), str(mmap)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.startswith("memory "), done.stderr
    assert "allocate" in done.stdout


@pytest.mark.skipif(sys.platform == "darwin", reason="there every file name is text")
def test_a_file_whose_name_is_no_text_is_loaded_and_gives_a_nameless_model_its_own(options, tmp_path):
    path = tmp_path / os.fsdecode(b"m\xfc.gguf")
    shutil.copyfile(options.model, path)
    with path.open("r+b") as file:
        file.seek(file.read(65_536).index(b"general.name"))
        file.write(b"general.nome")
    decoder = LlamaDecoder(msgspec.structs.replace(options, model=path, state_folder=str(tmp_path / "kv")))
    decoder.build()
    assert decoder.load().name == "m?"
    assert answer(decoder, FIM)[0]
    decoder.close()
    path.unlink()


def test_a_decoder_without_a_model_has_nothing_to_do(options):
    decoder = LlamaDecoder(options)
    assert not decoder.busy
    assert decoder.totals == Totals()
    decoder.close()


def test_the_header_tells_what_the_gpu_has_to_hold(options):
    shape = loading.read_shape(options.model)
    assert (shape.n_layers, shape.n_heads, shape.kv_numbers) == (24, 14, 2 * 2 * 64)
    assert shape.n_vocabulary > 100_000
    assert shape.file_bytes == options.model.stat().st_size


def test_a_prompt_that_is_only_read_is_found_by_the_next_ask(loaded):
    segments = (Plain("# warm me up\n" + "\n".join(f"name_{n} = {n}" for n in range(30))),)
    text, done = answer(loaded, segments, max_tokens=0)
    assert (text, done.generated) == ("", 0)
    assert isinstance(done, Done)
    assert answer(loaded, segments, max_tokens=1)[1].read == 1


def test_states_belong_to_everything_that_changes_what_they_mean(options, tmp_path):
    adapter = lora.write(tmp_path / "adapter.gguf", value=0.05)
    other = [{"kv_type": "q8_0"}, {"gpu_layers": 3}, {"flash_attention": False}, {"lora": ((adapter, 1.0),)}, {"lora": ((adapter, 0.5),)}]
    scopes = {scope(msgspec.structs.replace(options, **one)) for one in [{}, *other]}
    assert len(scopes) == 1 + len(other)
    assert scope(msgspec.structs.replace(options, threads=7, slots=2)) in scopes
