"""Where an engine process and its clients meet."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local.host import registry, rendezvous
from monkeycode_lsp.engines.local.host.peers import Peer
from monkeycode_lsp.engines.local.host.rendezvous import Door
from monkeycode_lsp.errors import EngineUnavailableError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there it is a file that may have any name")


@pytest.fixture
def short(monkeypatch):
    """A home whose name is short."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as folder:
        monkeypatch.setenv("MONKEYCODE_HOME", folder)
        yield Path(folder)


@pytest.fixture
def place():
    """Makes a place; takes it away again."""
    made = []

    def make(key="0123456789ab"):
        made.append(rendezvous.place(key))
        return made[-1]

    yield make
    for place in made:
        rendezvous.remove(place.socket)


def test_it_is_in_our_private_folder_and_always_the_same(short, place):
    assert place() == place()
    assert place().socket.parent == short / "run"
    assert stat.S_IMODE((short / "run").stat().st_mode) == 0o700


def test_other_keys_are_other_places(short, place):
    assert place("a" * 12).socket != place("b" * 12).socket
    assert place("a" * 12).key == "a" * 12


@pytest.mark.parametrize("why", ["too deep", "cannot be made"])
def test_a_home_that_will_not_do_is_replaced_by_a_private_temporary_folder(place, tmp_path, monkeypatch, why):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MONKEYCODE_HOME", str({"too deep": tmp_path / ("ä" * 60), "cannot be made": tmp_path / "file" / "home"}[why]))
    socket = place().socket
    assert socket == place().socket
    assert len(os.fsencode(socket)) <= 100
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    Door(socket, loopback=False).close()
    assert not socket.parent.exists()


def test_two_homes_have_two_temporary_folders(place, tmp_path, monkeypatch):
    sockets = []
    for name in ("a", "b"):
        monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / (name * 120)))
        sockets.append(place().socket)
    assert sockets[0].parent != sockets[1].parent


def test_a_temporary_folder_that_somebody_else_made_first_is_not_used(place, tmp_path, monkeypatch):
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / ("d" * 120)))
    taken = place().socket.parent
    taken.chmod(0o777)
    other = place().socket.parent
    assert other != taken
    taken.chmod(0o700)


@pytest.mark.parametrize("how", ["readable by others", "a link"])
def test_a_folder_that_others_may_use_is_refused(short, place, how):
    if how == "a link":
        (short / "elsewhere").mkdir(mode=0o700)
        (short / "run").symlink_to(short / "elsewhere")
    else:
        folders.private(short / "run").chmod(0o750)
    with pytest.raises(EngineUnavailableError, match="not private") as caught:
        place()
    assert caught.value.remedy


async def test_a_socket_tells_both_sides_who_the_other_is(short, place):
    door = Door(place().socket, loopback=False)
    connection = await rendezvous.connect(door.path)
    accepted = door.accept()
    if sys.platform in {"linux", "darwin"}:
        assert connection.peer == Peer(os.geteuid(), os.getpid())
    accepted.close()
    connection.writer.close()
    await connection.writer.wait_closed()
    door.close()
    assert not door.path.exists()


def test_another_user_is_not_ours():
    assert Peer(os.geteuid(), 1).is_ours
    assert not Peer(os.geteuid() + 1, 1).is_ours


async def test_a_file_that_is_no_socket_leads_nowhere(short, place):
    place().socket.write_text("no address")
    with pytest.raises(ConnectionRefusedError):
        await rendezvous.connect(place().socket)


async def test_a_closed_door_lets_nobody_in_and_leaves_what_came_after_it(short, place):
    door = Door(place().socket, loopback=False)
    door.close()
    assert door.accept() is None
    second = Door(place().socket, loopback=False)
    door.close()
    assert second.path.exists()
    second.close()


def test_where_no_temporary_folder_is_either_that_is_said(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / ("d" * 120)))
    monkeypatch.setattr(rendezvous, "_SHALLOW", ())
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.raises(EngineUnavailableError, match="no private folder"):
        rendezvous.place("0123456789ab")


def test_a_place_that_has_just_been_taken_away_holds_nothing(short, monkeypatch):
    monkeypatch.setattr(rendezvous, "folder", lambda: short / "gone")
    assert rendezvous.places() == []


async def test_a_named_pipe_leads_nowhere_at_once(short, place):
    os.mkfifo(place().socket)
    with pytest.raises(ConnectionRefusedError):
        await rendezvous.connect(place().socket)


async def test_an_address_of_endless_depth_leads_nowhere(short, place):
    place().socket.write_text('{"x":' + "[" * 200_000)
    with pytest.raises(ConnectionRefusedError):
        await rendezvous.connect(place().socket)


@pytest.mark.parametrize("content", ["[" * 200_000, None])
def test_a_note_that_is_none_is_not_read(short, place, content):
    if content is None:
        os.mkfifo(place().note)
    else:
        place().note.write_text(content)
    assert registry.read(place()) is None
    assert registry.all_notes() == []
    rendezvous.remove(place().note)


STRANGER = """
import os, socket, sys
os.setuid(65534)
stranger = socket.socket(socket.AF_UNIX)
if sys.argv[1] == "comes":
    stranger.connect(sys.argv[2])
    print(len(stranger.recv(1)), flush=True)
else:
    stranger.bind(sys.argv[2])
    os.chmod(sys.argv[2], 0o666)
    stranger.listen()
    print("listens", flush=True)
    stranger.accept()
"""


@pytest.fixture
def open_folder():
    """Where another user may come in."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can be another user as well")
async def test_another_users_process_is_not_let_in_and_ours_is(open_folder):
    path = open_folder / "engine.sock"
    door = rendezvous.Door(path, loopback=False)
    path.chmod(0o666)
    letting_in = asyncio.create_task(asyncio.to_thread(door.accept))
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", STRANGER, "comes", path, stdout=subprocess.PIPE)
    assert await asyncio.wait_for(stranger.communicate(), 20) == (b"0\n", None)
    assert not letting_in.done()
    ours = await rendezvous.connect(path)
    (await letting_in).close()
    ours.writer.close()
    door.close()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can be another user as well")
async def test_nothing_is_said_to_another_users_process(open_folder):
    path = open_folder / "engine.sock"
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", STRANGER, "listens", path, stdout=subprocess.PIPE)
    assert await asyncio.wait_for(stranger.stdout.readline(), 20) == b"listens\n"
    with pytest.raises(PermissionError, match="another user"):
        await rendezvous.connect(path)
    await asyncio.wait_for(stranger.communicate(), 20)
