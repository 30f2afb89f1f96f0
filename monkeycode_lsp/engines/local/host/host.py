"""A process that several clients share: its clients, their connections, and how long it stays.

Knows nothing of what it is shared for: that is `Served`.  Each client has a thread that reads from it and
answers at once what it can answer; whoever has something to say writes.  A client that misbehaves or is too slow
loses its own connection, nothing else.  The process leaves in one way only: note and socket go first, then every client
is told, then whoever works is asked to end.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host.registry import Entry
from monkeycode_lsp.engines.local.host.rendezvous import Door

logger = logging.getLogger(__name__)

_SLOW_CLIENT_MS = 500
"""A client that takes nothing for so long, its buffer being full, holds up all others."""
_SEND_BUFFER_BYTES = 1 << 20
_HELLO_S = 10.0
"""Who says nothing for so long is no client."""
_READ_BYTES = 65_536
_CLOSE_S = 15.0
"""Longest time to keep what is worth keeping."""
_LONGEST_WAIT_S = 3_600.0
"""The system cannot wait for as long as a number can say."""
_MOST_STRANGERS = 64
"""Connections that have not said hello; the oldest makes room for the next."""


class Limits(msgspec.Struct, frozen=True):
    """How long the process stays without work."""

    linger_s: float = 0.0
    """After the last client has gone."""
    first_client_s: float = 15.0
    """Until the first client comes: whoever started the process does as soon as it listens, if he lives."""
    idle_s: float = 0.0
    """Without work, though there are clients; 0: for ever."""
    grace_s: float = 1.0
    """How long the work may take to end once it is time to leave."""


class Client:
    """The host's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        # The mutable state is the connection, to which frames are written whole, under `_writing`, and what the client
        # has come for, which `Host` sets.
        self.purpose: Literal["ask", "control"] | None = None
        """None: it has not said hello."""
        self._connection = connection
        self._writing = threading.Lock()
        connection.settimeout(_HELLO_S)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        timeout = struct.pack("L", _SLOW_CLIENT_MS) if os.name == "nt" else struct.pack("ll", 0, _SLOW_CLIENT_MS * 1000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)

    def send(self, message: wire.FromWorker) -> None:
        """Say something; a client that does not listen is cut off, which its reading thread notices."""
        try:
            with self._writing:
                self._connection.sendall(wire.encode(message))
        except OSError:
            self.cut()

    def known(self, purpose: Literal["ask", "control"]) -> None:
        """It has said hello and may be silent from now on; for the reading thread only."""
        self.purpose = purpose
        self._connection.settimeout(None)

    def receive(self) -> bytes:
        """The next bytes; none: it has gone."""
        try:
            return self._connection.recv(_READ_BYTES)
        except OSError:
            return b""

    def cut(self) -> None:
        """End the connection: its reading thread wakes, and closes it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the descriptor back; for the reading thread only."""
        self.cut()
        self._connection.close()


class Served(Protocol):
    """What the process does for its clients.  Called from their threads; nothing of it may take long."""

    def hear(self, client: Client, message: wire.Work) -> None:
        """Take up what a client asks or tells of its asks.  Raises `ValueError` to cut it off."""
        ...

    def forget(self, client: Client) -> None:
        """A client has gone."""
        ...

    def idle_since(self) -> float | None:
        """Since when (`time.monotonic`) there is nothing to do; None: there is."""
        ...

    def describe(self) -> wire.Status:
        """How it goes; `pid`, `since` and `clients` are filled in by the host."""
        ...

    def end(self) -> None:
        """It is time to leave: whoever works should call `Host.close` soon."""
        ...


class Host:
    """Serves all clients that come to one door."""

    def __init__(self, *, door: Door, entry: Entry, served: Served, limits: Limits, overdue: Callable[[], None]) -> None:
        """`overdue` is called when the work does not end though it is time to leave, and must end the process."""
        # The mutable state is the clients, the connections that have not said hello, the oldest first, what a new client
        # is told, since when nobody is there, and whether it is time to leave; all of it changes under `_changed` only.
        self._door = door
        self._entry = entry
        self._served = served
        self._limits = limits
        self._overdue = overdue
        self._changed = threading.Condition()
        self._clients: set[Client] = set()
        self._strangers: list[Client] = []
        self._greeting: list[wire.FromWorker] = []
        self._alone_until: float | None = time.monotonic() + limits.first_client_s
        self._has_come = False
        self._is_retired = False
        self._is_leaving = False
        self._is_bowing = False
        self._has_bowed = threading.Event()
        self._ended = threading.Event()
        self._closed = threading.Event()
        self._since = time.time()

    def start(self) -> None:
        """Let clients in."""
        for run in (self._accept, self._live):
            threading.Thread(target=run, name=run.__name__.strip("_"), daemon=True).start()

    def wait_for_client(self) -> bool:
        """Wait until somebody asks; False: it is time to leave."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_come or self._is_leaving)
            return not self._is_leaving

    @property
    def is_leaving(self) -> bool:
        return self._is_leaving

    def leave(self) -> None:
        """It is time to leave; returns at once."""
        with self._changed:
            self._is_leaving = True
            self._changed.notify_all()

    def tell(self, message: wire.FromWorker) -> None:
        """Tell all clients, those too that are still to come."""
        with self._changed:
            self._greeting.append(message)
            clients = [client for client in self._clients if client.purpose == "ask"]
        for client in clients:
            client.send(message)

    def ending(self) -> None:
        """The work has ended; what is worth keeping may still be kept."""
        self._ended.set()

    def close(self) -> None:
        """Let everybody go; the process then ends."""
        self._ended.set()
        self.leave()
        self._bow_out()
        with self._changed:
            clients = list(self._clients)
        for client in clients:
            client.cut()
        self._closed.set()

    def _live(self) -> None:
        """Stay until it is time to leave, and see that the process then does."""
        try:
            self._stay()
            self._bow_out()
            self._served.end()
            if self._ended.wait(self._limits.grace_s) and self._closed.wait(_CLOSE_S):
                return
        except Exception:
            # The outermost handler of this thread: without it nothing would ever end the process.
            logger.exception("The engine process ends because it cannot tell how long to stay.")
        self._overdue()

    def _stay(self) -> None:
        with self._changed:
            while not self._is_leaving:
                left_s = self._left_s()
                if left_s is not None and left_s <= 0:
                    self._is_leaving = True
                    self._changed.notify_all()
                else:
                    self._changed.wait(None if left_s is None else min(left_s, _LONGEST_WAIT_S))

    def _left_s(self) -> float | None:
        """Seconds until it may be time to leave; None: that depends on what happens."""
        now = time.monotonic()
        times = []
        if self._alone_until is not None:
            times.append(now if self._is_retired else self._alone_until)
        if self._limits.idle_s:
            since = self._served.idle_since()
            times.append((now if since is None else since) + self._limits.idle_s)
        return min(times) - now if times else None

    def _bow_out(self) -> None:
        """Once only: what lies at our place afterwards belongs to the next process."""
        with self._changed:
            is_first, self._is_bowing = not self._is_bowing, True
            clients = list(self._clients)
        if is_first:
            self._entry.remove()
            self._door.close()
            for client in clients:
                client.send(wire.Leaving())
            self._has_bowed.set()
        self._has_bowed.wait()

    def _accept(self) -> None:
        while (connection := self._door.accept()) is not None:
            try:
                self._let_in(Client(connection))
            except (OSError, RuntimeError) as exc:
                # It has gone already, or there are too many threads; the next one may be luckier.
                logger.warning("A connection was not taken: %s.", exc)
                connection.close()

    def _let_in(self, client: Client) -> None:
        with self._changed:
            self._strangers.append(client)
            crowd = self._strangers[:-_MOST_STRANGERS]
            del self._strangers[: len(crowd)]
        for stranger in crowd:
            stranger.cut()
        try:
            threading.Thread(target=self._listen_to, args=(client,), name="client", daemon=True).start()
        except RuntimeError:
            with self._changed:
                self._no_stranger(client)
            raise

    def _no_stranger(self, client: Client) -> None:
        """Only under `_changed`."""
        if client in self._strangers:
            self._strangers.remove(client)

    def _listen_to(self, client: Client) -> None:
        frames = wire.frames_from_client()
        try:
            while data := client.receive():
                for message in frames.feed(data):
                    self._handle(client, message)
        except ValueError as exc:
            logger.warning("A client was cut off: %s.", exc)
        finally:
            self._forget(client)

    def _handle(self, client: Client, message: wire.FromClient) -> None:
        match message:
            case wire.Hello():
                self._welcome(client, message)
            case _ if client.purpose is None:
                raise wire.FrameError("it did not say hello")
            case wire.Ping():
                client.send(wire.Pong(message.number))
            case wire.Look():
                client.send(self._status())
            case wire.Retire():
                with self._changed:
                    self._is_retired = True
                    self._changed.notify_all()
            case wire.Shutdown():
                self.leave()
            case _ if client.purpose == "control":
                raise wire.FrameError("it came to look and asks")
            case wire.Generate() | wire.Cancel() | wire.Count() | wire.Began() | wire.Ended():
                self._served.hear(client, message)

    def _welcome(self, client: Client, hello: wire.Hello) -> None:
        if client.purpose is not None:
            raise wire.FrameError("it said hello twice")
        if hello.purpose == "ask" and hello.version != wire.VERSION:
            raise wire.FrameError(f"it speaks version {hello.version}, this is {wire.VERSION}")
        if not hmac.compare_digest(hello.token.encode(), self._door.token.encode()):
            raise wire.FrameError("its token is wrong")
        # Sent under the lock, so that nothing that `tell` says overtakes it.
        with self._changed:
            if self._is_leaving:
                client.cut()
                return
            client.known(hello.purpose)
            self._no_stranger(client)
            self._clients.add(client)
            client.send(wire.Welcome(os.getpid()))
            if hello.purpose == "control":
                return
            for message in self._greeting:
                client.send(message)
            self._alone_until = None
            self._has_come = True
            self._changed.notify_all()

    def _forget(self, client: Client) -> None:
        client.close()
        with self._changed:
            self._no_stranger(client)
            self._clients.discard(client)
            if client.purpose == "ask" and not any(other.purpose == "ask" for other in self._clients):
                self._alone_until = time.monotonic() + self._limits.linger_s
                self._changed.notify_all()
        self._served.forget(client)

    def _status(self) -> wire.Status:
        with self._changed:
            n_clients = sum(client.purpose == "ask" for client in self._clients)
        return msgspec.structs.replace(self._served.describe(), pid=os.getpid(), since=self._since, clients=n_clients)
