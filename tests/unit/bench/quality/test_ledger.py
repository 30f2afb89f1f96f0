"""What a run finds is there for the next one."""

from __future__ import annotations

from monkeycode_lsp.bench.quality.ledger import Ledger


def test_what_was_put_in_is_there_for_the_next(tmp_path):
    path = tmp_path / "made" / "known.jsonl"
    ledger = Ledger(path, bool)
    assert ledger.get("a") is None
    ledger.put("a", False)
    ledger.put("b", True)
    ledger.put("a", True)
    assert [Ledger(path, bool).get(name) for name in ("a", "b", "c")] == [True, True, None]


def test_a_line_that_was_cut_when_the_run_was_killed_costs_only_itself(tmp_path):
    path = tmp_path / "known.jsonl"
    Ledger(path, bool).put("a", True)
    whole = path.read_bytes()
    path.write_bytes(whole + b'["b",tr')
    ledger = Ledger(path, bool)
    assert (ledger.get("a"), ledger.get("b")) == (True, None)
    ledger.put("c", False)
    again = Ledger(path, bool)
    assert (again.get("a"), again.get("b"), again.get("c")) == (True, None, False)


def test_values_of_another_kind_are_not_taken(tmp_path):
    path = tmp_path / "known.jsonl"
    Ledger(path, str).put("a", "text")
    assert Ledger(path, bool).get("a") is None
