"""What the ignore files on the disk say of documents: read off the loop, closed until read, told of changes."""

import asyncio
import os
import sys

import pytest

from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE
from monkeycode_lsp.privacy import reading
from monkeycode_lsp.privacy.rules import FRESH_S, Rules

NAMES = (".gitignore", ".monkeycodeignore")
links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes that have a name here")


class Scene:
    """A workspace on the disk, and the rules as the server asks for them."""

    def __init__(self, root, names=NAMES, **how):
        self.root = root
        self.now = 0.0
        self.told = []
        self.rules = Rules(names, report=self.told.append, clock=lambda: self.now, **how)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def uri(self, path):
        return (self.root / path).as_uri()

    async def judge(self, path, **how):
        return await self.rules.judge(self.uri(path), self.root.as_uri(), **{"within_s": 20} | how)

    async def level(self, path):
        return (await self.judge(path)).level


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "w").mkdir()
    return Scene(tmp_path / "w")


async def test_without_ignore_files_everything_may_go_anywhere(scene):
    assert await scene.judge("a.py") == ANYWHERE


async def test_files_of_every_folder_of_the_workspace_count(scene):
    scene.write(".monkeycodeignore", "*.sql\n[local]\ninside/\n")
    scene.write("inside/.monkeycodeignore", "x.py")
    scene.write(".gitignore", "build/")
    assert [await scene.level(path) for path in ("a.py", "a.sql", "inside/a.py", "inside/x.py")] == [
        Level.ANYWHERE, Level.NEVER, Level.LOCAL, Level.NEVER,
    ]  # fmt: skip
    assert not (await scene.judge("build/a.py")).is_quoted


async def test_what_lies_above_the_workspace_counts_in_a_repository_only(scene):
    (scene.root.parent / ".monkeycodeignore").write_text("a.py")
    assert await scene.level("a.py") is Level.ANYWHERE
    (scene.root.parent / ".git").mkdir()
    scene.rules.changed()
    assert await scene.level("a.py") is Level.NEVER


async def test_what_is_excluded_by_the_repository_alone_is_not_quoted(scene):
    scene.write(".git/info/exclude", "notes/")
    assert not (await scene.judge("notes/a.md")).is_quoted


async def test_a_working_tree_that_is_not_the_first_has_the_exclusions_of_its_repository(scene):
    scene.write(".git", "gitdir: ../main/.git/worktrees/w\n")
    main = scene.root.parent / "main" / ".git"
    for path, text in {"worktrees/w/commondir": "../..\n", "info/exclude": "notes/\n"}.items():
        (main / path).parent.mkdir(parents=True, exist_ok=True)
        (main / path).write_text(text)
    assert not (await scene.judge("notes/a.md")).is_quoted
    assert (await scene.judge("a.md")).is_quoted
    others = Scene(scene.root, names=(".monkeycodeignore",))
    assert (await others.judge("notes/a.md")).is_quoted  # what is Git's counts where the setting names it


async def test_people_are_told_of_a_file_as_they_know_it(scene):
    scene.write(".monkeycodeignore", "*.sql\n")
    scene.write("inside/.monkeycodeignore", "x*\n")
    assert (await scene.judge("a.sql")).why == "the pattern *.sql in line 1 of .monkeycodeignore"
    assert (await scene.judge("inside/x.py")).why == "the pattern x* in line 1 of inside/.monkeycodeignore"
    scene.write("../.git/HEAD", "")
    scene.write("../.monkeycodeignore", "*.sql\n[lcoal]\n")
    scene.rules.changed()
    above = (scene.root.parent / ".monkeycodeignore").as_posix()
    assert (await scene.judge("b.py")).why.startswith(f"line 2 of {above} is not understood")
    assert scene.told[0].startswith(f"Line 2 of {above} is not understood")


async def test_one_file_is_called_as_each_workspace_knows_it(scene):
    scene.write("inside/.monkeycodeignore", "x*\n")
    inner = (scene.root / "inside").as_uri()
    assert "of inside/.monkeycodeignore" in (await scene.judge("inside/x.py")).why
    assert (await scene.rules.judge(scene.uri("inside/xx.py"), inner, within_s=20)).why.endswith("of .monkeycodeignore")


async def test_a_list_that_is_too_long_is_said_to_be(scene):
    scene.write(".monkeycodeignore", "a\n" * 600_000)
    assert await scene.level("a.py") is Level.NEVER
    assert "too long" in scene.told[0]


async def test_a_broken_file_closes_everything_below_and_is_told_once(scene):
    scene.write("inside/.monkeycodeignore", "ok\n[lcoal]\n")
    for _ in range(3):
        scene.now += 10
        assert [await scene.level(path) for path in ("a.py", "inside/a.py", "inside/b/c.py")] == [Level.ANYWHERE, Level.NEVER, Level.NEVER]
    (told,) = scene.told
    assert told.startswith("Line 2 of inside/.monkeycodeignore is not understood: there is no section [lcoal]")
    scene.write("inside/.monkeycodeignore", "ok\n")
    scene.rules.changed()
    assert await scene.level("inside/a.py") is Level.ANYWHERE
    assert len(scene.told) == 1
    scene.write("inside/.monkeycodeignore", "ok\n[lcoal]\n")
    scene.rules.changed()
    await scene.level("inside/a.py")
    assert len(scene.told) == 2


async def test_a_change_counts_at_once_when_told_and_within_seconds_when_not(scene):
    assert await scene.level("a.py") is Level.ANYWHERE
    scene.write(".monkeycodeignore", "a.py")
    assert scene.rules.known(scene.uri("a.py")) == ANYWHERE
    scene.rules.changed()
    assert scene.rules.known(scene.uri("a.py")) is None
    assert await scene.level("a.py") is Level.NEVER
    (scene.root / ".monkeycodeignore").unlink()
    scene.now += FRESH_S + 0.1
    assert await scene.level("a.py") is Level.ANYWHERE


async def test_what_has_not_been_read_is_not_served(scene):
    verdict = await scene.judge("a.py", within_s=0)
    assert (verdict.level, verdict.is_quoted, "not been read" in verdict.why) == (Level.NEVER, False, True)
    assert await scene.level("a.py") is Level.ANYWHERE


async def test_what_was_known_counts_while_the_disk_is_slow(scene):
    assert await scene.level("a.py") is Level.ANYWHERE
    scene.now += 100
    assert await scene.judge("a.py", within_s=0) == ANYWHERE


async def test_a_look_that_began_before_a_change_is_not_remembered(scene):
    early = asyncio.create_task(scene.judge("a.py", within_s=20))
    await asyncio.sleep(0)
    scene.write(".monkeycodeignore", "a.py")
    scene.rules.changed()
    await early
    assert await scene.level("a.py") is Level.NEVER


@links
async def test_a_link_is_judged_by_what_it_leads_to(scene):
    scene.write(".monkeycodeignore", "private/")
    scene.write("private/a.py", "")
    scene.write(".env", "")
    (scene.root / "link.py").symlink_to(scene.root / "private" / "a.py")
    (scene.root / "settings.py").symlink_to(scene.root / ".env")
    (scene.root / "open").symlink_to(scene.root / "private")
    assert [await scene.level(path) for path in ("link.py", "settings.py", "open/a.py")] == [Level.NEVER] * 3
    assert "holds secrets" in (await scene.judge("settings.py")).why


@pipes
async def test_what_is_no_file_closes_and_is_not_waited_for(scene):
    os.mkfifo(scene.root / ".monkeycodeignore")
    assert await scene.level("a.py") is Level.NEVER
    assert "cannot be read" in scene.told[0]


async def test_only_the_files_of_the_setting_are_read(tmp_path):
    (tmp_path / ".monkeycodeignore").write_text("a.py")
    (tmp_path / ".aiexclude").write_text("b.py")
    scene = Scene(tmp_path, names=(".aiexclude", "../x", "", "a/b"))
    assert [await scene.level(path) for path in ("a.py", "b.py")] == [Level.ANYWHERE, Level.NEVER]
    assert scene.rules.is_ignore_file(scene.uri("x/.aiexclude"))
    assert not scene.rules.is_ignore_file(scene.uri(".monkeycodeignore"))


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-remote://ssh/w/a.py", "file:", ""])
async def test_what_is_not_on_this_disk_has_no_ignore_file_where_there_is_no_workspace(uri):
    assert await Rules(NAMES, report=print).judge(uri, within_s=20) == ANYWHERE
    assert not Rules(NAMES, report=print).is_ignore_file(uri)


@pytest.mark.parametrize("uri", ["file://[::1/w", "file:///a%00b", "vscode-remote://ssh/a%00b", "file:///a?x%00b"])
async def test_a_name_that_cannot_be_understood_is_not_served(uri):
    assert (await Rules(NAMES, report=print).judge(uri, within_s=20)).level is Level.NEVER


@pytest.mark.parametrize("name", ["private#1.py", "private?1.py", "private%231.py", "private?a#b.py", "private.py?x", "private.py#x"])
async def test_a_name_with_signs_that_mean_something_in_a_uri_is_the_name_that_it_is(scene, name):
    scene.write(".monkeycodeignore", "private*.py\n")
    uri = f"{scene.root.as_uri()}/{name}"
    assert (await scene.rules.judge(uri, scene.root.as_uri(), within_s=20)).level is Level.NEVER


async def test_a_name_with_such_a_sign_does_not_hide_that_it_is_secret(scene):
    assert (await scene.rules.judge(f"{scene.root.as_uri()}/server#1.pem", scene.root.as_uri(), within_s=20)).level is Level.NEVER


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("vscode-remote://ssh-remote+h{w}/sub/a.py", Level.NEVER),
        ("vscode-remote://ssh-remote+h/elsewhere/private.py", Level.NEVER),
        ("vscode-remote://ssh-remote+h/sub/a.py", Level.NEVER),
        ("vscode-remote://ssh-remote+h{w}/a.py", Level.LOCAL),
        ("vscode-remote://ssh-remote+h/a.txt", Level.ANYWHERE),
        ("untitled:{w}/private.py", Level.NEVER),
        ("untitled:private.py", Level.NEVER),
        ("untitled:../sub/a.txt", Level.NEVER),
        ("untitled:Untitled-1", Level.ANYWHERE),
        ("vscode-notebook-cell://h{w}/private.py#a", Level.NEVER),
        ("file:private.py", Level.NEVER),
    ],
)
async def test_what_is_not_on_this_disk_is_judged_by_its_name(scene, uri, expected):
    scene.write(".monkeycodeignore", "private.py\n/sub/\n[local]\n*.py\n")
    uri = uri.format(w=scene.root.as_posix())
    assert (await scene.rules.judge(uri, scene.root.as_uri(), within_s=20)).level is expected


async def test_every_folder_of_the_workspace_that_holds_a_file_counts(scene):
    scene.write(".monkeycodeignore", "b/private.py\n")
    inner, uri = (scene.root / "b").as_uri(), scene.uri("b/private.py")
    assert (await scene.rules.judge(uri, inner, within_s=20)).level is Level.ANYWHERE
    both = Rules(NAMES, report=print, folders=lambda: [scene.root.as_uri(), inner])
    assert (await both.judge(uri, inner, within_s=20)).level is Level.NEVER


def test_cells_and_odd_spellings_are_the_same_file(tmp_path):
    path = tmp_path / "a b#c.py"
    assert reading.path_of(path.as_uri()) == path
    assert reading.path_of(f"vscode-notebook-cell:{tmp_path}/x.ipynb#W0") == tmp_path / "x.ipynb"


async def test_many_documents_leave_little_behind(scene):
    for n in range(1_100):
        await scene.level(f"{n}.py")
    assert len(scene.rules._known) <= 1_024
    await scene.rules.aclose()


async def test_what_was_read_before_a_change_is_not_known_after_it(scene):
    scene.write(".monkeycodeignore", "a.py")
    judging = asyncio.create_task(scene.judge("a.py"))
    for _ in range(3):  # until the disk is being looked at
        await asyncio.sleep(0)
    scene.rules.changed()
    await judging
    assert scene.rules.known(scene.uri("a.py")) is None


@links
async def test_a_link_to_what_git_ignores_is_not_quoted(scene):
    scene.write(".gitignore", "built.py")
    scene.write("built.py", "x = 1")
    (scene.root / "link.py").symlink_to(scene.root / "built.py")
    assert not (await scene.judge("link.py")).is_quoted
