from __future__ import annotations

import re

import pytest

from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import catalogue

Q05 = "qwen2.5-coder-0.5b-instruct-q4_k_m"


def test_the_sizes_and_precisions_that_are_promised_are_there():
    there = {(entry.size, entry.quantization) for entry in catalogue.entries() if entry.family == "qwen2.5-coder"}
    assert there >= {(size, precision) for size in ("0.5B", "1.5B", "3B", "7B") for precision in ("Q4_K_M", "Q8_0")}


@pytest.mark.parametrize("entry", catalogue.entries(), ids=lambda entry: entry.id)
def test_every_entry_is_sound(entry):
    assert entry.about_bytes > 300_000_000
    assert entry.file == f"{entry.id}.gguf"
    assert re.fullmatch(r"[0-9a-f]{64}|", entry.sha256)
    assert bool(entry.sha256) == (entry.bytes is not None)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.repository)
    assert entry.licence


@pytest.mark.parametrize("entry", [entry for entry in catalogue.entries() if entry.packages], ids=lambda entry: entry.id)
def test_the_pieces_of_an_entry_cover_its_file(entry):
    assert entry.sha256
    assert entry.parts[0].offset == 0
    assert all(part.offset + part.bytes == following.offset for part, following in zip(entry.parts, entry.parts[1:], strict=False))
    assert entry.parts[-1].offset + entry.parts[-1].bytes == entry.bytes
    assert all(part.bytes > 0 for part in entry.parts)


def test_names_and_hashes_are_unique():
    entries = catalogue.entries()
    assert len({entry.id for entry in entries}) == len(entries)
    hashes = [entry.sha256 for entry in entries if entry.sha256]
    assert len(set(hashes)) == len(hashes)


def test_the_default_is_the_small_one():
    assert catalogue.default().id == Q05


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (Q05, Q05),
        ("qwen2.5-coder-0.5b", Q05),
        ("0.5b", Q05),
        ("0.5B", Q05),
        ("Qwen2.5-Coder-0.5B-Instruct", Q05),
        ("qwen2.5-coder:0.5b", Q05),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", Q05),
        (f"{Q05}.gguf", Q05),
        ("qwen-coder", Q05),
        ("qwen2.5-coder:latest", Q05),
        ("1.5b q8", "qwen2.5-coder-1.5b-instruct-q8_0"),
        ("7b-q8_0", "qwen2.5-coder-7b-instruct-q8_0"),
        ("7b", "qwen2.5-coder-7b-instruct-q4_k_m"),
        ("", None),
        ("5b", None),
        ("1", None),
        ("llama", None),
        ("qwen.gguf", None),
    ],
)
def test_names_are_understood_as_people_write_them(name, found):
    entry = catalogue.lookup(name)
    assert (entry and entry.id) == found


def test_an_unknown_name_is_an_error_with_a_hint():
    with pytest.raises(ModelError, match=r"no model called qwen2.5-codr-0.5b-instruct .* Did you mean qwen2.5-coder-0.5b-instruct"):
        catalogue.find("qwen2.5-codr-0.5b-instruct")
    with pytest.raises(ModelError, match=r"in the catalogue\. See") as caught:
        catalogue.find("zzzz")
    assert "monkeycode model list" in caught.value.remedy
