"""The database of the index when it is damaged, locked, out of reach, or of another version."""

import sqlite3
import stat
import sys
from contextlib import closing

import pytest

from tests.unit.index.workspaces import window, write

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are a matter of POSIX")


@pytest.fixture
def top(tmp_path):
    write(tmp_path / "work", {"a.py": "def one(): pass\n", "b.py": "def two(): pass\n"})
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cache" / "index"


async def made(top, store):
    """The database, after a first window."""
    async with window(top, store) as index:
        await index.ready()
    (path,) = store.glob("*.db")
    return path


@posix
async def test_nobody_else_can_read_it(top, store):
    store.mkdir(parents=True)
    store.chmod(0o755)
    async with window(top, store) as index:
        await index.ready()
        assert stat.S_IMODE(store.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in store.iterdir()} == {0o600}


@pytest.mark.parametrize("content", [b"no database at all" * 1_000, b"SQLite format 3\0" + b"\xff" * 10_000], ids=["other", "header"])
async def test_a_damaged_database_is_set_aside_and_told_once(top, store, content):
    path = await made(top, store)
    path.write_bytes(content)
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]
        (warning,) = index.warned
        assert "damaged" in warning
        assert path.with_suffix(".damaged").read_bytes() == content


async def test_damage_behind_its_header_is_found_by_whoever_meets_it(top, store):
    write(top, {f"m{number}.py": "".join(f"def f{number}_{n}(): pass\n" for n in range(40)) for number in range(60)})
    path = await made(top, store)
    size = path.stat().st_size
    async with window(top, store, rest_s=0.0) as index:
        await index.ready()
        with path.open("r+b") as file:
            file.seek(8_192)
            file.write(b"\xa5" * (size - 8_192))
        async with window(top, store, rest_s=0.0) as other:
            # Either the first process meets it while it writes, or a reader does and tells its own process, which waits for the lock.
            await other.find(*(f"f{number}_0" for number in range(60)))
            write(top, {"c.py": "def three(): pass\n"})
            index.changed([top / "c.py"])

            async def is_so():
                await index.find("one", "f7_1", "f59_1", "three")
                return await index.find("three") == ["c.py:three"] and await index.find("f59_39") != []

            await index.until(is_so)


async def test_another_version_is_begun_anew_without_a_word(top, store):
    path = await made(top, store)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("CREATE TABLE other (x)")
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]
        assert index.warned == []


async def test_tables_that_are_not_ours_are_made_anew(top, store):
    path = await made(top, store)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE symbols")
        db.execute("CREATE TABLE symbols (x)")
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]


@posix
async def test_a_cache_folder_that_cannot_be_used_is_told_once_and_costs_nothing_else(top, tmp_path):
    (tmp_path / "cache").write_text("a file")
    async with window(top, tmp_path / "cache" / "index") as index:
        await index.until(lambda: index.states and index.states[-1].state == "off")
        assert await index.find("one") == []
        await index.until(lambda: index.warned)
        assert len(index.warned) == 1
        assert "cannot be used" in index.warned[0]
        index.changed([top / "a.py"])


async def test_a_database_that_another_program_keeps_locked_is_off_for_now(top, store):
    path = await made(top, store)
    write(top, {"c.py": "def three(): pass\n"})
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        async with window(top, store) as index:
            await index.until(lambda: index.states and index.states[-1].state == "off")
            await index.until(lambda: index.warned)
            assert "locked" in index.warned[0]
            assert await index.find("one") in ([], ["a.py:one"])
        db.execute("ROLLBACK")


async def test_it_goes_on_in_a_new_database_when_the_folder_is_deleted(top, store):
    path = await made(top, store)
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]
        for file in store.iterdir():
            file.unlink()
        assert await index.find("one") == []
        await index.comes(["a.py:one"], "one")
        assert path.exists()
