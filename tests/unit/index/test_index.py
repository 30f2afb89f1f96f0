"""The index of a workspace, by a process of its own."""

import asyncio
import os
import sqlite3
import sys
from contextlib import closing

import pytest
from msgspec.structs import replace

from monkeycode_lsp.index import importing, wire
from monkeycode_lsp.symbols import paths
from monkeycode_lsp.symbols.model import Import
from tests.unit.index.workspaces import NEVER, window, write

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and signals are a matter of POSIX")


@pytest.fixture
def top(tmp_path):
    top = tmp_path / "work"
    top.mkdir()
    return top


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cache" / "index"


async def test_a_definition_of_another_file_is_found_with_what_is_worth_quoting(top, store):
    write(
        top, {"shop/cart.py": "class Cart:\n    def total(self) -> int:\n        return 1\n\n\ndef empty(cart: Cart) -> None:\n    pass\n"}
    )
    async with window(top, store) as index:
        await index.ready()
        (found,) = await index.definitions(["empty"], "python")
        assert (found.path, found.line, found.kind, found.level, found.n_same) == ("shop/cart.py", 5, "function", 0, 1)
        assert found.text.startswith("def empty(cart: Cart) -> None:")
        assert index.status().files == 1
        assert index.warned == []


async def test_languages_that_call_each_other_are_one_and_others_are_not(top, store):
    write(
        top,
        {
            "a.ts": "export function one() {}\n",
            "b.js": "function one() {}\n",
            "c.py": "def one(): pass\n",
            "d.h": "int two(int a) { return a; }\n",
        },
    )
    async with window(top, store) as index:
        await index.ready()
        assert sorted(await index.find("one", language="typescriptreact")) == ["a.ts:one", "b.js:one"]
        assert await index.find("one", language="python") == ["c.py:one"]
        assert await index.find("two", language="cpp") == ["d.h:two"]


async def test_imported_files_come_first_then_those_beside_the_document(top, store):
    write(
        top, {f"{folder}/{name}.py": "def load(): pass\n" for folder, name in [("far", "a"), ("here", "b"), ("lib", "c"), ("here", "own")]}
    )
    async with window(top, store) as index:
        await index.ready()
        found = await index.definitions(["load"], "python", [Import("lib.c", (("load", "load"),))], path="here/own.py")
        assert [(one.path, one.place) for one in found] == [("lib/c.py", "near"), ("here/b.py", "folder"), ("far/a.py", "rest")]
        assert found[0].score > found[1].score > found[2].score


async def test_what_is_imported_is_worth_the_same_however_many_others_define_it(top, store):
    scores = []
    for n_others in (0, 9):
        write(top, {"lib/c.py": "def load(): pass\n"} | {f"far/a{n}.py": "def load(): pass\n" for n in range(n_others)})
        async with window(top, store) as index:
            await index.ready()
            first, *_ = await index.definitions(["load"], "python", [Import("lib.c", (("load", "load"),))], path="here/own.py")
            assert first.path == "lib/c.py"
            scores.append(first.score)
    assert scores[0] == scores[1]


async def test_a_name_that_everything_defines_counts_only_where_it_is_imported_from(top, store):
    write(top, {f"m{number}.py": "def main(): pass\n" for number in range(60)} | {"rare.py": "def rare(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("main", "rare", path="x/y.py") == ["rare.py:rare"]
        assert await index.find("main", imported=[Import("m59", (("main", "main"),))]) == ["m59.py:main"]


CANDIDATES = [
    "a/b/c.py",
    "*/b/c.py",
    "*/c.py",
    "a/b/",
    "*/b/",
    "*/a/",
    "a/",
    "b/c.py",
    "*/a/b/c.py",
    "*/ä/b.py",
    "c",
    "*/none.py",
    "*/",
    "/",
    "",
    "x_y/",
    "*/%",
]


async def test_candidates_of_imports_are_resolved(top, store):
    known = ["a/b/c.py", "a/b/d.py", "a/c.py", "c.py", "z/a/b/c.py", "z/ab/c.py", "q/ä/b.py", "x_y/e.py", "xzy/e.py"]
    write(top, dict.fromkeys(known, "x = 1\n"))
    async with window(top, store) as index:
        await index.ready()
    with closing(sqlite3.connect(next(store.glob("*.db")))) as db:
        for candidate in CANDIDATES[:-5] + CANDIDATES[-2:]:
            found = [path for _, path in importing.fitting(db, candidate)]
            assert found == sorted(path for path in known if paths.fits(candidate, path)), candidate


async def test_what_changes_is_found_anew(top, store):
    write(top, {"a.py": "def one(): pass\n", "b/c.py": "def two(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
        write(top, {"a.py": "def three(): pass\n"})
        await index.comes(["a.py:three"], "one", "three")
        (top / "a.py").unlink()
        await index.comes([], "one", "three")
        write(top, {"new/deep/d.py": "def four(): pass\n"})
        await index.comes(["new/deep/d.py:four"], "four")
        write(top, {"new/deep/e.py": "def five(): pass\n"})
        await index.comes(["new/deep/e.py:five"], "five")
        (top / "new").rename(top / "moved")
        await index.comes(["moved/deep/d.py:four"], "four")


async def test_what_the_server_tells_is_looked_at_though_the_system_says_nothing(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store, pace=replace(NEVER, most_watched=0)) as index:
        await index.ready()
        assert not index.status().watched
        assert "more than 0 folders" in index.status().why
        write(top, {"a.py": "def two(): pass\n", "b/c.py": "def three(): pass\n"})
        index.changed([top / "a.py", top / "b" / "c.py", top.parent / "else.py", top])
        await index.comes(["a.py:two"], "one", "two")
        await index.comes(["b/c.py:three"], "three")


async def test_an_unwatched_workspace_is_walked_now_and_then(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store, pace=wire.Pace(unwatched_every_s=0.1, most_watched=0)) as index:
        await index.ready()
        write(top, {"a.py": "def two(): pass\n"})
        await index.comes(["a.py:two"], "one", "two")


async def test_the_next_start_reads_only_what_has_changed(top, store):
    write(top, {"a.py": "def one(): pass\n", "b.py": "def two(): pass\n", "c.py": "def three(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
    with closing(sqlite3.connect(next(store.glob("*.db")))) as db:
        db.execute("ANALYZE")  # as SQLite does by itself in a large one, in tables of its own
    changed = (top / "b.py").stat()
    write(top, {"a.py": "def ONE(): pass\n", "b.py": "def TWO(): pass\n"})
    os.utime(top / "b.py", ns=(changed.st_atime_ns, changed.st_mtime_ns))  # nobody can see that it has changed
    (top / "c.py").unlink()
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one", "ONE", "two", "TWO", "three") == ["a.py:ONE", "b.py:two"]


async def test_answers_come_from_the_last_time_while_the_workspace_is_walked(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    async with window(top, store, command=silent) as index:
        assert await index.find("one") == ["a.py:one"]
        assert index.status().state == "indexing"


async def test_of_two_windows_one_fills_the_database_and_both_read_it(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store) as first:
        await first.ready()
        async with window(top, store) as second:
            await second.until(lambda: second.states and second.states[-1].state == "waiting")
            assert await second.find("one") == ["a.py:one"]
            write(top, {"b.py": "def two(): pass\n"})
            await first.comes(["b.py:two"], "two")
            assert await second.find("two") == ["b.py:two"]
            await first.aclose()
            await second.ready()  # it goes on in its place
            write(top, {"c.py": "def three(): pass\n"})
            await second.comes(["c.py:three"], "three")


async def test_it_does_not_read_what_the_user_ignores_nor_what_is_secret(top, store):
    write(
        top,
        {
            ".gitignore": "*.gen.py\n/out/\n",
            ".monkeycodeignore": "private/\n[local]\nhouse/\n",
            "a.py": "def shown(): pass\n",
            "x.gen.py": "def shown(): pass\n",
            "out/o.py": "def shown(): pass\n",
            "private/p.py": "def shown(): pass\n",
            "house/h.py": "def shown(): pass\n",
            "private-keys-v1.d/s.py": "def shown(): pass\n",
            "node_modules/n/index.js": "function shown() {}\n",
            ".venv/lib/v.py": "def shown(): pass\n",
            "env2/pyvenv.cfg": "",
            "env2/lib.py": "def shown(): pass\n",
        },
    )
    async with window(top, store) as index:
        await index.ready()
        found = await index.definitions(["shown"], "python")
        assert {one.path: one.level for one in found} == {"a.py": 0, "house/h.py": 1}
        assert await index.find("shown", language="javascript") == []


async def test_other_ignore_rules_count_at_once(top, store):
    write(top, {".monkeycodeignore": "", "a/x.py": "def one(): pass\n", "b.py": "def two(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
        write(top, {".monkeycodeignore": "a/\n"})
        await index.comes(["b.py:two"], "one", "two")
        write(top, {".monkeycodeignore": "[local]\na/\n"})
        await index.comes(["b.py:two", "a/x.py:one"], "one", "two")
        (found,) = await index.definitions(["one"], "python")
        assert found.level == 1
        (top / ".monkeycodeignore").unlink()

        async def is_free():
            return [one.level for one in await index.definitions(["one"], "python")] == [0]

        await index.until(is_free)


async def test_binary_generated_minified_and_huge_files_are_left_out(top, store):
    write(
        top,
        {
            "a.py": "def shown(): pass\n",
            "binary.py": b"def shown(): pass\n\0\n",
            "generated.py": "# This file was automatically generated by a tool; DO NOT EDIT\ndef shown(): pass\n",
            "long.py": "def shown(): pass\n" + "x = '" + "a" * 9_000 + "'\n" + "y = 1\n" * 2_000,
            "huge.py": "def shown(): pass\n" + "x = 1\n" * 100_000,
            "empty.py": "",
            "latin.py": b"# caf\xe9\ndef shown(): pass\n",
            "wide.py": "def shown(): pass\n".encode("utf-16"),
        },
    )
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("shown") == ["a.py:shown", "latin.py:shown", "wide.py:shown"]


@posix
async def test_links_lead_nowhere(top, store, tmp_path):
    write(tmp_path, {"outside/o.py": "def one(): pass\n"})
    write(top, {"a.py": "def one(): pass\n"})
    (top / "folder").symlink_to(tmp_path / "outside")
    (top / "file.py").symlink_to(tmp_path / "outside" / "o.py")
    (top / "loop").symlink_to(top)
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]
        (top / "late").symlink_to(tmp_path / "outside")
        (top / "late.py").symlink_to(tmp_path / "outside" / "o.py")
        index.changed([top / "late" / "o.py", top / "late", top / "late.py"])
        write(top, {"b.py": "def two(): pass\n"})
        await index.comes(["b.py:two"], "two")
        assert await index.find("one") == ["a.py:one"]


@posix
async def test_odd_entries_harm_nothing(top, store):
    write(top, {"a.py": "def one(): pass\n", "sp ace ü.py": "def two(): pass\n", "line\nbreak.py": "def three(): pass\n"})
    (top / os.fsdecode(b"b\xff.py")).write_bytes(b"def four(): pass\n")
    (top / os.fsdecode(b"d\xff")).mkdir()
    os.mkfifo(top / "pipe.py")
    os.mkfifo(top / ".gitignore")
    (top / "folder.py").mkdir()
    (top / "shut").mkdir()
    (top / "shut").chmod(0)
    try:
        async with window(top, store) as index:
            await index.ready()
            assert await index.find("one", "two", "three", "four") == ["a.py:one", "sp ace ü.py:two"]
            index.changed([top / os.fsdecode(b"b\xff.py")])
            write(top, {"z.py": "def last(): pass\n"})
            await index.comes(["z.py:last"], "last")
    finally:
        (top / "shut").chmod(0o700)


@posix
async def test_a_workspace_whose_name_is_no_text_is_indexed(tmp_path, store):
    top = tmp_path / os.fsdecode(b"w\xff")
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]


async def test_a_workspace_that_is_not_there_keeps_what_was_known(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
    away = top.rename(top.with_name("away"))
    async with window(top, store) as index:
        await index.ready()
        assert await index.find("one") == ["a.py:one"]
    assert away.is_dir()


async def test_nothing_is_asked_before_it_starts_or_after_it_is_closed(top, store):
    write(top, {"a.py": "def one(): pass\n"})
    async with window(top, store) as index:
        await index.ready()
        await index.aclose()
        assert await index.find("one") == []
        index.changed([top / "a.py"])
        await index.aclose()


async def test_closing_at_once_ends_everything(top, store):
    async with window(top, store) as index:
        pass
    assert index.states[-1].state == "off" or index.status().state == "off"
    assert asyncio.get_running_loop().is_running()


async def test_what_becomes_private_leaves_the_database_with_its_text(top, store):
    write(top, {"lib.py": "def zebra_quagga():\n    return 'okapi_unicorn'\n", "local/a.py": "def other(): pass\n"})
    async with window(top, store) as index:
        await index.comes(["lib.py:zebra_quagga"], "zebra_quagga")
        await index.ready()
        assert _lies_in(store, b"okapi_unicorn")
        write(top, {".monkeycodeignore": "lib.py\n[local]\nlocal/\n"})
        index.changed([top / ".monkeycodeignore"])
        await index.comes([], "zebra_quagga")
        await index.until(lambda: index.states[-1].state == "ready" and not _lies_in(store, b"okapi_unicorn"))
        assert not _lies_in(store, b"zebra_quagga")
        (found,) = await index.definitions(["other"], "python")
        assert found.level == 1


def _lies_in(folder, what):
    """Whether any file there holds it."""
    return any(what in path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_no_secret_of_a_file_is_kept(top, store):
    secret = "sk_live_" + "9fK2mX7cQ4vB8nT1wZ5rY3pL"
    write(top, {"conf.py": f'API_KEY = "{secret}"\n\n\ndef connect():\n    return Client("{secret}")\n'})
    async with window(top, store) as index:
        await index.ready()
        found = await index.definitions(["API_KEY", "connect"], "python")
        assert [one.text.splitlines()[0] for one in found] == ['API_KEY = "..."', "def connect():"]
        assert all(secret.encode() not in file.read_bytes() for file in store.rglob("*") if file.is_file())
