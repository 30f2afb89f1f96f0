"""`monkeycode replay`: what it accepts, and what it shows and writes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import monkeycode_lsp
from monkeycode_lsp.bench.replay import load
from monkeycode_lsp.bench.replay.simulate import SYSTEMS
from monkeycode_lsp.bench.replay.trace import Key, Trace
from monkeycode_lsp.cli import replay, replay_tables, replay_words
from monkeycode_lsp.cli.replay_runs import Asked

NUMBERS = ("--latency-ms", "--q", "--editor-delay-ms", "--speed")
CODE = "def add(first, second):\n    return first + second\n\n\ndef sub(first, second):\n    return first - second\n"


@pytest.fixture
def trace(tmp_path):
    """Somebody types a line, then another one."""
    text = "alpha = 1\nbeta = alpha + 1\n"
    txns = [{"time": f"2026-01-02T03:04:{n // 5:02}.{n % 5 * 190 + 7:03}Z", "patches": [[n, 0, char]]} for n, char in enumerate(text)]
    file = tmp_path / "typing.py.json"
    file.write_text(json.dumps({"startContent": "", "endContent": text, "txns": txns}))
    return file


def test_it_says_what_came_of_it_and_prints_all_systems_side_by_side(run, trace):
    done = run("replay", trace)
    assert done.exit_code == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].startswith("Of 27 keys, ")
    assert "(a plain server: " in lines[0]
    assert lines[0].endswith(" requests for 100 keys instead of 100.")
    assert lines[1].startswith("Half of the texts were there ")
    assert "right at 30 % of the places" in lines[2]
    assert "typing.py: 27 keys, 5 seconds of recorded typing; simulated" in done.stdout
    assert "monkeycode naive (asks at every key) fixed (waits 200 ms)" in lines
    for row in ("requests", "useful work", "fresh", "compared with naive", "chances kept", "text after ms, p50/p90/p99"):
        assert any(line.startswith(row) and line[-1] in "0123456789%" for line in lines), row
    assert "wanted" not in done.stdout


def test_rows_without_anything_in_them_are_left_out_and_what_is_left_is_explained(run, trace):
    lines = [" ".join(line.split()) for line in run("replay", trace).stdout.splitlines()]
    for row in ("disk", "shared", "wrong hits", "failed asks", "stale"):
        assert not any(line.startswith(row) for line in lines), row
    assert "fresh a text on the screen before the next key" in lines


def test_no_share_is_less_than_nothing():
    assert [replay_tables._share(share) for share in (-0.008, 0.0, 0.304, None)] == ["0.0 %", "0.0 %", "30.4 %", "-"]


@pytest.fixture
def long_trace(tmp_path):
    """As `trace`, with keys enough for a verdict."""
    text = "alpha = 1\nbeta = alpha + 1\n" * 12
    txns = [
        {"time": f"2026-01-02T03:{n // 300:02}:{n // 5 % 60:02}.{n % 5 * 190 + 7:03}Z", "patches": [[n, 0, char]]}
        for n, char in enumerate(text)
    ]
    file = tmp_path / "long.py.json"
    file.write_text(json.dumps({"startContent": "", "endContent": text, "txns": txns}))
    return file


def test_the_goals_are_judged_when_they_are_asked_for(run, long_trace):
    assert run("replay", long_trace).exit_code == 0
    done = run("replay", long_trace, "--goals", "--q", "0", "--json", "goals.json")
    verdicts = {goal["name"]: goal["ok"] for goal in json.loads(Path("goals.json").read_bytes())["goals"]}
    assert verdicts["fresh without the backend"] is False
    assert done.exit_code == 1
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "wrong hits 0 ≤ 0 met" in lines
    assert any(line.startswith("fresh without the backend") and line.endswith("not met") for line in lines)


def test_few_keys_are_not_judged_and_it_says_why(run, trace):
    done = run("replay", trace, "--goals")
    assert done.exit_code == 0
    assert "The goals are not judged: 27 keys are too few" in done.stdout
    assert "wanted" not in done.stdout


def test_json_holds_the_figures_and_how_it_was_done(run, trace, tmp_path):
    done = run(
        "replay", trace, "--seed", "3", "--q", "0.5", "--keys", "20", "--json", tmp_path / "out.json", "--setting", "debounce.mode=off"
    )
    assert done.exit_code == 0, done.stderr
    report = json.loads((tmp_path / "out.json").read_bytes())
    setup = report["setup"]
    assert report["version"] == monkeycode_lsp.__version__
    assert (setup["trace"], setup["keys"], setup["seed"], setup["q"], setup["latencyMs"]) == ("typing.py", 20, 3, 0.5, 250)
    assert setup["settings"] == ["debounce.mode=off"]
    assert [system["rates"]["system"] for system in report["systems"]] == list(SYSTEMS)
    assert report["systems"][1]["rates"]["requestsPerKey"] == 1
    assert report["systems"][1]["freshRatio"] == 1
    assert all(share == round(share, 4) for share in report["systems"][0]["rates"].values() if isinstance(share, float))


def test_json_to_standard_output_stands_alone(run, trace):
    done = run("replay", trace, "--json", "-", "--systems", "naive")
    report = json.loads(done.stdout)
    assert len(report["systems"]) == 1
    assert report["goals"] == []


def test_the_same_seed_gives_the_same_figures(run, trace):
    assert run("replay", trace, "--json", "-").stdout == run("replay", trace, "--json", "-").stdout


def test_the_picture_has_a_line_for_each_system(run, trace, tmp_path):
    done = run("replay", trace, "--systems", "monkeycode,fixed", "--svg", tmp_path / "out.svg")
    assert done.exit_code == 0, done.stderr
    drawn = ET.parse(tmp_path / "out.svg")  # noqa: S314 - our own text
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 2


def test_the_picture_to_standard_output_stands_alone(run, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("replay", trace, "--systems", "fixed", "--svg", "-")
    assert done.exit_code == 0, done.stderr
    assert len(ET.fromstring(done.stdout).findall(".//{http://www.w3.org/2000/svg}polyline")) == 1  # noqa: S314 - our own text
    assert not (tmp_path / "-").exists()


def test_a_pause_of_years_is_over_at_once(run, tmp_path):
    txns = [{"time": time, "patches": [[0, 0, "a"]]} for time in ("0001-01-01T00:00:00.5Z", "9999-12-31T23:59:59.5Z")]
    (tmp_path / "typing.json").write_text(json.dumps({"txns": txns}))
    done = run("replay", tmp_path / "typing.json")
    assert "2 keys, 10 minutes of recorded typing, long pauses cut short; " in done.stdout


def test_a_file_can_be_typed_instead(run, tmp_path):
    file = tmp_path / "sums.py"
    file.write_bytes(CODE.replace("\n", "\r\n").encode())
    done = run("replay", "--synthetic", file, "--json", "-", "--systems", "naive", "--seed", "1")
    setup = json.loads(done.stdout)["setup"]
    assert (setup["trace"], setup["language"]) == ("sums.py", "python")
    assert setup["keys"] > 60


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"nonsense", "typing.json is not a trace"),
        (b'{"txns": []}', "nothing is typed in it"),
        (b'{"txns": [{"time": 1, "patches": [[5, 1, "a"]]}]}', "typing.json is damaged"),
    ],
)
def test_a_bad_trace_is_one_sentence(run, tmp_path, data, words):
    file = tmp_path / "typing.json"
    file.write_bytes(data)
    done = run("replay", file)
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "words"), [(b"\xff\xfe\x00", "is not UTF-8 text"), (b" \n", "is empty"), (b"a" * 1_100_000, "is too large")]
)
def test_a_file_that_cannot_be_typed_is_one_sentence(run, tmp_path, data, words):
    file = tmp_path / "code.py"
    file.write_bytes(data)
    done = run("replay", "--synthetic", file)
    assert done.exit_code == 1
    assert words in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_what_may_never_end_is_not_read(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for file in ("/dev/zero", tmp_path / "pipe"):
        done = run("replay", "--synthetic", file)
        assert done.exit_code == 1
        assert "is not a plain file" in done.stderr


def test_a_missing_trace_is_named(run, tmp_path):
    done = run("replay", tmp_path / "none.json")
    assert done.exit_code == 2
    assert "none.json" in done.stderr
    assert "does not exist" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--svg"])
def test_an_output_that_cannot_be_written_is_told_before_the_work(run, tmp_path, option):
    (tmp_path / "bad.json").write_bytes(b"nonsense")
    done = run("replay", tmp_path / "bad.json", option, tmp_path / "none" / "out")
    assert done.exit_code == 1
    assert "Nothing can be written to" in done.stderr
    assert "not a trace" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Give a TRACE"),
        (("TRACE", "--synthetic", "TRACE"), "Give only one of TRACE, --synthetic FILE and --record FILE"),
        (("TRACE", "--systems", "ours"), "ours is none of monkeycode, naive, fixed"),
        (("TRACE", "--systems", ","), "Name some of"),
        (("TRACE", "--engine", "configured"), "belong to --real-time"),
        (("TRACE", "--speed", "2"), "belong to --real-time"),
        (("TRACE", "--setting", "debounce.mod=off"), "debounce.mod"),
        (("TRACE", "--q", "2"), "--q"),
        *((("TRACE", option, value), option) for option in NUMBERS for value in ("nan", "inf", "-inf")),
        (("TRACE", "--json", "-", "--svg", "-"), "cannot both be printed"),
        (("--record", "-"), "standard output belongs to the editor"),
    ],
)
def test_what_does_not_go_together_is_refused(run, trace, arguments, words):
    done = run("replay", *(trace if argument == "TRACE" else argument for argument in arguments))
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_start_beyond_the_last_key_is_refused(run, trace):
    done = run("replay", trace, "--from", "27")
    assert done.exit_code == 1
    assert "27 keys" in done.stderr


def test_without_an_engine_of_ones_own_it_says_what_is_missing(run, trace):
    done = run("replay", trace, "--real-time", "--engine", "configured", "--setting", "engine=off")
    assert done.exit_code == 1
    assert "switched off" in done.stderr


def test_in_real_time_nobody_waits_for_a_long_pause():
    part = replay._part(
        Trace("t", "python", "", tuple(Key(at, ()) for at in (0.0, 1.0, 61.0, 62.0))), 0, None, asked(real_time=True, speed=2.0)
    )
    assert [key.at_s for key in part.keys] == [0.0, 0.5, 2.0, 2.5]


def test_help_explains_the_words_in_lines_that_fit(run):
    shown = run("replay", "--help").stdout.splitlines()
    for word, meaning in replay_words.LEGEND.items():
        (line,) = (line for line in shown if line.startswith(f"  {word}  ") and line.endswith(meaning))
        assert len(line) <= 80


def test_the_names_are_those_that_systems_takes():
    assert tuple(replay.SYSTEMS.values()) == SYSTEMS
    assert all(name.split()[0] == word for word, name in replay.SYSTEMS.items())


@pytest.mark.parametrize(
    ("seconds", "n_systems", "words"),
    [
        (60.0, 1, "This takes about 60 seconds."),
        (100.0, 3, "This takes about 5 minutes: 3 systems, one after another, 100 seconds each."),
    ],
)
def test_how_long_real_time_takes_is_told_in_all(seconds, n_systems, words):
    assert replay_words.takes(seconds, n_systems) == words


def test_a_pause_is_called_cut_where_loading_cuts_it():
    assert replay_words._CUT_S == load.MOST_GAP_S


def asked(**how):
    known = {"engine": "oracle", "latency_ms": 250, "q": 0.3, "seed": 0, "editor_delay_ms": 0, "systems": (), "settings": ()}
    return Asked(**known | how)
