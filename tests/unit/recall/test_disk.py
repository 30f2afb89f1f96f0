"""The tier on disk while all is well."""

import asyncio
import os
import pickle
import stat
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import disk_folder, disk_store, signature
from tests.unit.recall import disks

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are a matter of POSIX")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_another_window_finds_what_one_has_kept(folder):
    async with disks.window(folder) as one, disks.window(folder) as other:
        await one.keep(1, "return x\n")
        assert await other.find(1) == disks.record("return x\n")
        assert await other.find(2) is None
        assert one.said + other.said == []


async def test_what_is_kept_survives_the_windows(folder):
    async with disks.window(folder) as one:
        one.put(disks.key(1), disks.record("a"))  # nothing is waited for: closing finishes it
    async with disks.window(folder) as other:
        assert await other.find(1) == disks.record("a")


async def test_the_first_look_up_of_a_window_waits_for_the_database(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
    async with disks.window(folder) as other:
        assert other.patience_s > 0.1
        other.open()
        assert await other.get(disks.key(1)) == disks.record("a")
        assert 0 < other.patience_s < 0.1


def test_nothing_is_imported_or_created_before_it_is_used(folder):
    text = f"""
import sys, pathlib
from monkeycode_lsp.recall.disk import Disk
Disk(pathlib.Path({str(folder)!r}), ttl_s=1, most_bytes=1, warn=print)
sys.exit("diskcache" in sys.modules or "sqlite3" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
    assert not folder.exists()


async def test_the_newest_record_of_a_place_counts(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        await one.keep(1, "b")
        assert await one.find(1) == disks.record("b")


@posix
async def test_nobody_else_can_read_it(folder):
    before = os.umask(0)
    try:
        async with disks.window(folder) as one:
            await one.keep(1, "a")
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    finally:
        os.umask(before)


async def test_no_text_but_the_suggestion_lies_on_disk_and_keys_are_hashed(folder):
    window = Window(
        prefix="password_of_prefix = ", suffix="\ntext_of_suffix", language="python", path="secret_path.py", repository="repo_name"
    )
    key = signature.key("scope_of_it", signature.place(window))
    async with disks.window(folder) as one:
        one.put(key, disks.record("the_suggestion"))
        await one.done()
    there = bytes_of(folder)
    assert b"the_suggestion" in there
    for text in (b"password_of_prefix", b"text_of_suffix", b"secret_path", b"repo_name", b"scope_of_it", key):
        assert text not in there


async def test_two_users_hash_the_same_place_differently(tmp_path):
    names = []
    for user in ("one", "other"):
        async with disks.window(tmp_path / user) as one:
            await one.keep(1, "a")
        names += disks.sql(tmp_path / user, "SELECT key FROM Cache")
    assert len(set(names)) == 2


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


async def test_a_pickled_value_is_never_loaded(folder, tmp_path):
    data = pickle.dumps(Planted(str(tmp_path / "loaded")))
    (tmp_path / "planted.val").write_bytes(data)
    async with disks.window(folder) as one:
        for number in range(4):
            await one.keep(number, "a")
        names = [name for (name,) in disks.sql(folder, "SELECT key FROM Cache ORDER BY rowid")]
        change = "UPDATE Cache SET mode = ?, value = ?, filename = ? WHERE key = ?"
        disks.sql(folder, change, 4, data, None, names[0])
        disks.sql(folder, change, 4, None, "../planted.val", names[1])
        disks.sql(folder, change, 2, None, "../planted.val", names[2])
        assert [await one.find(number) for number in range(4)] == [None, None, None, disks.record("a")]
        assert one.said == []
    assert not (tmp_path / "loaded").exists()


async def test_nothing_is_ever_pickled(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a" * 40_000)
        assert disks.sql(folder, "SELECT DISTINCT mode, filename, typeof(key), typeof(value) FROM Cache") == [(1, None, "blob", "blob")]
        assert await one.find(1) == disks.record("a" * 40_000)


async def test_a_record_that_was_changed_on_disk_is_a_miss(folder):
    async with disks.window(folder) as one:
        for number in (1, 2, 3):
            await one.keep(number, f"text {number}")
        values = disks.sql(folder, "SELECT key, value FROM Cache ORDER BY rowid")
        disks.sql(folder, "UPDATE Cache SET value = ? WHERE key = ?", values[0][1].replace(b"text", b"evil"), values[0][0])
        disks.sql(folder, "UPDATE Cache SET value = ? WHERE key = ?", values[0][1], values[1][0])  # moved to another place
        assert [await one.find(number) for number in (1, 2, 3)] == [None, None, disks.record("text 3")]


async def test_it_is_good_for_its_time_only(folder):
    async with disks.window(folder, ttl_s=1000) as one:
        await one.keep(1, "a")
        ((left,),) = disks.sql(folder, "SELECT expire_time - store_time FROM Cache")
        assert left == pytest.approx(1000)
        disks.sql(folder, "UPDATE Cache SET expire_time = store_time - 1")
        assert await one.find(1) is None
        await one.keep(2, "b")
        assert len(disks.sql(folder, "SELECT * FROM Cache")) == 1


def store(folder, *, ttl_s, at=None):
    """A database, opened by somebody whose clock stands at `at`."""
    clock = {} if at is None else {"wall_clock": lambda: at}
    opened = disk_store.Store(folder, ttl_s=ttl_s, most_bytes=2**24, connect=disk_store.connect, **clock)
    opened.open()
    return closing(opened)


def test_whoever_reads_it_decides_how_old_it_may_be(folder):
    now = time.time()
    with store(folder, ttl_s=disks.WEEK_S, at=now - 60) as writer:
        writer.put(disks.key(1), disks.record("a"))
    with store(folder, ttl_s=59, at=now) as hasty, store(folder, ttl_s=61, at=now) as patient:
        assert hasty.get(disks.key(1)) is None
        assert patient.get(disks.key(1)) == disks.record("a")


def test_what_was_kept_before_the_clock_was_set_back_counts_as_new(folder):
    now = time.time()
    with store(folder, ttl_s=disks.WEEK_S, at=now + 1_000_000) as writer:
        writer.put(disks.key(1), disks.record("a"))
    with store(folder, ttl_s=1, at=now) as reader:
        assert reader.get(disks.key(1)) == disks.record("a")


async def test_its_age_cannot_be_changed_on_disk(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        ((value,),) = disks.sql(folder, "SELECT value FROM Cache")
        later = struct.pack(">d", struct.unpack_from(">d", value, 16)[0] + 1)
        disks.sql(folder, "UPDATE Cache SET value = ?", value[:16] + later + value[24:])
        assert await one.find(1) is None


async def test_a_text_that_is_no_text_is_not_kept_and_costs_nothing(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        await one.keep(2, "half a pair: \ud83d")
        assert [await one.find(number) for number in (1, 2)] == [disks.record("a"), None]
        assert one.said == []


async def test_what_is_too_long_to_be_ours_is_a_miss_and_is_not_read(folder):
    async with disks.window(folder, most_bytes=2**30) as one:
        for number in (1, 2):
            await one.keep(number, f"text {number}")
        ((name, _), _) = disks.sql(folder, "SELECT key, value FROM Cache ORDER BY rowid")
        disks.sql(folder, "UPDATE Cache SET value = zeroblob(20000000) WHERE key = ?", name)
        tracemalloc.start()
        try:
            assert await one.find(1) is None
            assert tracemalloc.get_traced_memory()[1] < 5_000_000
        finally:
            tracemalloc.stop()
        assert await one.find(2) == disks.record("text 2")
        await one.keep(1, "anew")
        assert await one.find(1) == disks.record("anew")
        assert one.said == []


async def test_it_takes_no_more_of_the_disk_than_it_may(folder):
    async with disks.window(folder, most_bytes=300_000) as one:
        for number in range(300):
            await one.keep(number, "a" * 4_000)
        assert (folder / disk_store.FILE).stat().st_size < 350_000
        assert len(disks.sql(folder, "SELECT key FROM Cache")) > 30
        assert await one.find(0) is None
        assert await one.find(299) == disks.record("a" * 4_000)


async def test_making_room_removes_no_files_that_the_database_names(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("dear")
    async with disks.window(folder, most_bytes=50_000) as one:
        await one.keep(0, "a")
        disks.sql(folder, "UPDATE Cache SET filename = ?, expire_time = store_time - 1", str(victim))
        for number in range(1, 20):
            await one.keep(number, "a" * 4_000)
        assert await one.find(0) is None
    assert victim.read_text() == "dear"


async def test_what_is_too_large_is_not_kept(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a" * 70_000)
        assert disks.sql(folder, "SELECT * FROM Cache") == []


async def test_a_folder_whose_name_looks_like_a_variable_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("ELSEWHERE", "elsewhere")
    async with disks.window(tmp_path / "$ELSEWHERE") as one:
        await one.keep(1, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["$ELSEWHERE"]


@posix
async def test_a_link_to_a_folder_of_ones_own_is_fine(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    async with disks.window(tmp_path / "cache") as one:
        await one.keep(1, "a")
        assert await one.find(1) == disks.record("a")
        assert one.said == []


EIGHTH = """
import asyncio, pathlib, sys
from tests.unit.recall import disks

async def main(folder, number):
    async with disks.window(pathlib.Path(folder)) as one:
        print("ready", flush=True)
        sys.stdin.readline()
        await one.keep(int(number), "text " + number)
        print(one.said, await one.find(int(number)) is not None, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_eight_processes_begin_at_once_on_a_fresh_folder(folder):
    # grantjenks/python-diskcache#85
    processes = [await disks.script(EIGHTH, folder, number) for number in range(8)]
    for process in processes:
        assert await process.stdout.readline() == b"ready\n"
    for process in processes:
        process.stdin.write(b"\n")
    assert [(await process.communicate())[0] for process in processes] == [b"[] True\n"] * 8
    async with disks.window(folder) as ninth:
        assert [await ninth.find(number) for number in range(8)] == [disks.record(f"text {number}") for number in range(8)]
    assert sorted(path.name for path in folder.iterdir()) == ["secret", "suggestions.db"]


def test_whoever_makes_the_secret_first_makes_it_for_all(tmp_path):
    ready = threading.Barrier(8)

    def find(number):
        ready.wait(20)
        return disk_folder.secret(tmp_path / str(number))

    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            (tmp_path / str(number)).mkdir()
            assert len(set(threads.map(find, [number] * 8))) == 1
            assert [path.name for path in (tmp_path / str(number)).iterdir()] == ["secret"]


@pytest.mark.parametrize("left", [b"", b"short"])
async def test_a_secret_that_was_cut_off_is_made_anew(folder, left):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
    (folder / "secret").write_bytes(left)
    async with disks.window(folder) as one:
        assert await one.find(1) is None
        await one.keep(1, "b")
        assert await one.find(1) == disks.record("b")
        assert one.said == []
    assert len((folder / "secret").read_bytes()) == 32


async def test_closing_twice_and_using_it_afterwards_is_harmless(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        await asyncio.gather(one.aclose(), one.aclose())
        one.put(disks.key(2), disks.record("b"))
        one.open()
        assert await one.get(disks.key(1)) is None
        assert one.patience_s == 0


async def test_closing_what_was_never_used_creates_nothing(folder):
    async with disks.window(folder):
        pass
    assert not folder.exists()


async def test_an_ask_that_is_cancelled_while_it_looks_leaves_nothing_behind(folder):
    async with disks.window(folder) as one:
        await one.keep(1, "a")
        look = asyncio.create_task(one.get(disks.key(1)))
        await asyncio.sleep(0)
        look.cancel()
        await asyncio.wait({look})
        assert look.cancelled()
        assert await one.find(1) == disks.record("a")
