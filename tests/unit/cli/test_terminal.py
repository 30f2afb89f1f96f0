"""What commands print."""

from __future__ import annotations

import io
import re
import tomllib

import pytest
from rich.console import Console

from monkeycode_lsp.cli import editors, terminal
from monkeycode_lsp.cli.samples import SAMPLES
from monkeycode_lsp.cli.serve import parse_address
from monkeycode_lsp.cli.trial import figures
from monkeycode_lsp.cli.watch import Seen


def test_without_colours_the_suggestion_stands_between_marks():
    shown = terminal.ghost("return ", "a + b", "\n", "python", colours=False)
    assert shown.plain == "return >>a + b<<"


def test_with_colours_exactly_the_suggestion_is_dimmed():
    for sample in SAMPLES:
        shown = terminal.ghost(sample.before, "X\tY", sample.after, sample.language, colours=True)
        assert shown.plain == (sample.before + "X\tY" + sample.after).expandtabs(4).rstrip()
        (dimmed,) = [span for span in shown.spans if span.style == terminal.GHOST]
        assert shown.plain[dimmed.start : dimmed.end].split() == ["X", "Y"]


def told(step_percent=25):
    out = Console(file=io.StringIO(), width=200)
    progress = terminal.PlainProgress(out, step_percent=step_percent)
    for done in range(0, 1001, 7):
        progress("Downloading", done * 10**5, 10**8)
    progress("Downloading", 10**8, 10**8)
    progress("Waiting", 0, None)
    progress("The hub does not answer.", 0, None)
    return out.file.getvalue().splitlines()


def test_plain_progress_is_few_lines():
    lines = told()
    assert lines[0] == "Downloading: 100 MB"
    assert [line.split()[0] for line in lines[1:4]] == ["25", "50", "75"]
    assert lines[4:] == ["Waiting …", "The hub does not answer."]


def test_plain_progress_of_something_short_is_one_line():
    assert told(step_percent=100) == ["Downloading: 100 MB", "Waiting …", "The hub does not answer."]


def test_a_terminal_has_one_bar_whatever_is_done_and_sentences_above_it():
    out = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    with terminal.progress(out) as progress:
        progress("Checking", 5, 10)
        progress("The hub does not answer.", 0, None)
        progress("Downloading", 50, 10**8)
        progress("Downloading", 10**8, 10**8)
    shown = out.file.getvalue()
    assert shown.count("The hub does not answer.") == 1
    last = [line for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)) if line.strip()][-1]
    assert last.startswith("Downloading")
    assert "100.0/100.0 MB" in last
    assert "Checking" not in last


@pytest.mark.parametrize(("n_bytes", "text"), [(491_400_064, "491 MB"), (4_683_073_952, "4.7 GB")])
def test_sizes_are_for_people(n_bytes, text):
    assert terminal.size(n_bytes) == text


def test_figures_tell_first_text_speed_and_recall():
    seen = Seen(text="x", first_ms=50.0, total_ms=1050.0, n_tokens=21, again_ms=0.62)
    assert figures(seen) == "first text after 50 ms · whole after 1.1 s · 21 tokens, 20.0 tokens/s · asked again, recalled in 0.6 ms"
    assert figures(Seen(text="x", first_ms=50.0, total_ms=50.0)) == "first text after 50 ms · whole after 50 ms"
    assert figures(Seen(reason="The model had nothing to add here.")) == "No suggestion: The model had nothing to add here."


def test_editors_lines_start_our_server():
    for editor in editors.EDITORS:
        assert "monkeycode-lsp" in editor.lines
        assert editor.file in editors.text(editor)
    helix = tomllib.loads(editors.HELIX.lines)
    assert helix["language-server"]["monkeycode"]["command"] == "monkeycode-lsp"


def test_samples_ask_inside_of_code():
    assert len({sample.language for sample in SAMPLES}) == 3
    for sample in SAMPLES:
        line = sample.text.split("\n")[sample.line]
        assert line[: sample.column] == sample.before.rpartition("\n")[2]
        assert sample.after.strip()


@pytest.mark.parametrize(
    ("text", "address"),
    [("8080", ("127.0.0.1", 8080)), ("192.0.2.1:1", ("192.0.2.1", 1)), ("[::1]:65535", ("::1", 65535)), ("localhost:0", ("localhost", 0))],
)
def test_an_address_is_a_port_with_or_without_a_host(text, address):
    assert parse_address(text) == address
