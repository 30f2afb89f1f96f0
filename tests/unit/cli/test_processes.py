"""What is told of the engine processes that run."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from monkeycode_lsp.cli import processes
from monkeycode_lsp.engines.local.host.control import Seen
from monkeycode_lsp.engines.local.host.registry import Note

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


def test_an_entry_of_a_file_whose_name_is_no_text_can_be_told_as_json():
    note = Note(kind="native", model=os.fsdecode(b"/m\xfc/q\xfc.gguf"), version="0")
    entry = processes.entry(Seen(note, None))
    told = msgspec.json.decode(msgspec.json.encode(entry))
    assert (told["path"], told["model"]) == ("/m?/q?.gguf", "q?.gguf")


def test_of_a_process_that_is_gone_no_memory_is_told():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30)
    assert processes.memory(gone.pid) is None
