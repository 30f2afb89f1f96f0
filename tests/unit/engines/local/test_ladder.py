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
    ("status", "says"),
    [(-signal.SIGILL, "illegal instruction"), (-signal.SIGSEGV, "SIGSEGV"), (-123, "signal 123"), (4, "status 4"), (None, "hung")],
)
def test_how_a_process_ended_is_told_in_words(status, says):
    assert says in explain.how(Fall(status))
