"""From the settings to what an engine process loads."""

from __future__ import annotations

import os

import msgspec
import pytest

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local import options
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.models import catalogue
from tests.unit.models import samples

QWEN = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2"}


@pytest.fixture
def model(tmp_path):
    return put(tmp_path / "model.gguf", QWEN)


def put(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(samples.gguf(values))
    return path


def load(model, attempt=None, **settings):
    return options.load_options(Local(**settings), model, attempt or Attempt())


def refusal(model, **settings):
    with pytest.raises(EngineUnavailableError) as caught:
        load(model, **settings)
    assert caught.value.remedy
    return caught.value.message


def test_the_defaults_of_the_settings_are_taken_over(model):
    assert load(model) == Options(model=model, nice=5)


def test_every_setting_arrives(model, home):
    loaded = load(
        model,
        gpu_layers=7, main_gpu=1, tensor_split=(3.0, 1.0), context_tokens=512, slots=2, batch_tokens=64, threads=1, nice=0,
        flash_attention=False, kv_type="q8_0", mmap=False, mlock=True, drafts="off", state_megabytes=2, keep_states=True,
    )  # fmt: skip
    assert loaded == Options(
        model=model,
        gpu_layers=7, main_gpu=1, tensor_split=(3.0, 1.0), context_tokens=512, slots=2, batch_tokens=64, threads=1, nice=0,
        flash_attention=False, kv_type="q8_0", mmap=False, mlock=True, drafts=False, state_bytes=2 << 20, state_folder=str(home / "cache" / "kv"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attempt", "layers", "share", "extra"),
    [
        (Attempt(), -1, 1.0, True),
        (Attempt(gpu_share=0.5), -1, 0.5, True),
        (Attempt(gpu_share=0.0), 0, 1.0, True),
        (Attempt(extra_buffers=False), -1, 1.0, False),
    ],
)
def test_an_attempt_is_more_careful(model, attempt, layers, share, extra):
    loaded = load(model, attempt)
    assert (loaded.gpu_layers, loaded.gpu_share, loaded.extra_buffers) == (layers, share, extra)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", ()), ("0", (0,)), ("0-3,8", (0, 1, 2, 3, 8)), (" 2 , 1 ", (1, 2)), ("1,1-2,", (1, 2)), ("3 - 4", (3, 4))],
)
def test_processors_are_numbers_and_ranges(text, numbers):
    assert options.processors(text, range(16)) == numbers


@pytest.mark.parametrize("text", ["x", "1-", "-1", "3-1", "1.5", "0-99999999", "1 2", "²"])
def test_what_names_no_processors_is_refused_with_the_setting(text):
    with pytest.raises(EngineUnavailableError, match=r"local\.affinity") as caught:
        options.processors(text, range(4))
    assert "0-3,8" in caught.value.remedy


def test_processors_that_are_not_ours_are_refused():
    with pytest.raises(EngineUnavailableError, match="processor 4 is not one that this program may use, which are 0-1,3"):
        options.processors("1,4", {0, 1, 3})


def test_threads_are_no_more_than_processors_and_that_is_said_once(model, caplog):
    most = len(options.usable_processors() or range(os.cpu_count() or 1))
    assert [load(model, threads=997).threads for _ in range(2)] == [most, most]
    assert [record.getMessage() for record in caplog.records if "997" in record.getMessage()] == [
        f"local.threads is 997, but the engine may use {most} processors only: it has {most} threads."
    ]
    assert load(model).threads == 0


@pytest.mark.skipif(options.usable_processors() is None, reason="only Linux binds a process to processors")
def test_threads_are_no_more_than_the_processors_that_the_engine_is_bound_to(model):
    first = min(options.usable_processors())
    assert load(model, threads=2, affinity=str(first)).threads == 1


def test_threads_beyond_any_machine_are_no_setting():
    with pytest.raises(msgspec.ValidationError, match="1024"):
        msgspec.convert({"threads": 2**31}, Local)


def test_where_no_process_can_be_bound_only_an_empty_setting_is_good():
    assert options.processors("", None) == ()
    with pytest.raises(EngineUnavailableError, match="Linux only"):
        options.processors("0", None)


@pytest.mark.parametrize(("numbers", "text"), [((), ""), ((5,), "5"), ((0, 1, 2, 3, 8), "0-3,8"), ((9, 2, 3), "2-3,9")])
def test_spans(numbers, text):
    assert options.spans(numbers) == text


def test_adapters_have_their_strength(model, tmp_path):
    one, two = (str(put(tmp_path / name, {"general.type": "adapter"})) for name in ("one.gguf", "two=0.3"))
    assert load(model, lora=(one, f"{one}=0.5", f"{one} = 2", two)).lora == ((one, 1.0), (one, 0.5), (one, 2.0), (two, 1.0))


def test_adapters_lie_among_our_models_too(model, home):
    path = put(home / "models" / "mine.gguf", {"general.type": "adapter"})
    assert load(model, lora=("mine.gguf=0.5", " ")).lora == ((str(path), 0.5),)


def test_adapters_that_cannot_be_used_are_refused_with_the_setting(model, tmp_path):
    other = put(tmp_path / "other.gguf", {"general.type": "adapter", "general.architecture": "llama"})
    assert "local.lora has a.gguf=half, and 'half' is not a number" in refusal(model, lora=("a.gguf=half",))
    assert "local.lora has a.gguf=nan" in refusal(model, lora=("a.gguf=nan",))
    assert "none.gguf does not exist. The setting local.lora names it." in refusal(model, lora=(str(tmp_path / "none.gguf"),))
    assert "local.lora names a model, not an adapter" in refusal(model, lora=(str(model),))
    assert "an adapter for llama models; the model is of the kind qwen2" in refusal(model, lora=(str(other),))


def test_a_draft_model_is_found_by_path_and_by_name(model, home):
    path = put(home / "models" / catalogue.default().file, {**QWEN, "general.name": "Small"})
    assert load(model, draft_model=str(path)).draft_model == str(path)
    assert load(model, draft_model="0.5b").draft_model == str(path)


def test_a_draft_model_that_cannot_be_used_is_refused_with_the_setting(model, tmp_path):
    llama = put(tmp_path / "llama.gguf", {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe"})
    adapter = put(tmp_path / "adapter.gguf", {"general.type": "adapter"})
    assert "local.draftModel names 0.5b, and" in refusal(model, draft_model="0.5b")
    assert "local.draftModel names a model with other tokens (gpt2/llama-bpe)" in refusal(model, draft_model=str(llama))
    assert "local.draftModel names an adapter" in refusal(model, draft_model=str(adapter))
    assert "local.draftModel names the model itself" in refusal(model, draft_model=str(model))
