"""`monkeycode cache` and `monkeycode cache clear`."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.cli import cache, indexes, stored
from monkeycode_lsp.index.lock import Lock
from monkeycode_lsp.recall import disk, disk_care
from monkeycode_lsp.recall.disk_store import DAMAGED, FILE
from tests import redis_server, servers
from tests.redis_server import RedisServer
from tests.unit.index.workspaces import indexed
from tests.unit.recall.disks import sql, window

needs_owners = pytest.mark.skipif(sys.platform == "win32", reason="a user's folders are private on Windows")


@pytest.fixture
def folder(home):
    return home / "cache" / "suggestions"


async def filled(folder, n=3):
    """A folder that a window has kept suggestions in."""
    async with window(folder) as opened:
        for number in range(n):
            await opened.keep(number, f"text {number}\n")


def rows(done):
    """What is shown, by its name; a remedy stands on a line of its own."""
    found, name = {}, ""
    for line in done.stdout.splitlines():
        name = line[:10].strip() or name
        found[name] = "\n".join(filter(None, (found.get(name, ""), line[10:])))
    return found


def text_in(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


# Showing


def test_without_a_folder_nothing_is_kept_and_none_is_created(run, folder):
    done = run("cache")
    assert done.exit_code == 0
    assert rows(done)["folder"] == str(folder)
    assert rows(done)["kept"] == "nothing"
    assert rows(done)["state"] == "in order"
    assert rows(done)["team"] == "none (cache.sharedUrl)"
    assert not folder.exists()


async def test_what_is_kept_is_counted_and_its_age_told(run, folder):
    await filled(folder)
    sql(folder, "UPDATE Cache SET store_time = store_time - 2 * 86400 - 60 WHERE rowid = 1")
    sql(folder, "UPDATE Cache SET store_time = store_time - 4000 WHERE rowid > 1")
    sql(folder, "UPDATE Cache SET expire_time = 1.0 WHERE rowid = 2")
    found = rows(await asyncio.to_thread(run, "cache"))
    size = cache.size((folder / FILE).stat().st_size)
    assert found["kept"] == f"3 suggestions, 1 of them out of date, {size}, 1 hour to 2 days old"
    assert found["limits"] == "7 days (cache.diskTtlSeconds), 268 MB (cache.diskBytes)"


async def test_json_is_for_programs(run, folder):
    await filled(folder)
    done = await asyncio.to_thread(run, "cache", "--json")
    told = json.loads(done.stdout)
    assert told["disk"]["folder"] == str(folder)
    assert told["disk"]["suggestions"] == 3
    assert told["disk"]["bytes"] == (folder / FILE).stat().st_size
    assert 0 <= told["disk"]["newestSeconds"] <= told["disk"]["oldestSeconds"] < 600
    assert told["ttlSeconds"] == 604_800
    assert told["team"] is None


async def test_while_a_window_has_it_open_it_is_in_order(run, folder):
    async with window(folder) as opened:
        await opened.keep(1, "x")
        done = await asyncio.to_thread(run, "cache")
        assert (done.exit_code, rows(done)["state"]) == (0, "in order")
        assert await opened.find(1)
        assert opened.said == []


def test_the_folder_is_the_one_that_a_server_uses(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    assert disk.folder("") == home / "cache" / "suggestions"
    assert disk.folder("~/here") == home / "here"


def test_settings_that_cannot_be_used_are_named_and_the_rest_is_shown(run, user_settings):
    user_settings("[cache]\ndiskBytes = -1\n")
    done = run("cache")
    assert "Setting cache.diskBytes" in done.stderr
    assert rows(done)["state"] == "in order"


def test_a_home_that_does_not_exist_is_one_sentence(run, user_settings):
    user_settings('[cache]\ndirectory = "~no-such-user/x"\n')
    done = run("cache")
    assert done.exit_code == 1
    assert rows(done)["state"].startswith("`cache.directory` begins with a home folder that does not exist.\n→ ")
    assert run("cache", "clear", "--yes").exit_code == 1


def test_a_name_that_no_folder_can_have_is_one_sentence(run, user_settings):
    user_settings('[cache]\ndirectory = "/a\\u0000b"\n')
    done = run("cache")
    assert done.exit_code == 1
    assert "cannot be used" in rows(done)["state"]


def test_what_stands_in_the_folders_place_is_told(run, user_settings, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for name in ("file", "file/below"):
        user_settings(f"[cache]\ndirectory = '{tmp_path}/{name}'\n")
        done = run("cache")
        assert done.exit_code == 1
        assert "cannot be used (Not a directory), so suggestions are kept in memory only.\n→ " in rows(done)["state"]


@needs_owners
async def test_a_folder_that_others_can_write_to_is_told_in_the_words_of_the_warning(run, folder):
    await filled(folder)
    folder.chmod(0o777)
    async with window(folder) as opened:
        opened.open()
        warning = await opened.told()
    done = await asyncio.to_thread(run, "cache")
    assert done.exit_code == 1
    assert rows(done)["state"].replace("\n→ ", "  ") == warning
    refused = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: Nothing was removed. Other users can write")
    assert b"text 1" in text_in(folder)


@needs_owners
async def test_a_folder_of_somebody_else_is_left_alone(run, folder):
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    await filled(folder)
    os.chown(folder, 12_345, -1)
    done = await asyncio.to_thread(run, "cache")
    assert done.exit_code == 1
    assert "belongs to another user" in rows(done)["state"]
    refused = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert "belongs to another user" in refused.stderr
    assert b"text 1" in text_in(folder)


async def test_a_locked_database_is_told_and_what_can_be_read_is(run, folder):
    await filled(folder)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = await asyncio.to_thread(run, "cache")
    assert done.exit_code == 1
    assert "locked" in rows(done)["state"]
    assert rows(done)["kept"].startswith("3 suggestions")


async def test_a_damaged_database_is_told_and_not_touched(run, folder):
    await filled(folder)
    (folder / FILE).write_bytes(b"this is no database" * 500)
    done = await asyncio.to_thread(run, "cache")
    assert done.exit_code == 1
    assert "is damaged; the next window sets it aside" in rows(done)["state"]
    assert "monkeycode cache clear" in rows(done)["state"]
    assert (folder / FILE).read_bytes().startswith(b"this is no")


async def test_what_is_switched_off_is_said_with_what_is_left_of_it(run, folder, user_settings):
    await filled(folder)
    user_settings("[cache]\ndiskTtlSeconds = 0\n")
    found = rows(await asyncio.to_thread(run, "cache"))
    assert found["state"] == "off: `cache.diskTtlSeconds` is 0"
    assert found["kept"].startswith("3 suggestions")
    user_settings("[cache]\nenabled = false\nsharedUrl = 'redis://127.0.0.1:9'\n")
    done = await asyncio.to_thread(run, "cache")
    assert done.exit_code == 0
    assert rows(done)["state"] == "off: `cache.enabled` is false"
    assert rows(done)["team"] == "127.0.0.1:9, off: `cache.enabled` is false"


# A team's cache


@redis_server.needed
def test_a_team_s_cache_that_answers_is_named_without_its_password(run, user_settings, tmp_path):
    with RedisServer(tmp_path / "redis", password="open-sesame") as server:
        user_settings(f"[cache]\nsharedUrl = '{server.url}'\n")
        done = run("cache")
        shown = json.loads(run("cache", "--json").stdout)
        user_settings(f"[cache]\nsharedUrl = '{server.url.replace('open-sesame', 'wrong-word')}'\n")
        refused = run("cache")
    assert done.exit_code == 0
    assert rows(done)["team"].startswith(f"127.0.0.1:{server.port} answers in ")
    assert shown["team"]["answerMs"] > 0
    assert "open-sesame" not in done.output + json.dumps(shown)
    assert refused.exit_code == 1
    assert "does not accept the user name or the password" in rows(refused)["team"]
    assert "wrong-word" not in refused.output


@redis_server.needed
def test_a_team_s_cache_that_is_silent_is_not_waited_for(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        server.hang()
        found = stored.team(config.Cache(shared_url=server.url))
        server.go_on()
    assert found.trouble == "does not answer in time."


def test_a_team_s_cache_that_is_gone_is_told_with_the_remedy(run, user_settings):
    port = servers.unused_port()
    user_settings(f"[cache]\nsharedUrl = 'redis://:open-sesame@127.0.0.1:{port}/0'\n")
    done = run("cache")
    assert done.exit_code == 1
    assert rows(done)["team"].startswith(f"127.0.0.1:{port} cannot be reached.\n→ Check that it runs")
    assert "open-sesame" not in done.output


def test_without_its_package_a_team_s_cache_says_how_to_get_it(run, user_settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "monkeycode_lsp.recall.redis_link", None)
    user_settings("[cache]\nsharedUrl = 'redis://127.0.0.1:9'\n")
    done = run("cache")
    assert done.exit_code == 1
    assert "without the package redis" in rows(done)["team"]
    assert "monkeycode-lsp[shared]" in rows(done)["team"]


def test_an_address_that_is_none_is_told(run, user_settings):
    user_settings("[cache]\nsharedUrl = 'http://:open-sesame@host'\n")
    done = run("cache")
    assert "must begin with redis://" in rows(done)["team"]
    assert "open-sesame" not in done.output


# Clearing


async def test_clear_removes_the_text_and_says_how_much(run, folder):
    await filled(folder)
    done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert done.exit_code == 0, done.output
    assert "Removed 3 suggestions; " in done.stdout
    assert "monkeycode.forget" in done.stdout
    assert b"text" not in text_in(folder)
    assert rows(await asyncio.to_thread(run, "cache"))["kept"] == "nothing"
    assert "Nothing is kept in" in (await asyncio.to_thread(run, "cache", "clear", "--yes")).stdout


@pytest.mark.parametrize("name", [f"{FILE}-journal", DAMAGED])
@pytest.mark.parametrize("with_database", [True, False])
async def test_what_a_crash_left_behind_goes_too(folder, name, with_database):
    await filled(folder)
    if not with_database:
        (folder / FILE).unlink()
    (folder / name).write_bytes(b"text 1")
    disk_care.clear(folder)
    assert b"text" not in text_in(folder)


def test_clear_without_a_folder_has_nothing_to_do(run, folder):
    done = run("cache", "clear")
    assert done.exit_code == 0
    assert done.stdout == f"Nothing is kept in {folder}.\n"
    assert not folder.exists()


async def test_windows_that_are_open_go_on_without_a_word(run, folder):
    async with window(folder) as one, window(folder) as another:
        await one.keep(1, "x")
        assert await another.find(1)
        done = await asyncio.to_thread(run, "cache", "clear", "--yes")
        assert done.exit_code == 0, done.output
        assert await one.find(1) is None
        assert await another.find(1) is None
        await one.keep(2, "y")
        assert (await another.find(2)).text == "y"
        assert one.said == another.said == []


async def test_where_an_open_file_stays_in_its_place_the_rows_go(folder):
    def refuse(_draft, path):
        raise PermissionError(errno.EACCES, "it is open", str(path))

    async with window(folder) as opened:
        await opened.keep(1, "text 1")
        await opened.keep(2, "text 1" * 1000)
        assert disk_care.clear(folder, replace=refuse) > 0
        assert sorted(path.name for path in folder.iterdir()) == ["secret", FILE]
        assert b"text 1" not in text_in(folder)
        assert await opened.find(1) is None
        assert opened.said == []


async def test_a_lock_that_is_held_hinders_no_clearing(run, folder):
    await filled(folder)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert done.exit_code == 0, done.output
    assert b"text" not in text_in(folder)


async def test_a_damaged_database_can_be_removed(run, folder):
    await filled(folder)
    (folder / FILE).write_bytes(b"this is no database" * 500)
    done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert done.stdout.startswith("Removed what was kept; 10 kB are free again.")
    async with window(folder) as opened:
        await opened.keep(1, "x")
        assert opened.said == []


async def test_what_is_not_ours_stays(run, folder):
    await filled(folder)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "cache.db").write_text("another program's", encoding="utf-8")
    (folder / "suggestions").mkdir()
    (folder / "suggestions" / FILE).write_text("mine too", encoding="utf-8")
    secret = (folder / "secret").read_bytes()
    assert (await asyncio.to_thread(run, "cache", "clear", "--yes")).exit_code == 0
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "cache.db").read_text() == "another program's"
    assert (folder / "suggestions" / FILE).read_text() == "mine too"
    assert (folder / "secret").read_bytes() == secret


@pytest.mark.parametrize("name", [FILE, f"{FILE}-journal", DAMAGED])
async def test_a_link_is_not_followed(run, folder, tmp_path, name):
    await filled(folder)
    precious = tmp_path / "precious.db"
    (folder / FILE).rename(precious)
    (folder / name).symlink_to(precious)
    before = precious.read_bytes()
    done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert done.exit_code == 1
    assert f"{folder / name} is a link or a folder, so it is none of ours." in done.stderr
    assert precious.read_bytes() == before
    assert (folder / name).is_symlink()


async def test_a_folder_that_cannot_be_written_is_one_sentence(run, folder):
    if os.name == "nt" or not os.geteuid():
        pytest.skip("who may do everything is not hindered")
    await filled(folder)
    folder.chmod(0o500)
    done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    shown = await asyncio.to_thread(run, "cache")
    folder.chmod(0o700)
    assert done.exit_code == shown.exit_code == 1
    assert done.stderr.startswith("Error: Nothing was removed. The cache folder")
    assert "Permission denied" in rows(shown)["state"]


@pytest.mark.parametrize("name", [FILE, "secret"])
async def test_a_file_that_cannot_be_used_is_told(run, folder, name):
    if os.name == "nt" or not os.geteuid():
        pytest.skip("who may do everything is not hindered")
    await filled(folder)
    (folder / name).chmod(0o400 if name == FILE else 0)
    shown = await asyncio.to_thread(run, "cache")
    assert shown.exit_code == 1
    assert "Permission denied" in rows(shown)["state"]


async def test_what_is_no_file_is_told(run, folder):
    await filled(folder)
    (folder / "secret").unlink()
    (folder / "secret").mkdir()
    shown = await asyncio.to_thread(run, "cache")
    assert shown.exit_code == 1
    assert "cannot be used" in rows(shown)["state"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
async def test_a_pipe_is_not_waited_for(run, folder):
    await filled(folder)
    (folder / "secret").unlink()
    os.mkfifo(folder / "secret")
    shown = await asyncio.to_thread(run, "cache")
    assert shown.exit_code == 1
    assert "secret in it is not a plain file" in rows(shown)["state"]


async def test_where_nobody_can_be_asked_nothing_is_removed(run, folder):
    await filled(folder)
    done = await asyncio.to_thread(run, "cache", "clear")
    assert done.exit_code == 1
    assert done.stderr == "Error: Nothing was removed: nobody is here to agree.\nRun it with --yes.\n"
    assert b"text 1" in text_in(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are another thing on Windows")
@pytest.mark.parametrize(("answer", "left"), [("n", True), ("y", False)])
def test_on_a_terminal_it_asks_first(home, folder, answer, left):
    import pty  # noqa: PLC0415 - not on every system

    asyncio.run(filled(folder))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "monkeycode_lsp", "cache", "clear"],
        env=os.environ | {"MONKEYCODE_HOME": str(home)}, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"Remove 3 suggestions" not in shown:
        shown += os.read(ours, 65_536)
    assert b"text 1" in text_in(folder)
    os.write(ours, f"{answer}\n".encode())
    assert process.wait(60) == 0
    os.close(ours)
    assert (b"text 1" in text_in(folder)) is left


def test_json_does_not_go_with_clear(run):
    assert run("cache", "--json", "clear", "--yes").exit_code == 2


# The index of workspaces


async def test_what_the_index_takes_is_told(run, tmp_path):
    assert rows(await asyncio.to_thread(run, "cache"))["index"] == "nothing"
    database = await indexed(tmp_path / "w", indexes.folder(), {"a.py": "def secret():\n    pass\n"})
    found = rows(await asyncio.to_thread(run, "cache"))["index"].replace("\n", "")
    assert found.startswith("1 workspace, ")
    assert found.endswith(str(database.parent))
    told = json.loads((await asyncio.to_thread(run, "cache", "--json")).stdout)["index"]
    assert told["workspaces"] == 1
    assert told["bytes"] >= database.stat().st_size


async def test_clear_takes_the_index_too(run, tmp_path, folder):
    database = await indexed(tmp_path / "w", indexes.folder(), {"a.py": "def secret():\n    pass\n"})
    assert (await asyncio.to_thread(run, "cache", "clear")).exit_code == 1  # nobody is here to agree
    assert database.exists()
    done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Removed the index of 1 workspace; ")
    assert list(database.parent.iterdir()) == []
    assert "Nothing is kept in" in (await asyncio.to_thread(run, "cache", "clear", "--yes")).stdout


async def test_clear_leaves_the_index_that_an_editor_has_open_and_says_so(run, tmp_path, folder):
    await filled(folder)
    database = await indexed(tmp_path / "w", indexes.folder(), {"a.py": "def secret():\n    pass\n"})
    lock = Lock(database.with_suffix(".lock"))
    try:
        assert lock.is_free()
        done = await asyncio.to_thread(run, "cache", "clear", "--yes")
    finally:
        lock.release()
    assert "Removed 3 suggestions; " in done.stdout
    assert "Left the index of 1 workspace that editors have open: close them, and run this again." in done.stdout
    assert database.exists()


def test_an_index_that_is_off_says_by_which_setting(run, user_settings):
    user_settings("[context]\nindex = false\n")
    assert rows(run("cache"))["index"] == "nothing; off: `context.index` is false"


# Words


@pytest.mark.parametrize(
    ("seconds", "exact", "words"),
    [(0, False, "0 seconds"), (1, False, "1 second"), (119, False, "1 minute"), (90_000, False, "1 day"), (5_400, True, "90 minutes"),
     (604_800, True, "7 days"), (100, True, "100 seconds"), (0, True, "0 seconds")],
)  # fmt: skip
def test_a_span_is_told_in_words(seconds, exact, words):
    assert cache.span(seconds, exact=exact) == words


def test_small_sizes_are_not_zero():
    assert [cache.size(n) for n in (12, 48_200, 3_000_000)] == ["12 bytes", "48 kB", "3 MB"]
