"""What is told of the engine processes that run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monkeycode_lsp.cli import processes

_HOLDS = "held = bytearray(b'x' * {bytes}); print('here', flush=True); input()"
_PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.skipif(sys.platform != "linux", reason="only there children are found")
def test_the_memory_of_children_counts():
    size = 100_000_000
    child = subprocess.Popen([sys.executable, "-c", _PARENT, _HOLDS.format(bytes=size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"here\n"
    assert processes.memory(child.pid) > size
    child.communicate(b"\n", timeout=30)
    assert child.returncode == 0


def test_of_a_process_that_is_gone_no_memory_is_told():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30)
    assert processes.memory(gone.pid) is None
