"""Whose text may go how far, by several ignore files."""

import random

import pytest

from monkeycode_lsp.context import ignores
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Policy, in_words


def policy(**files):
    """`policy(root="…", a="…", a__b="…", git="…")`: folders by name, `git` for .gitignore in the root."""
    read = []
    for folder, text in files.items():
        name = ".gitignore" if folder.startswith("git") else ".monkeycodeignore"
        place = folder.removeprefix("git").removeprefix("root").strip("_").replace("__", "/")
        read.append(ignores.read(place, name, text.encode()))
    return Policy(read)


def test_without_files_everything_may_go_anywhere():
    assert Policy().judge("a/b.py") == ANYWHERE


def test_a_file_counts_below_its_own_folder_only():
    found = policy(a="x.py\n/y.py")
    assert [found.judge(path).level for path in ("x.py", "a/x.py", "a/b/x.py", "a/y.py", "a/b/y.py", "ab/x.py")] == [
        Level.ANYWHERE, Level.NEVER, Level.NEVER, Level.NEVER, Level.ANYWHERE, Level.ANYWHERE,
    ]  # fmt: skip


def test_a_file_further_down_can_take_back_and_be_stricter_and_its_local_lifts_nothing():
    found = policy(root="*.sql\n[local]\n*.md", a="!w.sql\nv.md\n[local]\nx.sql\n!u.md\n[anywhere]\ny.sql")
    assert {name: found.judge(f"a/{name}").level for name in ("w.sql", "x.sql", "y.sql", "z.sql", "u.md", "v.md", "w.md")} == {
        "w.sql": Level.ANYWHERE, "x.sql": Level.NEVER, "y.sql": Level.ANYWHERE, "z.sql": Level.NEVER,
        "u.md": Level.ANYWHERE, "v.md": Level.NEVER, "w.md": Level.LOCAL,
    }  # fmt: skip


def test_a_file_cannot_lift_what_is_said_of_its_own_folder():
    found = policy(root="[local]\ninside/\n[never]\nclosed/", inside="[anywhere]\n*\n[never]\nb", closed="[anywhere]\n*")
    assert [found.judge(path).level for path in ("inside/a", "inside/b", "closed/a", "closed/c/d")] == [
        Level.LOCAL, Level.NEVER, Level.NEVER, Level.NEVER,
    ]  # fmt: skip


def test_below_a_broken_file_nothing_is_served_whatever_others_say():
    found = policy(root="[anywhere]\n*", a="[nevr]\n", a__b="[anywhere]\n*")
    assert [found.judge(path).level for path in ("x", "a/x", "a/b/x")] == [Level.ANYWHERE, Level.NEVER, Level.NEVER]
    assert found.judge("a/b/x").why.startswith("line 1 of a/.monkeycodeignore is not understood: there is no section [nevr]")


def test_the_pattern_and_its_file_are_named():
    assert policy(a="ok\nx*.py").judge("a/x1.py").why == "the pattern x*.py in line 2 of a/.monkeycodeignore"
    assert in_words(ignores.read("", ".monkeycodeignore", b"fine")) == ""


def test_what_git_ignores_is_served_and_not_quoted():
    verdict = policy(git="build/\n*.log").judge("build/a.py")
    assert (verdict.level, verdict.is_quoted) == (Level.ANYWHERE, False)
    assert policy(git="build/").judge("src/a.py").is_quoted


def test_git_never_lifts_what_is_in_an_ignored_folder():
    found = policy(git="build/\n*.log\n!keep.log", git_build="!a.py", git_src="!b.log")
    quoted = {path: found.judge(path).is_quoted for path in ("build/a.py", "a.log", "keep.log", "src/b.log", "src/c.log")}
    assert quoted == {"build/a.py": False, "a.log": False, "keep.log": True, "src/b.log": True, "src/c.log": False}


def test_what_is_never_served_is_never_quoted_and_what_is_local_is():
    found = policy(root="a\n[local]\nb")
    assert [found.judge(path).is_quoted for path in "ab"] == [False, True]


def test_two_files_in_one_folder_count_with_the_stricter_word():
    found = Policy([ignores.read("", ".aiexclude", b"a"), ignores.read("", ".monkeycodeignore", b"[anywhere]\na\n[local]\nb")])
    assert [found.judge(path).level for path in "abc"] == [Level.NEVER, Level.LOCAL, Level.ANYWHERE]


@pytest.mark.parametrize("path", ["", "/", "//", "a//b", "\ud800", "a\0b", "x" * 10_000, "a/" * 3_000 + "b", "../a"])
def test_any_path_has_a_verdict(path):
    assert policy(root="b\n[local]\na/", git="*.log").judge(path).level in Level


def test_what_is_remembered_of_folders_changes_nothing():
    rng = random.Random(7)  # noqa: S311 - made paths, no secrets
    names = ["a", "b", "c", "x.py", "y.md"]
    files = {
        "root": "a/b/\n[local]\n*.md\n!c/y.md",
        "a": "[anywhere]\nb/x.py",
        "a__b": "[never]\ny.md",
        "git": "c/\n!c/x.py",
        "git_a": "x.py",
    }
    used = policy(**files)
    for _ in range(300):
        path = "/".join(rng.choice(names) for _ in range(rng.randint(1, 5)))
        assert used.judge(path) == policy(**files).judge(path), path
