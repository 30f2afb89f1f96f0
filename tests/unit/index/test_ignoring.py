"""Which files the ignore files leave out, compared with git."""

import os
import shutil
import subprocess

import pytest

from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.index import walk
from monkeycode_lsp.index.ignoring import Rules
from monkeycode_lsp.index.walk import Found
from tests.unit.index.workspaces import write

NAMES = (".gitignore", ".monkeycodeignore")

CASES = {
    "name": ({".gitignore": "skip.py\n"}, ["skip.py", "a/skip.py", "skip.pyi", "a/b.py"]),
    "anchored": ({".gitignore": "/top.py\na/in.py\n"}, ["top.py", "a/top.py", "a/in.py", "b/a/in.py"]),
    "folder only": ({".gitignore": "out/\n"}, ["out/a.py", "b/out/a.py", "out.py"]),
    "taken back": ({".gitignore": "*.py\n!keep.py\n"}, ["a.py", "keep.py", "d/keep.py", "d/a.py"]),
    "not out of an ignored folder": ({".gitignore": "out/\n!out/keep.py\n"}, ["out/keep.py", "out/a.py"]),
    "all of a folder but one": ({".gitignore": "d/*\n!d/keep.py\n"}, ["d/keep.py", "d/a.py", "d/e/keep.py"]),
    "all below a folder but one": ({".gitignore": "d/**\n!d/keep.py\n"}, ["d/keep.py", "d/a.py", "d/e/keep.py"]),
    "only one folder": ({".gitignore": "/*\n!/d\n/d/*\n!/d/e\n"}, ["a.py", "d/a.py", "d/e/a.py", "c/a.py"]),
    "nested": ({".gitignore": "*.py\n", "d/.gitignore": "!*.py\n/x.py\n"}, ["a.py", "d/a.py", "d/x.py", "d/e/x.py", "d/e/a.py"]),
    "nested, anchored there": ({"d/.gitignore": "/a.py\nf/*.py\n"}, ["a.py", "d/a.py", "d/e/a.py", "d/f/a.py", "f/a.py"]),
    "exclude": ({".git/info/exclude": "a.py\nb.py\n", ".gitignore": "!b.py\n"}, ["a.py", "b.py", "d/a.py"]),
    "stars": ({".gitignore": "**/x/*.py\nd/**/y.py\n"}, ["x/a.py", "d/x/a.py", "d/y.py", "d/e/f/y.py", "y.py"]),
    "classes": ({".gitignore": "[a-c]?.py\n![!a]1.py\n"}, ["a1.py", "b1.py", "d1.py", "a2.py"]),
    "escapes": ({".gitignore": "\\#a.py\n\\!b.py\nc\\ .py\ntail.py  \n# no.py\n"}, ["#a.py", "!b.py", "c .py", "tail.py", "no.py"]),
    "empty lines and a mark": ({".gitignore": "\ufeff\n\na.py\n"}, ["a.py", "b.py"]),
    "ends of lines": ({".gitignore": "a.py\r\nd/\r\n"}, ["a.py", "d/b.py", "b.py"]),
    "middle slash": ({".gitignore": "d/e\n"}, ["d/e/a.py", "c/d/e/a.py"]),
    "everything": ({".gitignore": "*\n"}, ["a.py", "d/a.py"]),
    "everything but a kind": ({".gitignore": "*\n!*/\n!*.py\n"}, ["a.py", "d/a.py", "d/a.js"]),
}


def files_of(top, names=NAMES):
    return {found.path: found.level for found in walk.walk(top, Rules(top, names)) if isinstance(found, Found)}


@pytest.mark.skipif(shutil.which("git") is None, reason="without git there is nothing to compare with")
@pytest.mark.parametrize("name", CASES)
def test_what_git_ignores_is_left_out_and_nothing_else(tmp_path, name):
    ignores, files = CASES[name]
    git = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=git)
    write(tmp_path, dict.fromkeys(files, "x = 1\n") | ignores)
    said = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path, env=git, check=True, capture_output=True, text=True,
    )  # fmt: skip
    expected = {path for path in said.stdout.split("\0") if path.endswith((".py", ".pyi", ".js"))}
    assert set(files_of(tmp_path)) == expected


def test_rules_of_the_repository_around_the_workspace_count(tmp_path):
    write(tmp_path, {".git/HEAD": "", ".gitignore": "/a/w/x.py\nout/\n", "a/.gitignore": "y.py\n", ".git/info/exclude": "z.py\n"})
    write(tmp_path / "a" / "w", dict.fromkeys(["x.py", "y.py", "z.py", "ok.py", "d/x.py", "out/o.py"], "x = 1\n"))
    assert set(files_of(tmp_path / "a" / "w")) == {"ok.py", "d/x.py"}


def test_rules_above_a_workspace_that_is_in_no_repository_do_not(tmp_path):
    write(tmp_path, {".gitignore": "*\n", "w/a.py": "x = 1\n"})
    assert set(files_of(tmp_path / "w")) == {"a.py"}


def test_a_repository_inside_is_the_users_own_code(tmp_path):
    write(tmp_path, {".gitignore": "", "sub/.git": "gitdir: ../.git/modules/sub\n", "sub/a.py": "x = 1\n"})
    assert set(files_of(tmp_path)) == {"sub/a.py"}


def test_levels_come_with_each_file(tmp_path):
    write(tmp_path, {".monkeycodeignore": "never/\n[local]\nhere/\n", "never/a.py": "x", "here/b.py": "x", "c.py": "x"})
    assert files_of(tmp_path) == {"here/b.py": Level.LOCAL, "c.py": Level.ANYWHERE}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_rules_that_cannot_be_read_are_private(tmp_path):
    write(tmp_path, {"d/a.py": "x", "b.py": "x"})
    os.mkfifo(tmp_path / "d" / ".monkeycodeignore")
    assert files_of(tmp_path) == {"b.py": 0}


def test_what_git_keeps_counts_where_the_setting_names_its_files(tmp_path):
    write(tmp_path, {".git/info/exclude": "a.py\n", "sub/.git": "gitdir: ../.git/modules/sub\n", ".git/modules/sub/info/exclude": "b.py\n"})
    write(tmp_path, dict.fromkeys(["a.py", "b.py", "sub/a.py", "sub/b.py"], "x = 1\n"))
    assert set(files_of(tmp_path)) == {"b.py"}
    assert set(files_of(tmp_path, (".monkeycodeignore",))) == {"a.py", "b.py", "sub/a.py", "sub/b.py"}


def test_only_the_named_files_hold_rules(tmp_path):
    write(tmp_path, {".gitignore": "a.py\n", ".ours": "b.py\n", "a.py": "x", "b.py": "x"})
    assert set(files_of(tmp_path, (".ours",))) == {"a.py"}
    assert set(files_of(tmp_path, ("../.gitignore", "/x", ""))) == {"a.py", "b.py"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["build/a.py", "src/build/b.py", "pyproject.toml"], {"src/build/b.py"}),
        (["bin/a.rs", "src/bin/b.rs", "Cargo.toml", "target/debug/c.rs"], {"src/bin/b.rs"}),
        (["build/a.py", "b.py"], {"build/a.py", "b.py"}),
        (["x/CACHEDIR.TAG", "x/a.py", "y/pyvenv.cfg", "y/lib/b.py", "c.py"], {"c.py"}),
        (["node_modules/a.js", "d/node_modules/b.js", ".hidden/c.js", "d.egg-info/e.py", "f.js"], {"f.js"}),
        (["a.min.js", "b_pb2.py", "c.pb.go", "d.js"], {"d.js"}),
        (["a.txt", "b", "c.md", "D.PY"], {"D.PY"}),
    ],
)
def test_what_others_wrote_or_a_program_made_is_left_out(tmp_path, files, expected):
    write(tmp_path, dict.fromkeys(files, "x = 1\n"))
    assert set(files_of(tmp_path)) == expected
