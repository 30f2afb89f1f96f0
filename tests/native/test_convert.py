"""Converting the real model with the real llama.cpp."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from monkeycode_lsp.engines.local import convert
from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import gguf, resolve

llama_cpp = pytest.importorskip("llama_cpp", reason="needs the native engine")

pytestmark = [pytest.mark.model, pytest.mark.native]


def part(folder):
    """The file that is being written."""
    return next((path for path in folder.iterdir() if path.name.endswith(".part") and path.stat().st_size), None)


@pytest.fixture
def cut_off(model_path, tmp_path):
    """The model without its very last bytes, which our own look at the header does not miss."""
    path = tmp_path / "cut-off.gguf"
    shutil.copyfile(model_path, path)
    os.truncate(path, path.stat().st_size - 1000)
    return path


def test_the_model_in_q8_0_is_whole_and_can_be_used(model_path, tmp_path):
    target = tmp_path / "q8.gguf"
    size = convert.run(convert.plan(model_path, "q8_0", output=target), threads=2)
    before, after = gguf.read(model_path), gguf.read(target)
    assert size == after.bytes == target.stat().st_size
    assert after.file_type == "Q8_0"
    assert sum(after.elements.values()) == sum(before.elements.values())
    assert resolve.resolve(str(target)) == target
    model = llama_cpp.Llama(str(target), n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False)
    try:
        prompt = "<|fim_prefix|>def is_even(n):\n    return <|fim_suffix|>\n\nprint(is_even(4))\n<|fim_middle|>"
        said = model.create_completion(prompt, max_tokens=8, temperature=0.0)["choices"][0]["text"]
    finally:
        model.close()
    assert said.startswith("n % 2 == 0")
    target.unlink()


def test_a_source_that_ends_too_early_is_told_in_llama_cpps_own_words(cut_off, tmp_path):
    work = convert.plan(cut_off, "q8_0", output=tmp_path / "q8.gguf")
    with pytest.raises(ModelError, match=r"llama\.cpp could not do it: .*data is not within the file bounds"):
        convert.run(work, threads=1)
    assert list(tmp_path.glob("*")) == [cut_off]


def test_nothing_is_left_when_the_program_is_killed(model_path, tmp_path):
    script = (
        "import sys; from pathlib import Path; from monkeycode_lsp.engines.local import convert; "
        "convert.run(convert.plan(Path(sys.argv[1]), 'q8_0', output=Path(sys.argv[2])), threads=1)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(model_path), str(tmp_path / "q8.gguf")]) as program:
        try:
            until = time.monotonic() + 60
            while part(tmp_path) is None:
                assert program.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)  # a file that grows can only be looked at
        finally:
            program.send_signal(signal.SIGKILL)
    while any(tmp_path.glob(".*.part")):
        assert time.monotonic() < until
        time.sleep(0.02)  # nobody is left to tell when the child has gone
    assert not (tmp_path / "q8.gguf").exists()
