"""Kind G: trouble with what is kept on disk costs one warning and nothing else."""

import asyncio
import shutil
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from monkeycode_lsp.recall.disk_store import FILE
from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def start(home, folder):
    """Start a server that keeps suggestions in `folder`."""

    def started(directory=folder, **how):
        return scenes.running(home, options={"cache": {"directory": str(directory)}}, **how)

    return started


async def origin(lsp):
    """Where the newest suggestion came from."""
    return (await lsp.why(1))[-1]["origin"]


async def keep(start):
    """A database that an earlier server has left."""
    async with start() as scene:
        await scene.ready()
        assert (await scene.show("kept = ‸", "1")).text == "1"


def overwrite(database, data):
    """While nobody writes there: whoever is about to would mend what he writes over."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        database.write_bytes(data)


async def warned_once(scene, *words):
    """The user is told one thing, and asking goes on."""
    await scene.alive()
    await scene.lsp.until(lambda: scene.lsp.shown_messages)
    for _ in range(5):
        await scene.alive()
    (told,) = scene.lsp.shown_messages
    for word in words:
        assert word in told


async def test_eight_servers_start_at_once_on_a_fresh_folder(tmp_path, folder):
    # grantjenks/python-diskcache#85, PR GridTools/gt4py#1745
    options = {"cache": {"directory": str(folder)}}

    async def one(number, completions):
        async with driver.server(tmp_path / f"home{number}", options=scenes.merged(scenes.endpoint(completions.url), options)) as lsp:
            await lsp.complete("file:///w/ready.py", marked="ready = ‸")
            text = await lsp.complete(f"file:///w/file{number}.py", marked=f"value_{number} = ‸")
            return text, lsp.shown_messages

    async with servers.CompletionServer(servers.reply("1")) as completions:
        assert await asyncio.gather(*(one(number, completions) for number in range(8))) == [("1", [])] * 8
        async with driver.server(tmp_path / "home9", options=scenes.merged(scenes.endpoint(completions.url), options)) as lsp:
            await lsp.complete("file:///w/ready.py", marked="ready = ‸")
            n_before = len(completions.requests)
            for number in range(8):
                assert await lsp.complete(f"file:///w/file{number}.py", marked=f"value_{number} = ‸") == "1"
                assert await origin(lsp) == "disk"
            assert len(completions.requests) == n_before
            assert lsp.shown_messages == []


async def test_a_running_window_finds_what_another_one_has_kept(tmp_path, folder):
    async with servers.CompletionServer(servers.reply("1")) as completions:
        options = scenes.merged(scenes.endpoint(completions.url), {"cache": {"directory": str(folder)}})
        async with driver.server(tmp_path / "one", options=options) as one, driver.server(tmp_path / "other", options=options) as other:
            for lsp in (one, other):
                await lsp.complete("file:///w/ready.py", marked="ready = ‸")
            assert await one.complete("file:///w/shared.py", marked="shared = ‸") == "1"
            assert await one.shutdown() == 0  # what it kept is written by then
            n_before = len(completions.requests)
            assert await other.complete("file:///w/shared.py", marked="shared = ‸") == "1"
            assert await origin(other) == "disk"
            assert len(completions.requests) == n_before


async def test_no_text_of_a_document_lies_on_disk(start, folder):
    async with start() as scene:
        await scene.ready()
        shown = await scene.show("dear_prefix = ‸\ndear_suffix = 2", "the_suggestion", uri="file:///w/dear_name.py")
        assert shown.text == "the_suggestion"
    there = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"the_suggestion" in there
    assert b"dear" not in there


async def test_a_damaged_database(start, folder):
    # grantjenks/python-diskcache#67, #164, #279
    await keep(start)
    with (folder / FILE).open("r+b") as file:
        file.write(b"junk" * 1_000)
    async with start() as scene:
        await scene.ready()
        assert (await scene.show("kept = ‸", "2")).text == "2"
        await warned_once(scene, "damaged", str(folder))
    assert (folder / "suggestions.damaged").exists()
    # At another address an engine is another one.
    async with start(backend=servers.CompletionServer(servers.reply("3"), port=scene.backend.port)) as scene:
        await scene.ready()
        assert (await scene.show("kept = ‸")).text == "2"
        assert await origin(scene.lsp) == "disk"
        assert scene.lsp.shown_messages == []


async def test_a_folder_below_a_plain_file(start, tmp_path):
    # grantjenks/python-diskcache#113
    (tmp_path / "file").write_text("")
    async with start(tmp_path / "file" / "cache") as scene:
        await scene.ready()
        assert (await scene.show("a = ‸", "1", uri="file:///w/a.py")).text == "1"
        scene.lsp.close_document("file:///w/a.py")
        assert (await scene.show("a = ‸", "2", uri="file:///w/a.py")).requests == []  # memory remembers
        await warned_once(scene, "Not a directory", str(tmp_path / "file" / "cache"))


@pytest.mark.skipif(sys.platform == "win32", reason="modes are a matter of POSIX")
async def test_a_folder_that_others_can_write_to(start, folder):
    folder.mkdir()
    folder.chmod(0o777)
    async with start() as scene:
        await scene.ready()
        await warned_once(scene, "Other users can write", str(folder))
    assert list(folder.iterdir()) == []


async def test_the_database_is_overwritten_while_in_use(start, folder):
    async with start() as scene:
        await scene.ready()
        await scene.show("a = ‸", "1")
        overwrite(folder / FILE, b"junk" * 10_000)
        await warned_once(scene, "damaged", str(folder))


async def test_the_database_is_cut_off_while_in_use(start, folder):
    async with start() as scene:
        await scene.ready()
        await scene.show("a = ‸", "1")
        overwrite(folder / FILE, (folder / FILE).read_bytes()[:3_000])
        await warned_once(scene, str(folder))


async def test_the_folder_is_deleted_while_in_use(start, folder):
    async with start() as scene:
        await scene.ready()
        await scene.show("a = ‸", "1")
        shutil.rmtree(folder)
        await warned_once(scene, "deleted", str(folder))


async def test_another_program_keeps_the_database_locked(start, folder):
    await keep(start)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with start() as scene:
            await scene.ready()
            begin = time.monotonic()
            for number in range(5):
                assert (await scene.show(f"a{number} = ‸", "1")).text == "1"
            assert time.monotonic() - begin < 3
            scene.lsp.process.stdin.close()
            begin = time.monotonic()
            await asyncio.wait_for(scene.lsp.process.wait(), 20)
            assert time.monotonic() - begin < 4
