"""Programs that a model wrote are held by limits, and cannot pretend to have passed."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkeycode_lsp.bench.quality import sandbox
from monkeycode_lsp.bench.quality.sandbox import Verdict

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")


def test_a_program_that_runs_to_its_end_has_passed():
    assert sandbox.run("import math\nassert math.sqrt(4) == 2\n") is Verdict.PASSED


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 == 2",
        "raise ValueError",
        "def (",
        "import sys\nsys.exit(0)",
        "raise SystemExit",
        "exit(0)",
        "import os\nos._exit(0)",
        "def f(): return f()\nf()",
        "x = b'a' * (4 << 30)",
        "held = []\nwhile True:\n    held.append(bytearray(50_000_000))",
    ],
)
def test_one_that_does_not_has_failed(program):
    assert sandbox.run(program) is Verdict.FAILED


def test_an_endless_loop_is_ended():
    began = time.monotonic()
    assert sandbox.run("while True: pass", wall_s=2) is Verdict.LATE
    assert time.monotonic() - began < 60


def test_a_loop_that_catches_everything_is_ended_too():
    program = "import signal\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass"
    assert sandbox.run(program, wall_s=2) is Verdict.LATE


def test_what_it_prints_goes_nowhere(capfd):
    assert sandbox.run("import sys\nfor _ in range(20_000):\n    print('x' * 1000)\n    sys.stderr.write('y' * 100)") is Verdict.PASSED
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos.fork()",
        "import subprocess\nsubprocess.Popen(['true'])",
        "import os\nos.system('true')",
        "import socket\nsocket.socket()",
        "open('made', 'w')",
        "import pathlib\npathlib.Path('made').write_text('x')",
        "import os\nos.remove('/nowhere')",
        "import shutil\nshutil.rmtree('/nowhere')",
        "import os\nos.kill(os.getppid(), 9)",
    ],
)
def test_it_may_not_reach_out_of_its_process(program):
    assert sandbox.run(program) is Verdict.FAILED


def test_reading_is_allowed_because_imports_do_it():
    assert sandbox.run("import json, collections, random, hashlib, decimal, fractions, statistics\n") is Verdict.PASSED


def test_it_knows_nothing_of_this_process(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "of the user")
    assert sandbox.run("import os\nassert 'SOME_KEY' not in os.environ\nassert os.listdir('.') == []") is Verdict.PASSED


def test_a_program_that_is_no_text_fails_and_no_more():
    assert sandbox.run("x = '\ud800'\nx +") is Verdict.FAILED
    assert sandbox.run("\0") is Verdict.FAILED


def test_nothing_is_left_open_by_many_at_once():
    n_before = len(list(Path("/dev/fd").iterdir()))
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(sandbox.run, ["pass", "1 / 0"] * 5))
    assert verdicts == [Verdict.PASSED, Verdict.FAILED] * 5
    assert len(list(Path("/dev/fd").iterdir())) == n_before
