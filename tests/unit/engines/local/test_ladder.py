from __future__ import annotations

import signal
from pathlib import Path

import pytest

from monkeycode_lsp.engines.local import explain
from monkeycode_lsp.engines.local.ladder import Attempt, Fall, after_crashes, following
from monkeycode_lsp.engines.local.wire import Build, LoadFailed

CPU = Build("0", "", (), gpu=False)
GPU = Build("0", "", (), gpu=True)


def way_down(fall, *, gpu_layers=-1):
    attempts = [Attempt()]
    while (attempt := following(attempts[-1], fall, gpu_layers=gpu_layers)) is not None:
        attempts.append(attempt)
    return [(attempt.extra_buffers, attempt.gpu_share) for attempt in attempts]


def test_an_illegal_instruction_is_first_taken_for_the_extra_buffers():
    assert way_down(Fall(-signal.SIGILL, build=CPU)) == [(True, 1.0), (False, 1.0)]
    assert way_down(Fall(-signal.SIGILL, build=GPU)) == [(True, 1.0), (False, 1.0), (False, 0.5), (False, 0.0)]


def test_an_illegal_instruction_on_windows_is_one_too():
    assert way_down(Fall(0xC000001D, build=CPU)) == [(True, 1.0), (False, 1.0)]


@pytest.mark.parametrize("status", [-signal.SIGABRT, -signal.SIGKILL, 1, None])
def test_any_other_end_is_first_taken_for_the_gpu(status):
    assert way_down(Fall(status, build=GPU)) == [(True, 1.0), (True, 0.5), (True, 0.0), (False, 0.0)]


def test_without_a_gpu_its_steps_are_left_out():
    assert way_down(Fall(-signal.SIGABRT, build=CPU)) == [(True, 1.0), (False, 1.0)]
    assert way_down(Fall(-signal.SIGABRT, build=GPU), gpu_layers=0) == [(True, 1.0), (False, 1.0)]
    assert way_down(Fall(-signal.SIGABRT)) == [(True, 1.0), (False, 1.0)]


def test_a_file_that_does_not_load_is_tried_on_the_cpu_and_not_otherwise():
    failed = LoadFailed("model", "no")
    assert way_down(Fall(3, build=GPU, failed=failed)) == [(True, 1.0), (True, 0.5), (True, 0.0)]
    assert way_down(Fall(3, build=CPU, failed=failed)) == [(True, 1.0)]


def test_a_library_that_cannot_be_imported_is_not_tried_again():
    assert way_down(Fall(3, failed=LoadFailed("runtime", "no"))) == [(True, 1.0)]


@pytest.mark.parametrize(
    ("share", "crashes", "then"),
    [
        (1.0, (), None),
        (1.0, (990.0,), None),
        (1.0, (300.0, 990.0), None),
        (1.0, (500.0, 990.0), 0.5),
        (0.5, (980.0, 990.0), 0.0),
        (0.0, (980.0, 990.0), None),
    ],
)
def test_two_crashes_within_ten_minutes_on_the_gpu_take_layers_from_it(share, crashes, then):
    attempt = after_crashes(Attempt(gpu_share=share), crashes, now=1000.0)
    assert attempt == (None if then is None else Attempt(gpu_share=then))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("runtime", "llama-cpp-python cannot be loaded"),
        ("model", "cannot be loaded"),
        ("memory", "not enough memory"),
        ("internal", "cannot be used"),
    ],
)
def test_each_kind_of_failure_has_a_message_and_a_remedy(kind, says):
    error = explain.unavailable(Fall(3, failed=LoadFailed(kind, "because")), Path("/m.gguf"))
    assert says in error.message
    assert "because" in error.message
    assert error.remedy


@pytest.mark.parametrize(
    "why",
    [
        "libllama.so: failed to map segment from shared object",
        "libllama.so: failed to map segment from shared object: Cannot allocate memory",
        "libgomp.so.1: cannot allocate memory in static TLS block",
    ],
)
def test_a_library_for_which_there_is_no_memory_is_not_to_be_installed_again(why):
    for error in (
        explain.unavailable(Fall(3, failed=LoadFailed("runtime", why)), Path("/m.gguf")),
        explain.unloadable(Fall(3, failed=LoadFailed("runtime", why))),
    ):
        assert why in error.message
        assert "memory" in error.remedy
        assert "install" not in error.remedy


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("llama_model_load: error loading model: mmap failed: Cannot allocate memory", True),
        ("alloc_tensor_range: failed to allocate CPU buffer of size 1234", True),
        ("error loading model: unable to allocate CUDA0 buffer", True),
        ("cudaMalloc failed: out of memory", True),
        ("ggml_aligned_malloc: insufficient memory (attempted to allocate 434.91 MB)", True),
        ("error loading model: std::bad_alloc", True),
        ("error loading model: tensor 'x' data is not within the file bounds, model is corrupted or incomplete", False),
        ("libllama.so: failed to map segment from shared object: Operation not permitted", False),
        ("libllama.so: cannot open shared object file: No such file or directory", False),
    ],
)
def test_a_lack_of_memory_is_known_by_its_words(text, is_so):
    assert explain.speaks_of_memory(text) is is_so


def test_only_what_an_illegal_instruction_took_is_said_to_stay():
    without = Attempt(extra_buffers=False)
    assert "after a day, or at once after `monkeycode engine stop`" in explain.fell_back(Fall(-signal.SIGABRT, build=CPU), without)
    assert "after a day" in explain.fell_back(Fall(-signal.SIGILL, build=GPU), Attempt(extra_buffers=False, gpu_share=0.5))
    assert "after a day" in explain.stepped_down(Attempt(gpu_share=0.5))
    assert "after a day" not in explain.fell_back(Fall(-signal.SIGILL, build=CPU), without)


@pytest.mark.parametrize(
    ("status", "says"),
    [(-signal.SIGILL, "illegal instruction"), (-signal.SIGSEGV, "SIGSEGV"), (-123, "signal 123"), (4, "status 4"), (None, "hung")],
)
def test_how_a_process_ended_is_told_in_words(status, says):
    assert says in explain.how(Fall(status))
