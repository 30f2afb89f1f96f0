"""How long a shared process stays, and whom it lets in."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host.host import Host, Limits
from monkeycode_lsp.engines.local.host.registry import Entry, Note
from monkeycode_lsp.engines.local.host.rendezvous import Door, Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="clients come through a Unix socket")


class Idle:
    """Work that is never any."""

    def __init__(self):
        self.ended = threading.Event()
        self.error = None

    def hear(self, client, message):
        pass

    def forget(self, client):
        pass

    def idle_since(self):
        if self.error is not None:
            raise self.error

    def describe(self):
        return wire.Status(pid=0, name="", since=0.0, clients=0, running=0, totals=wire.Totals())

    def end(self):
        self.ended.set()


class Unlucky:
    """A listening socket that fails at first."""

    def __init__(self, listener, number):
        self.listener = listener
        self.errors = [OSError(number, os.strerror(number))] * 2

    def accept(self):
        if self.errors:
            raise self.errors.pop()
        return self.listener.accept()

    def __getattr__(self, name):
        return getattr(self.listener, name)


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="h") as folder:
        yield Place(Path(folder) / "engine-x.sock")


@pytest.fixture
def host(place):
    """Makes a host that has not started; lets it go."""
    made = []

    def make(served=None, **limits):
        door, overdue = Door(place.socket, loopback=False), threading.Event()
        entry = Entry(place, Note(kind="native", model="m", version="0"))
        host = Host(door=door, entry=entry, served=served or Idle(), limits=Limits(**limits), overdue=overdue.set)
        host.door, host.overdue = door, overdue
        made.append(host)
        return host

    yield make
    for host in made:
        host.close()


@pytest.fixture
def connect(place):
    made = []

    def connect():
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].settimeout(8)
        made[-1].connect(os.fspath(place.socket))
        return made[-1]

    yield connect
    for connection in made:
        connection.close()


def is_welcome(connection):
    connection.sendall(wire.encode(wire.Hello()))
    [message] = wire.frames_from_worker().feed(connection.recv(1000))
    return isinstance(message, wire.Welcome)


def test_a_host_that_is_to_stay_for_ages_still_leaves_when_told(host, connect, place):
    served = Idle()
    ours = host(served, idle_s=1e15)
    ours.start()
    assert is_welcome(connect())
    ours.leave()
    assert served.ended.wait(10)
    assert not place.socket.exists()


def test_a_host_that_cannot_tell_how_long_to_stay_ends(host, caplog):
    served = Idle()
    served.error = ZeroDivisionError("no time")
    ours = host(served, idle_s=1.0)
    ours.start()
    assert ours.overdue.wait(10)
    assert "no time" in caplog.text


def test_a_host_to_which_nobody_comes_leaves_soon(host):
    served = Idle()
    host(served, first_client_s=0.01).start()
    assert served.ended.wait(10)
    assert Limits().first_client_s <= 15


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOMEM])
def test_a_bad_moment_does_not_close_the_door(host, connect, number, caplog):
    ours = host()
    ours.door.listener = Unlucky(ours.door.listener, number)
    ours.start()
    assert is_welcome(connect())
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_closed_door_ends_the_accepting_though_it_has_failed_before(host):
    door = host().door
    door.listener = Unlucky(door.listener, errno.EMFILE)
    door.close()
    assert door.accept() is None


def test_a_client_for_which_there_is_no_thread_costs_nobody_else_his_connection(host, connect, monkeypatch):
    real, failures = threading.Thread.start, [RuntimeError("can't start new thread")]

    def start(thread):
        if thread.name == "client" and failures:
            raise failures.pop()
        real(thread)

    ours = host()
    ours.start()
    monkeypatch.setattr(threading.Thread, "start", start)
    assert connect().recv(1000) == b""
    assert is_welcome(connect())


def test_a_client_that_has_gone_before_it_is_let_in_costs_nobody_else_his_connection(host, connect):
    class Gone:
        def accept(self):
            ours.door.listener = real
            connection, address = real.accept()
            connection.detach()
            return connection, address

    ours = host()
    real, ours.door.listener = ours.door.listener, Gone()
    connect()
    ours.start()
    assert is_welcome(connect())


def test_connections_that_say_nothing_make_room_for_others(host, connect):
    ours = host()
    ours.start()
    guest = connect()
    assert is_welcome(guest)
    silent = [connect() for _ in range(65)]
    assert silent[0].recv(1000) == b""
    assert is_welcome(silent[1])
    guest.sendall(wire.encode(wire.Ping(1)))
    assert wire.frames_from_worker().feed(guest.recv(1000)) == [wire.Pong(1)]
