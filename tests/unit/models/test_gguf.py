from __future__ import annotations

import contextlib
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import gguf
from tests.unit.models import samples

VALUES = {
    "general.size_label": "0.5B",
    "general.license": "apache-2.0",
    "general.file_type": 15,
    "qwen2.context_length": 32768,
    "qwen2.block_count": 24,
    "qwen2.rope.freq_base": 1e6,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "qwen2",
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.ggml.tokens": ["a", "b", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    "tokenizer.ggml.token_type": [1, 1, 3, 3, 4],
    "tokenizer.ggml.fim_pre_token_id": 2,
    "tokenizer.ggml.suffix_token_id": 3,
    "tokenizer.ggml.fim_mid_token_id": 4,
}


def model(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return path


def test_the_header_says_what_the_model_is(tmp_path):
    content = samples.gguf({**VALUES, "general.type": "model"}, n_tensors=2)
    assert gguf.read(model(tmp_path, content)) == gguf.Header(
        version=3,
        architecture="qwen2",
        name="Tiny",
        size="0.5B",
        file_type="Q4_K_M",
        licence="apache-2.0",
        context_tokens=32768,
        n_layers=24,
        tokenizer="gpt2/qwen2",
        fim={"prefix": 2, "suffix": 3, "middle": 4},
        n_tensors=2,
        bytes=len(content),
        kind="model",
        elements={"F32": 32},
    )


def test_what_the_header_does_not_say_is_empty(tmp_path):
    header = gguf.read(model(tmp_path, samples.gguf(version=2)))
    assert (header.file_type, header.context_tokens, header.n_layers, header.tokenizer, header.fim) == ("", None, None, "", {})
    assert header.kind == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"GG", "is not a GGUF model"),
        (b"<!doctype html><html>", "is not a GGUF model: it begins with b'<!do'"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is not a GGUF model"),
        (b"GGUF\x01\x00\x00\x00" + b"\0" * 16, "is GGUF version 1"),
        (b"GGUF\x00\x00\x00\x03" + b"\0" * 16, "is GGUF version 50331648"),
        (b"GGUF\x03\x00\x00\x00" + b"\0" * 8 + b"\xff" * 8, "damaged header"),
        (b"GGUF\x03\x00\x00\x00", "is cut off"),
        (samples.gguf(VALUES)[:200], "is cut off"),
        (samples.gguf(VALUES, data=b""), "is cut off"),
    ],
)
def test_what_is_no_whole_model_is_refused_in_words(tmp_path, content, words):
    path = model(tmp_path, content)
    with pytest.raises(ModelError, match=words) as caught:
        gguf.read(path)
    assert str(path) in caught.value.message


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(ModelError, match="does not exist"):
        gguf.read(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="is a folder"):
        gguf.read(tmp_path)


@pytest.mark.timeout(30)
@pytest.mark.skipif(sys.platform == "win32", reason="there no file is a pipe")
def test_a_pipe_is_no_model_and_nobody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="is a pipe or a device"):
        gguf.read(tmp_path / "pipe.gguf")


@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_breaks(tmp_path_factory, data):
    content = bytearray(samples.gguf(VALUES))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    path = model(tmp_path_factory.getbasetemp(), bytes(content[:cut]))
    with contextlib.suppress(ModelError):  # any other error fails the test
        gguf.read(path)
