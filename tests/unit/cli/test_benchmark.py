"""`monkeycode benchmark`: what it accepts, and what it shows."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from monkeycode_lsp.bench import overhead
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.quality import quant
from monkeycode_lsp.cli import benchmark_tables


@pytest.fixture
def nothing_installed(monkeypatch):
    """A machine without any runtime."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("PATH", "")


def test_files_alone_are_refused_with_the_line_that_works(run, tmp_path):
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF")
    done = run("benchmark", file)
    assert done.exit_code == 2
    assert "--compare-quant FILE" in done.stderr


def test_compare_quant_wants_files_that_are_there(run, tmp_path):
    assert run("benchmark", "--compare-quant").exit_code == 2
    done = run("benchmark", "--compare-quant", tmp_path / "none.gguf")
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_a_part_that_does_not_exist_is_named_with_those_that_do(run):
    done = run("benchmark", "--scenario", "engine", "--only", "warm,hot")
    assert done.exit_code == 2
    assert "hot is none of cold, warm" in done.stderr


def test_without_the_compiled_engine_it_says_how_to_get_it(run, nothing_installed):
    done = run("benchmark", "--scenario", "engine")
    assert done.exit_code == 1
    assert done.stderr == "Error: This measures the compiled engine.\n`monkeycode engine install` (five to ten minutes on two cores)\n"


def test_the_quantization_table_has_a_line_for_each_file():
    file = quant.File(
        path="/models/small-q8_0.gguf",
        model="Small Q8_0",
        size_bytes=676_000_000,
        memory_mb=812.0,
        first_ms=1448.4,
        prompt_tokens=510,
        read_tokens_per_second=354.0,
        write_tokens_per_second=30.25,
        asks_per_second=0.61,
        n=40,
        exact=0.25,
        similarity=0.5281,
        fills=False,
    )
    out = io.StringIO()
    benchmark_tables.show_quant(quant.Report((file,)), Console(file=out, width=200))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[1] == "small-q8_0.gguf 676 MB 812 MB 1448 ms 354 30.2 0.61 25% 0.528"
    assert lines[2].startswith("small-q8_0.gguf has no fill-in-the-middle tokens")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "http://127.0.0.1:1"], "--scenario load"),
        (["--scenario", "load", "--peer", "x"], "--scenario overhead"),
        (["--scenario", "load", "--only", "arrivals,hot"], "hot is none of arrivals, saturation, cancels, failover, endurance"),
        (["--only", "arrivals"], "This scenario has no parts"),
        (["--scenario", "load", "--servers", "0"], "0 is not in the range"),
        (["--scenario", "load", "--rate", "0"], "0.0 is not in the range"),
        (["--scenario", "load", "--seconds", "0"], "0.0 is not in the range"),
        (["--scenario", "load", "--url", "http://127.0.0.1:1", "--api", "telnet"], "'telnet' is not one of"),
        (["--scenario", "load", "--model", "mine"], "give its address with --url"),
        (["--scenario", "load", "--url", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(run, arguments, words):
    done = run("benchmark", *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


def test_an_endpoint_where_nothing_answers_is_told_with_the_option_that_mends_it(run):
    done = run("benchmark", "--scenario", "load", "--url", "http://127.0.0.1:9")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: Nothing answers at http://127.0.0.1:9.")
    assert "--url" in done.stderr


def test_a_peer_that_is_not_there_is_told_with_the_line_that_installs_it(run):
    done = run("benchmark", "--peer", "/nowhere/tabby-agent")
    assert done.exit_code == 1
    assert "There is no program /nowhere/tabby-agent" in done.stderr
    assert "npm install tabby-agent@1.5.0" in done.stderr


def test_the_overhead_table_shows_ratios_with_their_goals():
    spread = Spread(200, 2.0, 3.0, 4.0)
    asks = {overhead.FLOOR: spread, overhead.OURS: Spread(200, 1.0, 1.0, 10.0)}
    report = overhead.Report(
        start_ms=asks,
        memory_mb={overhead.OURS: 48.0},
        ask_ms=asks,
        ratios=overhead.ratios(asks),
        repeated_ms=spread,
        typed_through_ms=spread,
        edit_10k_lines_ms=spread,
        cancel_to_reply_ms=spread,
        cancel_to_closed_ms=spread,
    )
    out = io.StringIO()
    benchmark_tables.show_overhead(report, Console(file=out, width=200))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert "ask ms monkeycode 200 1.00 1.00 10.00" in lines
    assert "ask / floor, p50 0.50 x ≤ 1.50 x ok" in lines
    assert "ask / floor, p99 2.50 x ≤ 2 x missed" in lines
