"""The tier on disk in trouble: one warning, and nothing else."""

import asyncio
import os
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import closing

import pytest

from monkeycode_lsp.recall import disk_store
from tests.unit.recall import disks

NOT_ROOT = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
ROOT = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def database(folder):
    return folder / disk_store.FILE


async def filled(folder):
    """A folder that somebody used before."""
    async with disks.window(folder) as one:
        for number in range(30):
            await one.keep(number, f"text {number} " * 100)


async def works_but_for_the_disk(one, *words):
    """It was told once, with these words; asking goes on at no cost."""
    told = await one.told()
    await one.done()
    for word in words:
        assert word in told
    assert one.patience_s == 0
    for number in range(100):
        one.put(disks.key(number), disks.record("a"))
        assert await one.get(disks.key(number)) is None
    await one.done()
    assert one.said == [told]


# Folders


async def test_below_a_plain_file(tmp_path):
    # grantjenks/python-diskcache#113
    (tmp_path / "file").write_text("dear")
    async with disks.window(tmp_path / "file" / "cache") as one:
        assert await one.get(disks.key(1)) is None
        await works_but_for_the_disk(one, str(tmp_path / "file" / "cache"), "Not a directory", "`cache.directory`")
    assert (tmp_path / "file").read_text() == "dear"


async def test_a_plain_file_in_place_of_the_folder(folder):
    folder.write_text("dear")
    async with disks.window(folder) as one:
        one.put(disks.key(1), disks.record("a"))
        await works_but_for_the_disk(one, "File exists")


@NOT_ROOT
async def test_a_folder_that_cannot_be_written(folder):
    folder.mkdir(mode=0o555)
    async with disks.window(folder) as one:
        await one.done()
        await works_but_for_the_disk(one, "Permission denied")


@ROOT
async def test_a_folder_of_another_user(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    async with disks.window(folder) as one:
        await one.done()
        await works_but_for_the_disk(one, "belongs to another user")
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes are a matter of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o720, 0o1777])
async def test_a_folder_that_others_can_write_to(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    async with disks.window(folder) as one:
        await one.done()
        await works_but_for_the_disk(one, "Other users can write", "chmod")
    assert list(folder.iterdir()) == []


NAMES = ["secret", disk_store.FILE, disk_store.JOURNAL]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "link to nothing"])
async def test_what_is_no_plain_file_is_not_waited_for(tmp_path, folder, name, kind):
    await filled(folder)
    found = folder / name
    if found.exists():
        found.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").write_bytes(b"")
    before = (tmp_path / "elsewhere").read_bytes()
    if kind == "pipe":
        os.mkfifo(found)
    elif kind == "folder":
        found.mkdir()
    else:
        found.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nothing"))
    async with disks.window(folder) as one:
        await one.done()
        await works_but_for_the_disk(one, f"({name} in it is not a plain file)", "Remove that file")
    assert (tmp_path / "elsewhere").read_bytes() == before
    assert not (tmp_path / "nothing").exists()


@ROOT
@pytest.mark.parametrize("name", NAMES)
async def test_a_file_of_another_user_is_not_used(folder, name):
    await filled(folder)
    (folder / name).touch()
    os.chown(folder / name, 65534, 65534)
    before = (folder / name).read_bytes()
    async with disks.window(folder) as one:
        await one.done()
        await works_but_for_the_disk(one, f"({name} in it belongs to another user)")
    assert (folder / name).read_bytes() == before


@ROOT
async def test_a_file_of_another_user_that_takes_the_databases_place_is_not_used(folder, database):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        shutil.copy(database, folder / "copy")
        os.chown(folder / "copy", 65534, 65534)
        (folder / "copy").replace(database)
        await one.keep(2, "confidential")
        await works_but_for_the_disk(one, "belongs to another user")
    assert b"confidential" not in database.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="links are another thing on Windows")
async def test_a_link_that_takes_the_databases_place_is_not_followed(folder, database, tmp_path):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        database.rename(tmp_path / "elsewhere")
        database.symlink_to(tmp_path / "elsewhere")
        await one.keep(2, "confidential")
        await works_but_for_the_disk(one, "is not a plain file")
    assert b"confidential" not in (tmp_path / "elsewhere").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
async def test_a_folder_whose_name_is_no_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.write_text("")
    async with disks.window(folder) as one:
        await one.done()
        (await one.told()).encode()


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
async def test_a_folder_with_an_impossible_name(tmp_path, name):
    async with disks.window(tmp_path / name) as one:
        await one.done()
        await works_but_for_the_disk(one, "cannot be used")


async def test_it_is_tried_again_after_a_rest_and_told_no_more(folder):
    folder.write_text("in the way")
    async with disks.window(folder, rest_s=0.0) as one:
        for number in range(3):
            await one.keep(number, "a")
        await one.told()
        folder.unlink()
        await one.keep(1, "a")
        assert await one.find(1) == disks.record("a")
        await one.done()
        assert len(one.said) == 1


# Locks

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
"""


async def hold_lock(database):
    process = await disks.script(HOLDER, database)
    assert await process.stdout.readline() == b"locked\n"
    return process


async def test_a_lock_that_another_program_holds_when_the_window_starts(folder, database):
    await filled(folder)
    holder = await hold_lock(database)
    async with disks.window(folder) as one:
        start = time.monotonic()
        for _ in range(20):
            assert await one.get(disks.key(1)) is None
        assert time.monotonic() - start < 6
        assert one.patience_s == 0
        await works_but_for_the_disk(one, "locked")
    await holder.communicate(b"\n")


async def test_a_lock_that_another_program_takes_while_the_window_runs(folder, database):
    await filled(folder)
    async with disks.window(folder, rest_s=0.5) as one:
        assert await one.find(1)
        holder = await hold_lock(database)
        start = time.monotonic()
        for number in range(500):
            one.put(disks.key(number), disks.record("a"))  # more than may wait: dropped
            assert await one.get(disks.key(number)) is None
        assert time.monotonic() - start < 6
        assert "locked" in await one.told()
        await holder.communicate(b"\n")
        async with asyncio.timeout(20):
            while not one.patience_s or await one.find(2) is None:  # noqa: ASYNC110 - the end of a rest is no event
                await asyncio.sleep(0.05)
        assert len(one.said) == 1


async def test_a_short_lock_is_no_trouble(folder, database):
    await filled(folder)
    async with disks.window(folder) as one:
        await one.done()
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            one.put(disks.key(99), disks.record("a"))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
        assert await one.find(99) == disks.record("a")
        assert one.said == []


ENDS = """
import asyncio, pathlib, sys, time
from tests.unit.recall import disks

async def main(folder):
    async with disks.window(pathlib.Path(folder)) as one:
        assert await one.get(disks.key(1)) is None
        one.put(disks.key(1), disks.record("a"))

asyncio.run(main(*sys.argv[1:]))
print("ends", flush=True)
"""


async def test_a_lock_does_not_keep_a_process_from_its_end(folder, database):
    await filled(folder)
    holder = await hold_lock(database)
    process = await disks.script(ENDS, folder)
    assert await process.stdout.readline() == b"ends\n"
    start = time.monotonic()
    assert await process.wait() == 0
    assert time.monotonic() - start < 6
    await holder.communicate(b"\n")


async def test_a_disk_that_hangs(folder):
    released = threading.Event()

    def connect(path, lock_s):
        released.wait(20)
        return disk_store.connect(path, lock_s)

    one = disks.Window(folder, connect=connect)
    start = time.monotonic()
    for number in range(500):
        one.put(disks.key(number), disks.record("a"))
        assert await one.get(disks.key(number)) is None
    assert one.patience_s == 0
    await one.aclose()
    assert time.monotonic() - start < 6
    assert one.said == []
    released.set()


# Damage


def junk_head(database):
    with database.open("r+b") as file:
        file.write(b"junk" * 1_000)


def cut_off(database):
    os.truncate(database, 5_000)


def cut_to_nothing(database):
    os.truncate(database, 0)


def junk_body(database):
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (database.stat().st_size - 4096))


def foreign(database):
    database.write_bytes(b"")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE Settings (a, b, c)")


def foreign_settings(database):
    """Of a version that knows more, or of somebody who wishes us ill."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO Settings VALUES ('disk_unknown', 1)")


DAMAGE = [junk_head, cut_off, junk_body, foreign, foreign_settings]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_database_that_was_damaged_before(folder, database, damage):
    # grantjenks/python-diskcache#67, #164, #279
    await filled(folder)
    damage(database)
    damaged = database.read_bytes()
    async with disks.window(folder) as one:
        await one.find(1)
        await one.keep(1, "anew")
        assert await one.find(1) == disks.record("anew")
        for number in range(2, 40):
            assert await one.find(number) is None
        told = await one.told()
        assert "damaged" in told
        assert str(folder) in told
        assert one.said == [told]
    assert (folder / "suggestions.damaged").read_bytes() == damaged or damage is junk_body
    async with disks.window(folder) as other:
        assert await other.find(1) == disks.record("anew")
        assert other.said == []


@pytest.mark.parametrize("damage", [*DAMAGE[:-1], cut_to_nothing])
async def test_a_database_that_is_damaged_while_in_use(folder, database, damage):
    await filled(folder)
    async with disks.window(folder) as one:
        assert await one.find(1)
        damage(database)
        for number in range(40):
            await one.find(number)
            await one.keep(number, "anew")
        assert "damaged" in await one.told()
        assert len(one.said) == 1
        assert await one.find(1) == disks.record("anew")


async def test_a_database_that_is_damaged_again_and_again(folder, database):
    await filled(folder)
    async with disks.window(folder) as one:
        for _ in range(5):
            await one.find(1)
            junk_head(database)
            await one.keep(1, "a")
        await one.done()
        assert one.patience_s == 0
        assert len(one.said) == 1


async def test_a_journal_of_the_damaged_database_is_not_played_into_the_next_one(folder, database):
    await filled(folder)
    junk_head(database)
    (folder / f"{disk_store.FILE}-journal").write_bytes(b"junk" * 100)
    async with disks.window(folder) as one:
        await one.keep(1, "anew")
        assert await one.find(1) == disks.record("anew")
    assert sorted(path.name for path in folder.iterdir()) == ["secret", "suggestions.damaged", "suggestions.db"]


async def test_eight_windows_whose_database_is_damaged_lose_one_file_only(folder, database):
    await filled(folder)
    windows = [disks.Window(folder) for _ in range(8)]
    for one in windows:
        assert await one.find(1)
    damaged = b"junk" * 10_000
    database.write_bytes(damaged)
    async with disks.window(folder) as ninth, asyncio.timeout(60):
        found = []
        while found != [disks.record("anew")] * 8:  # what one keeps while another begins anew can be lost
            await asyncio.gather(*(one.keep(number, "anew") for number, one in enumerate(windows)))
            found = [await ninth.find(number) for number in range(8)]
    for one in windows:
        await one.aclose()
        assert len(one.said) <= 1
    assert (folder / "suggestions.damaged").read_bytes() == damaged


async def test_a_database_that_another_window_has_begun_anew_is_not_set_aside(folder, database):
    await filled(folder)
    late = disk_store.Store(folder, ttl_s=disks.WEEK_S, most_bytes=2**24, connect=disk_store.connect)
    late.open()
    database.rename(folder / "damaged")
    await filled(folder)
    late.set_aside()
    late.close()
    assert sorted(path.name for path in folder.iterdir()) == ["damaged", "secret", disk_store.FILE]


# Deletion


async def test_the_folder_is_deleted_while_in_use(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        shutil.rmtree(folder)
        await one.keep(2, "b")
        assert [await one.find(number) for number in (1, 2)] == [None, disks.record("b")]
        assert "deleted" in await one.told()
        shutil.rmtree(folder)
        await one.keep(3, "c")
        await one.done()
        assert len(one.said) == 1


async def test_the_database_is_deleted_while_in_use(folder, database):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        database.unlink()
        await one.keep(2, "b")
        assert [await one.find(number) for number in (1, 2)] == [None, disks.record("b")]
        assert "deleted" in await one.told()


async def test_a_trouble_that_leads_to_another_one_is_told_once(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        shutil.rmtree(folder)
        folder.write_text("in the way")
        await one.keep(2, "b")
        await works_but_for_the_disk(one, "deleted")


async def test_another_window_began_anew(folder, database):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        database.rename(folder / "elsewhere")
        await filled(folder)
        assert await one.find(1) == disks.record("text 1 " * 100)
        assert one.said == []


# Space


def small(path, lock_s):
    """A disk with room for sixteen pages."""
    connection = disk_store.connect(path, lock_s)
    connection.execute("PRAGMA max_page_count = 16")
    return connection


async def test_a_full_disk(folder):
    async with disks.window(folder, connect=small) as one:
        for number in range(20):
            await one.keep(number, "a" * 4_000)
        await works_but_for_the_disk(one, "no space left")
    async with disks.window(folder) as other:
        assert await other.find(0) == disks.record("a" * 4_000)  # what was there before is whole
        assert other.said == []


LIMITED = """
import asyncio, pathlib, resource, sys
from tests.unit.recall import disks

async def main(folder, limit):
    async with disks.window(pathlib.Path(folder)) as one:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
        for number in range(30):
            await one.keep(number, "a" * 4_000)
        await one.told()
        await one.done()
        print(len(one.said), one.patience_s)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
@pytest.mark.parametrize("limit", [0, 20, 60_000])
async def test_a_limit_on_the_size_of_files(folder, limit):
    process = await disks.script(LIMITED, folder, limit)
    assert (await process.communicate())[0] == b"1 0.0\n"


# Calls that fail, as they do on network drives


class Failing(sqlite3.Connection):
    """Calls fail after some good ones."""

    n_good = 0
    n_calls = 0
    code = 0

    def execute(self, sql, parameters=(), /):
        type(self).n_calls += 1
        if type(self).n_calls <= self.n_good:
            return super().execute(sql, parameters)
        error = sqlite3.OperationalError("database is locked" if self.code == sqlite3.SQLITE_BUSY else "disk I/O error")
        error.sqlite_errorcode = self.code
        raise error


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_BUSY])
@pytest.mark.parametrize("n_good", [0, 5, 40, *range(63, 73)])
async def test_calls_that_fail_from_some_time_on(folder, n_good, code):
    # grantjenks/python-diskcache#13, #198, #218
    failing = type("Shim", (disk_store.Connection, Failing), {"n_good": n_good, "code": code})

    def connect(path, lock_s):
        return sqlite3.connect(path, timeout=lock_s, isolation_level=None, factory=failing)

    async with disks.window(folder, connect=connect) as one:
        for number in range(40):
            await one.keep(number, "a")
        await one.told()
        await works_but_for_the_disk(one, str(folder))
        assert failing.n_calls < n_good + 5
