"""What a run finds is there for the next one."""

from __future__ import annotations

from monkeycode_lsp.bench.quality.ledger import Ledger


def test_what_was_put_in_is_there_for_the_next(tmp_path):
    path = tmp_path / "made" / "known.jsonl"
    ledger = Ledger(path, int)
    assert ledger.get("a") is None
    ledger.put("a", 0)
    ledger.put("b", 1)
    ledger.put("a", 1)
    assert [Ledger(path, int).get(name) for name in ("a", "b", "c")] == [1, 1, None]


def test_a_line_that_was_cut_when_the_run_was_killed_costs_only_itself(tmp_path):
    path = tmp_path / "known.jsonl"
    Ledger(path, int).put("a", 1)
    whole = path.read_bytes()
    path.write_bytes(whole + b'["b",')
    ledger = Ledger(path, int)
    assert (ledger.get("a"), ledger.get("b")) == (1, None)
    ledger.put("c", 0)
    again = Ledger(path, int)
    assert (again.get("a"), again.get("b"), again.get("c")) == (True, None, 0)


def test_values_of_another_kind_are_not_taken(tmp_path):
    path = tmp_path / "known.jsonl"
    Ledger(path, str).put("a", "text")
    assert Ledger(path, int).get("a") is None
