"""What is kept of the last asks, in memory and in a file."""

import os
import time

import pytest

from monkeycode_lsp.domain import Fate, Outcome, OutcomeKind
from monkeycode_lsp.observe import outcomes
from monkeycode_lsp.observe.outcomes import MOST, Outcomes, load


def outcome(number, **more):
    return Outcome(**{"id": number, "at": float(number), "kind": OutcomeKind.SHOWN, "reason": "Shown.", "n_shown": 5, **more})


def saved(folder, n=3):
    kept = Outcomes(folder)
    for number in range(n):
        kept.add(outcome(number))
    kept.save()
    return kept


def test_what_is_saved_is_read_back_oldest_first(tmp_path):
    saved(tmp_path)
    assert [one.id for one in load(tmp_path)] == [0, 1, 2]


def test_what_becomes_known_later_replaces_what_was_saved(tmp_path):
    kept = saved(tmp_path)
    kept.fated(1, Fate.TYPED, 5)
    kept.kept(1, 30, 0.51234)
    kept.kept(1, 120, 0)
    kept.save()
    found = load(tmp_path)
    assert len(found) == 3
    assert (found[1].fate, found[1].n_taken, found[1].accepted, found[1].kept) == ("typed", 5, False, {"30": 0.512, "120": 0})


def test_only_what_changed_is_written(tmp_path):
    kept = saved(tmp_path, 500)
    (file,) = tmp_path.glob("*.jsonl")
    size = file.stat().st_size
    kept.fated(499, Fate.ACCEPTED, 5)
    kept.save()
    assert size < file.stat().st_size < size * 1.01
    before = file.stat().st_mtime_ns
    kept.save()
    assert file.stat().st_mtime_ns == before


def test_a_fate_that_is_known_before_the_outcome_is_not_lost():
    kept = Outcomes()
    kept.fated(7, Fate.OPEN, 0)
    kept.fated(7, Fate.IGNORED, 0)
    kept.add(outcome(7))
    kept.fated(10**9, Fate.OPEN, 0)
    assert [one.fate for one in kept.last()] == ["ignored"]


def test_fates_of_asks_that_were_forgotten_are_forgotten_too():
    kept = Outcomes()
    for number in range(1000):
        kept.fated(number, Fate.IGNORED, 0)
    assert len(kept._early) <= 64


def test_the_ring_and_the_file_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr(outcomes, "_MOST_BYTES", 20_000)
    kept = Outcomes(tmp_path)
    for number in range(MOST + 300):
        kept.add(outcome(number))
        if number % 10 == 0:
            kept.save()
    kept.save()
    assert len(kept.last(10**6)) == MOST
    assert len(load(tmp_path)) <= MOST + 10
    assert [one.id for one in load(tmp_path)][-1] == MOST + 299


def test_a_process_that_had_our_number_leaves_nothing(tmp_path):
    saved(tmp_path)
    kept = Outcomes(tmp_path)
    kept.add(outcome(9))
    kept.save()
    assert [one.id for one in load(tmp_path)] == [9]


def test_files_of_other_windows_are_read_too_and_old_ones_are_removed(tmp_path):
    for number in range(12):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(b'{"id":1,"at":%d,"kind":"gated","reason":""}\n' % number)
        os.utime(file, (number, number))
    saved(tmp_path, 1)
    assert len(list(tmp_path.glob("*.jsonl"))) == 8
    assert len(load(tmp_path)) == 8


@pytest.mark.parametrize("end", [b"", b"{", b'{"id":4', b"\xff\n", b"[]\n", b'{"id":"4"}\n', b"[" * 100_000])
def test_a_line_that_is_damaged_or_half_written_costs_only_itself(tmp_path, end):
    saved(tmp_path)
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(end + b"\n" + file.read_bytes() + end)
    assert [one.id for one in load(tmp_path)] == [0, 1, 2]


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert len(saved(blocked).last()) == 3
    assert load(blocked) == []


def test_a_save_of_everything_is_quick(tmp_path):
    kept = saved(tmp_path, MOST)
    began = time.perf_counter()
    for _ in range(20):
        kept.fated(MOST - 1, Fate.IGNORED, 0)
        kept.save()
    assert time.perf_counter() - began < 2
