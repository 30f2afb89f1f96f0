"""What a workspace is called among colleagues."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from monkeycode_lsp.recall.workspace import identity, normalised, origin_url

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")
ORIGIN = "https://forge.example/team/project.git"


@pytest.mark.parametrize(
    "url",
    [
        "https://forge.example/team/project.git",
        "https://forge.example/team/project",
        "https://forge.example/team/project/",
        "https://alice:token@forge.example/team/project.git",
        "https://Forge.Example:443/team/project.git",
        "HTTPS://forge.example/team/project.git",
        "http://forge.example/team/project.git",
        "git://forge.example/team/project.git",
        "ssh://git@forge.example/team/project.git",
        "ssh://git@forge.example:22/team/project.git",
        "git@forge.example:team/project.git",
        "git@Forge.Example:team/project",
        "git@forge.example:/team/project.git",
        "alice@forge.example:/team/project.git",
    ],
)
def test_one_repository_has_one_name_however_it_is_reached(url):
    assert normalised(url) == "forge.example/team/project"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/git/project.git",
        "../project.git",
        "./project.git",
        "C:/code/project.git",
        "C:\\code\\project.git",
        "file:///srv/git/project.git",
        "http://localhost/project.git",
        "http://127.0.0.1:3000/team/project.git",
        "ssh://git@[::1]/project.git",
        "git@localhost:project.git",
        "alice@server:project.git",  # in Alice's home folder
        "server:project.git",
        "git@server:~alice/project.git",
        "ssh://server/~/project.git",
        "https://forge.example/",
        "https://forge.example/.git",
        "https://forge.example/a/../b",
        "https://forge.example/a//b",
        "https://forge.example/a?b",
        "https://forge.example:port/a",
        "https://[forge/a",
        "codecommit::eu-west-1://project",
        "https://forge.example/a b",
        "https://forge.example/a\x00b",
        "https://forge.example/" + "a" * 5000,
    ],
)
def test_what_can_mean_something_else_elsewhere_has_no_name(url):
    assert normalised(url) == ""


def test_different_repositories_have_different_names():
    urls = [
        "https://forge.example/team/project",
        "https://forge.example/team/Project",
        "https://forge.example/team/project2",
        "https://forge.example/other/project",
        "https://forge.example:8443/team/project",
        "https://other.example/team/project",
        "git@[2001:db8::1]:team/project",
    ]
    assert len({normalised(url) for url in urls} - {""}) == len(urls)


@pytest.mark.parametrize(
    "config",
    [
        f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {ORIGIN}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
        f'[remote "origin"]\r\n\tURL={ORIGIN}\r\n',
        f'[Remote "origin"] url = {ORIGIN}',
        f'[remote "upstream"]\nurl = https://x/y\n[remote "origin"]\nurl = "{ORIGIN}" ; comment\n',
        f'[remote "origin"]\n# url = https://x/y\nurl = {ORIGIN} # the team\'s\n[branch "main"]\nurl = https://x/y\n',
        f'[remote "origin"]\nurl = {ORIGIN[:20]}\\\n{ORIGIN[20:]}\n',
        f'[remote "origin"]\nurl = {ORIGIN}\nurl = https://second/y\n',
        f'[remote "origin"]\npushurl = https://x/y\nurl = {ORIGIN}\n',
    ],
)
def test_the_origin_is_read_as_git_reads_it(config):
    assert origin_url(config) == ORIGIN


@pytest.mark.parametrize(
    "config", ["", "url = x", '[remote "Origin"]\nurl = x', '[remote "o"]\nurl = x', '[remote "origin"]\nurl\n', "\x00\ufffd[[["]
)
def test_no_origin_is_none(config):
    assert origin_url(config) == ""


def git(folder, *words):
    safe = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=n", "-c", "user.email=e@example", "-c", "protocol.file.allow=always")
    subprocess.run([GIT, *who, *words], cwd=folder, check=True, capture_output=True, env=os.environ | safe)


@pytest.fixture
def project(tmp_path):
    """A repository with one commit and an origin."""
    folder = tmp_path / "alice" / "project"
    (folder / "src" / "part").mkdir(parents=True)
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "remote", "add", "origin", ORIGIN)
    return folder


@needs_git
def test_two_clones_of_one_project_have_one_identity(project, tmp_path):
    other = tmp_path / "bob" / "work" / "p"
    (other / "src").mkdir(parents=True)
    git(other, "init")
    git(other, "remote", "add", "origin", "git@forge.example:team/project.git")
    assert identity(project.as_uri()) == identity(other.as_uri()) == "git:forge.example/team/project#."
    assert identity((project / "src").as_uri()) == identity((other / "src").as_uri()) == "git:forge.example/team/project#src"


@needs_git
def test_another_folder_of_a_project_is_another_workspace(project):
    found = {identity(folder.as_uri()) for folder in (project, project / "src", project / "src" / "part")}
    assert len(found) == 3


@needs_git
def test_a_worktree_is_the_same_project(project, tmp_path):
    git(project, "worktree", "add", str(tmp_path / "elsewhere" / "tree"))
    assert identity((tmp_path / "elsewhere" / "tree").as_uri()) == identity(project.as_uri())


@needs_git
def test_a_submodule_is_its_own_project(project, tmp_path):
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init")
    git(part, "commit", "--allow-empty", "-m", "first")
    git(project, "submodule", "add", str(part), "lib/part")
    assert identity((project / "lib" / "part").as_uri()) == (project / "lib" / "part").as_uri()
    git(project / "lib" / "part", "remote", "set-url", "origin", "https://forge.example/team/part")
    assert identity((project / "lib" / "part").as_uri()) == "git:forge.example/team/part#."


@needs_git
def test_without_an_origin_a_workspace_is_its_own_folder(project):
    git(project, "remote", "rename", "origin", "upstream")
    assert identity(project.as_uri()) == project.as_uri()


@needs_git
@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_to_a_project_is_the_project(project, tmp_path):
    (tmp_path / "link").symlink_to(project / "src")
    assert identity((tmp_path / "link").as_uri()) == identity((project / "src").as_uri())


@pytest.mark.parametrize(
    "uri",
    ["", "untitled:1", "vscode-remote://host/w", "file://server/share/w", "file:///nowhere/at/all", "file:///a%00b", "file://[", "x" * 9],
)
def test_what_is_no_local_folder_is_named_by_its_uri(uri):
    assert identity(uri) == uri


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")
@pytest.mark.parametrize("at", ["config", "dot git", "commondir"])
@pytest.mark.parametrize("what", ["huge", "binary", "pipe", "device", "loop", "folder", "nothing", "itself"])
def test_hostile_files_are_neither_read_nor_waited_for(tmp_path, at, what):
    folder, gitdir = tmp_path / "w", tmp_path / "g"
    folder.mkdir()
    gitdir.mkdir()
    if at == "config":
        (folder / ".git").mkdir()
    elif at == "commondir":
        (folder / ".git").write_text(f"gitdir: {gitdir}\n")
    target = {"config": folder / ".git" / "config", "dot git": folder / ".git", "commondir": gitdir / "commondir"}[at]
    good = f'[remote "origin"]\nurl = {ORIGIN}\n'.encode()
    if what == "huge":
        with target.open("wb") as file:
            file.write(good)
            file.truncate(2**31)
    elif what == "binary":
        target.write_bytes(bytes(range(256)) * 8)
    elif what == "pipe":
        os.mkfifo(target)
    elif what == "device":
        target.symlink_to("/dev/zero")
    elif what == "loop":
        target.symlink_to(target)
    elif what == "folder":
        target.mkdir()
    elif what == "itself":
        target.write_text(f"gitdir: {folder}\n" if at == "dot git" else ".")
    assert identity(folder.as_uri()) == folder.as_uri()
