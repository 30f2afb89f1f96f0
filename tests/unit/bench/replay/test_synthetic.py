"""Typing that nobody did: it must end with the text, and look like typing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.bench.replay import synthetic as module
from monkeycode_lsp.bench.replay.synthetic import synthetic

CODE = Path(module.__file__).read_text(encoding="utf-8")


def typed(trace):
    """The text after all keys; every patch lies inside the text as it is by then."""
    text = trace.start
    for key in trace.keys:
        for patch in key.patches:
            assert 0 <= patch.position <= patch.position + patch.deleted <= len(text)
            text = text[: patch.position] + patch.inserted + text[patch.position + patch.deleted :]
    return text


@pytest.fixture(scope="module")
def trace():
    return synthetic(CODE, "code.py", 1, language="python")


@given(text=st.text(alphabet=" \tabcde_(:\n\u00e9\U0001f600", max_size=300), seed=st.integers(0, 99))
def test_it_ends_with_exactly_the_text(text, seed):
    assert typed(synthetic(text, "any", seed)) == text


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_file_with_all_its_slips_and_jumps_comes_out_right(seed):
    assert typed(synthetic(CODE, "code.py", seed)) == CODE


@given(lines=st.lists(st.sampled_from(["", "    ", "if a:", "    b()", "\tc", "import a"]), max_size=30), seed=st.integers(0, 99))
def test_indentation_and_empty_lines_come_out_right(lines, seed):
    text = "\n".join(lines)
    assert typed(synthetic(text, "any", seed)) == text


def test_the_same_seed_types_the_same_and_another_does_not(trace):
    assert synthetic(CODE, "code.py", 1, language="python") == trace
    assert synthetic(CODE, "code.py", 2, language="python").keys != trace.keys


def test_the_trace_carries_its_name_and_language(trace):
    assert (trace.name, trace.language, trace.start) == ("code.py", "python", "")


def test_time_never_goes_back_and_no_pause_is_endless(trace):
    gaps = [after.at_s - before.at_s for before, after in zip(trace.keys, trace.keys[1:], strict=False)]
    assert min(gaps) >= 0
    assert max(gaps) <= 3.001
    ordered = sorted(gaps)
    median, p90 = ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10]
    assert 0.12 < median < 0.25
    assert 0.7 < p90 < 2.2


def test_most_keys_are_single_characters_and_some_take_something_away(trace):
    patches = [key.patches[0] for key in trace.keys]
    single = sum(len(patch.inserted) == 1 and not patch.deleted for patch in patches) / len(patches)
    away = sum(not patch.inserted for patch in patches) / len(patches)
    assert 0.7 < single < 0.95
    assert 0.03 < away < 0.15


def test_something_is_put_right_in_earlier_lines(trace):
    length, jumps = 0, 0
    for key in trace.keys:
        for patch in key.patches:
            jumps += patch.position + patch.deleted + 50 < length
            length += len(patch.inserted) - patch.deleted
    assert jumps > 10


def test_whole_blocks_are_pasted():
    blocks = "def f():\n    return 1\n\n\n" * 40
    trace = synthetic(blocks, "any", 3)
    assert any(patch.inserted.count("\n") > 1 for key in trace.keys for patch in key.patches)


def test_a_new_line_brings_the_indentation_of_the_one_above():
    trace = synthetic("if a:\n    b()\n    c()", "any", 7)
    assert any(patch.inserted == "\n    " for key in trace.keys for patch in key.patches)
