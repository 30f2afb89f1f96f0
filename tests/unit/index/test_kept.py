"""What the indexes of all workspaces take, and taking them away."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from monkeycode_lsp.index import kept
from monkeycode_lsp.index.lock import Lock
from monkeycode_lsp.index.store import Store
from tests.unit.index.workspaces import indexed

FILES = {"a.py": "def first():\n    pass\n\n\ndef second():\n    pass\n", "b.py": "x = 1\n"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


async def test_a_database_tells_of_what_it_is_and_is_not_changed(tmp_path):
    database = await indexed(tmp_path / "w", tmp_path / "index", FILES)
    before = database.read_bytes()
    found = kept.look(database)
    assert (found.folder, found.files, found.symbols) == (str(tmp_path / "w"), 2, 3)
    assert database.read_bytes() == before
    assert kept.n_bytes(database) >= len(before) > 0


def test_one_that_is_being_written_can_be_looked_at(tmp_path):
    database = tmp_path / f"{'a' * 24}.db"
    writer = Store(database)
    writer.open({"folder": "/w", "version": "1"})
    try:
        assert kept.look(database) == kept.Kept("/w", 0, 0)
    finally:
        writer.close()


def test_what_cannot_be_read_is_none(tmp_path):
    database = tmp_path / f"{'a' * 24}.db"
    assert kept.look(database) is None
    database.write_bytes(b"no database, and longer than the header of one" * 10)
    assert kept.look(database) is None
    database.unlink()
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA user_version = 99")
        other.execute("CREATE TABLE files (path)")
    assert kept.look(database) is None


async def test_clearing_takes_all_that_nobody_holds_and_nothing_else(tmp_path):
    store = tmp_path / "index"
    held, free = await indexed(tmp_path / "v", store, FILES), await indexed(tmp_path / "w", store, FILES)
    free.with_suffix(".damaged").write_bytes(b"def f")
    (store / "notes.db").write_bytes(b"not ours")
    assert sorted(kept.databases(store)) == sorted([held, free])
    lock = Lock(held.with_suffix(".lock"))
    try:
        assert lock.is_free()
        size = kept.n_bytes(free)
        assert kept.clear(store) == kept.Cleared(workspaces=1, bytes=size, held=1)
    finally:
        lock.release()
    assert {name.partition(".")[0] for name in names(store)} == {held.stem, "notes"}
    assert kept.clear(store).workspaces == 1
    assert names(store) == ["notes.db"]


def test_where_nothing_is_there_is_nothing_to_do(tmp_path):
    assert kept.clear(tmp_path / "none") == kept.Cleared()
    (tmp_path / f"{'a' * 24}.lock").write_bytes(b"")
    assert kept.databases(tmp_path) == []
