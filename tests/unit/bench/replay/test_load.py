"""Reading traces."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from monkeycode_lsp.bench.replay import load as loading
from monkeycode_lsp.bench.replay.excerpt import excerpt
from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.load import TraceError, load
from monkeycode_lsp.bench.replay.trace import Key, Patch

SHARED = Path(__file__).parents[5] / "shared" / "data" / "edit-traces"


def file(tmp_path, txns, *, start="", end=None, name="notes.md.json", pack=False, **more):
    path = tmp_path / name
    data = json.dumps({"startContent": start, "txns": txns, **({} if end is None else {"endContent": end}), **more}).encode()
    path.write_bytes(gzip.compress(data) if pack else data)
    return path


def typing(text, *, at=0, step_ms=200):
    return [{"time": f"2024-05-01T10:00:{index * step_ms / 1e3:06.3f}Z", "patches": [[at + index, 0, c]]} for index, c in enumerate(text)]


def refused(path):
    with pytest.raises(TraceError) as caught:
        load(path)
    assert path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("pack", [False, True])
def test_a_trace_is_read_packed_or_not(tmp_path, pack):
    trace = load(file(tmp_path, typing("abc"), end="abc", pack=pack))
    assert (trace.name, trace.language, trace.start) == ("notes.md", "markdown", "")
    assert trace.keys == (
        Key(0.0, (Patch(0, 0, "a"),)),
        Key(pytest.approx(0.2), (Patch(1, 0, "b"),)),
        Key(pytest.approx(0.4), (Patch(2, 0, "c"),)),
    )


def test_several_patches_of_a_transaction_are_one_key_applied_in_order(tmp_path):
    txns = [{"time": 1000, "patches": [[0, 0, "ab"], [1, 1, "X"]]}, {"time": 1250, "patches": [[2, 0, "!"]]}]
    trace = load(file(tmp_path, txns, end="aX!"))
    assert [key.cursor for key in trace.keys] == [2, 3]


def test_positions_count_code_points(tmp_path):
    load(file(tmp_path, typing("🎉é!"), end="🎉é!"))


def test_times_that_stand_still_or_go_back_are_nudged_forward(tmp_path):
    txns = typing("abcd")
    txns[1]["time"] = txns[2]["time"] = txns[0]["time"]
    times = [key.at_s for key in load(file(tmp_path, txns)).keys]
    assert times == sorted(set(times))


def test_a_pause_of_years_counts_as_ten_minutes(tmp_path):
    txns = [*typing("a"), {"time": "9999-12-31T23:59:59.5Z", "patches": [[0, 0, "b"]]}]
    txns.append({"time": "9999-12-31T23:59:59.9Z", "patches": [[0, 0, "c"]]})
    trace = load(file(tmp_path, txns))
    assert [key.at_s for key in trace.keys] == pytest.approx([0.0, 600.0, 600.4])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    assert "not a plain file" in refused(tmp_path / "a.json")


def test_a_first_transaction_that_pastes_the_file_is_its_start(tmp_path):
    pasted = "line of the file\n" * 50
    trace = load(file(tmp_path, [{"time": "1970-01-01T00:00:00Z", "patches": [[0, 0, pasted]]}, *typing("x")], end="x" + pasted))
    assert trace.start == pasted
    assert [key.at_s for key in trace.keys] == [0.0]


def test_whole_seconds_are_spread_and_the_seed_decides_how(tmp_path):
    txns = [{"time": f"2024-05-01T10:00:{index // 6:02d}Z", "patches": [[index, 0, "x"]]} for index in range(60)]
    path = file(tmp_path, txns)
    first, again, other = (load(path, seed=seed).keys for seed in (1, 1, 2))
    assert first == again != other
    gaps = [b.at_s - a.at_s for a, b in pairwise(first)]
    assert min(gaps) > 0.01
    assert max(gaps) < 1
    assert first[-1].at_s == pytest.approx(9.7, abs=0.5)


@pytest.mark.parametrize(
    ("txns", "start", "end", "says"),
    [
        ([], "", None, "nothing is typed"),
        ([{"time": 1, "patches": []}], "", None, "nothing is typed"),
        ([{"time": 1, "patches": [[5, 0, "x"]]}], "abc", None, "what is not there"),
        ([{"time": 1, "patches": [[1, 9, ""]]}], "abc", None, "what is not there"),
        ([{"time": 1, "patches": [[-1, 0, "x"]]}], "abc", None, "what is not there"),
        ([{"time": 1, "patches": [[0, -1, "x"]]}], "abc", None, "what is not there"),
        ([{"time": 1, "patches": [[0, 0, "x"]]}], "", "y", "does not give the text"),
        ([{"time": "yesterday", "patches": [[0, 0, "x"]]}], "", None, "'yesterday' is not a time"),
        ([{"patches": [[0, 0, "x"]]}], "", None, "when each key was typed"),
        ([{"time": 1, "patches": [[0, 0, "x\r\n"]]}], "", None, "convert it to LF"),
        ([{"time": 1, "patches": [["0", 0, "x"]]}], "", None, "editing-traces format"),
        ([{"time": 1, "patches": [[0, 0]]}], "", None, "editing-traces format"),
        ([{"time": 1000, "patches": [[0, 0, "x"]]}] * 100, "", None, "100 keys in one second"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_words(tmp_path, txns, start, end, says):
    assert says in refused(file(tmp_path, txns, start=start, end=end))


def test_a_trace_of_several_authors_is_refused(tmp_path):
    assert "several authors" in refused(file(tmp_path, typing("x"), kind="concurrent"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b"[1, 2]", "editing-traces format"),
        (b'{"recording": true}', "editing-traces format"),
        (b'{"txns": [{"time": 1, "patches": [[0, 0, "\xff"]]}]}', "UTF-8"),
        (b'{"x": ' + b"[" * 200_000, "not JSON"),
        (gzip.compress(b'{"txns": []}')[:-9], "cannot be unpacked"),
        (b"\x1f\x8b" + b"rubbish" * 9, "cannot be unpacked"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(tmp_path, data, says):
    path = tmp_path / "odd.json"
    path.write_bytes(data)
    assert says in refused(path)


def test_a_file_that_unpacks_to_far_too_much_is_refused_before_it_does(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "MOST_BYTES", 1_000_000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000))
    assert "too large" in refused(path)


def test_a_missing_file_is_named(tmp_path):
    assert "cannot be read" in refused(tmp_path / "none.json")
    assert "cannot be read" in refused(tmp_path)


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.py.json.gz", "python"), ("a.tsx.json", "typescriptreact"), ("sveltecomponent.json.gz", "svelte"), ("notes.json", "plaintext")],
)
def test_the_language_follows_from_the_name(tmp_path, name, language):
    assert load(file(tmp_path, typing("x"), name=name)).language == language


def test_a_language_that_is_given_or_written_down_wins(tmp_path):
    path = file(tmp_path, typing("x"), language="lua")
    assert (load(path).language, load(path, language="go").language) == ("lua", "go")


def test_an_excerpt_begins_with_the_text_as_it_was(tmp_path):
    part = excerpt(load(file(tmp_path, typing("abcdef"))), 3, 2)
    assert part.start == "abc"
    assert [(round(key.at_s, 3), key.patches[0].inserted) for key in part.keys] == [(0.0, "d"), (0.2, "e")]


def test_a_gap_text_is_the_text_it_stands_for():
    chance = random.Random(7)  # noqa: S311 - no secret
    plain, text = "some\ntext\n", GapText("some\ntext\n")
    for _ in range(500):
        position = chance.randrange(len(plain) + 1)
        deleted = chance.randrange(min(6, len(plain) - position) + 1)
        inserted = "".join(chance.choices("ab\n", k=chance.randrange(6)))
        plain = plain[:position] + inserted + plain[position + deleted :]
        text.apply(Patch(position, deleted, inserted))
        cursor = position + len(inserted)
        before = plain[:cursor]
        assert (text.text, len(text)) == (plain, len(plain))
        assert (text.before(5), text.after(5)) == (before[-5:], plain[cursor : cursor + 5])
        assert text.position == (before.count("\n"), len(before) - before.rfind("\n") - 1)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public traces are not part of the repository")
def test_the_gaps_of_a_real_trace_are_those_of_typing():
    trace = load(SHARED / "sveltecomponent.json.gz")
    gaps = sorted((b.at_s - a.at_s) * 1e3 for a, b in pairwise(trace.keys))
    quantiles = [gaps[int(len(gaps) * share)] for share in (0.1, 0.25, 0.5, 0.75, 0.9)]
    assert quantiles == pytest.approx([73, 108, 181, 390, 1478], rel=0.05)
