"""The engine process's inside: clients, their asks, and the one thread that decodes.

`Service.run` is that thread.  Each client has a thread that reads from it; the clients' sockets are
written to by whoever has something to say.  A client that misbehaves or is too slow loses its own
connection, nothing else.
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
from typing import TypeAlias

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.backlog import Backlog, Job
from monkeycode_lsp.engines.local.decoder import Decoder, GenerationError, LoadError

logger = logging.getLogger(__name__)

_SLOW_CLIENT_S = 2
"""A client that takes nothing for so long holds up all others."""
_READ_BYTES = 65_536


class Limits(msgspec.Struct, frozen=True):
    """How long the process stays without work."""

    linger_s: float = 0.0
    """After the last client has gone."""
    first_client_s: float = 60.0
    """Until the first client comes."""
    idle_s: float = 0.0
    """Without an ask, though there are clients; 0: for ever."""


class Client:
    """The worker's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        # The mutable state is the connection; frames are written whole, under `_writing`.
        self._connection = connection
        self._writing = threading.Lock()
        timeout = struct.pack("L", _SLOW_CLIENT_S * 1000) if os.name == "nt" else struct.pack("ll", _SLOW_CLIENT_S, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)

    def send(self, message: wire.FromWorker) -> None:
        """Say something; a client that does not listen is cut off, which its reading thread notices."""
        try:
            with self._writing:
                self._connection.sendall(wire.encode(message))
        except OSError:
            self.cut()

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


ClientJob: TypeAlias = Job[Client]


class Service:
    """Serves one decoder to all clients that come to one listening socket."""

    def __init__(
        self, *, make_decoder: Callable[[], Decoder], listener: socket.socket, token: str = "", limits: Limits | None = None
    ) -> None:
        # The mutable state is the set of clients, what a new one is told, and until when nobody may be there;
        # it changes under `_lock` only.  The decoder belongs to the thread of `run`.
        self._make_decoder = make_decoder
        self._decoder: Decoder | None = None
        self._listener = listener
        self._token = token
        self._limits = limits or Limits()
        self._backlog: Backlog[Client] = Backlog()
        self._lock = threading.Lock()
        self._clients: set[Client] = set()
        self._greeting: list[wire.FromWorker] = []
        self._has_come = threading.Event()
        self._alone_until = 0.0

    def run(self) -> bool:
        """Wait for a client, load, then decode until nobody needs it any more.  False: it could not be loaded."""
        threading.Thread(target=self._accept, name="accept", daemon=True).start()
        # A crash while loading must find somebody who was told what came before it.
        if not self._has_come.wait(self._limits.first_client_s):
            return True
        try:
            decoder = self._decoder = self._make_decoder()
            self._tell(wire.Starting(decoder.build()))
            self._tell(decoder.load())
        except LoadError as exc:
            self._tell(wire.LoadFailed(exc.kind, exc.message))
            return False
        last_ask = time.monotonic()
        while (left_s := self._time_left(last_ask)) is None or left_s > 0:
            job = self._backlog.take(left_s)
            if job is not None:
                self._answer(decoder, job)
                last_ask = time.monotonic()
        return True

    def close(self) -> None:
        """Let all clients go, and free the model."""
        self._listener.close()
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            client.cut()
        if self._decoder is not None:
            self._decoder.close()

    def _time_left(self, last_ask: float) -> float | None:
        """Seconds until the process should leave; None: there is no such time."""
        now = time.monotonic()
        with self._lock:
            if not self._clients:
                return self._alone_until - now
        return last_ask + self._limits.idle_s - now if self._limits.idle_s else None

    def _tell(self, message: wire.FromWorker) -> None:
        """Tell all clients, those too that are still to come."""
        with self._lock:
            self._greeting.append(message)
            clients = list(self._clients)
        for client in clients:
            client.send(message)

    def _answer(self, decoder: Decoder, job: ClientJob) -> None:
        answer: wire.Done | wire.Failed | None = None
        try:
            for event in decoder.generate(job.ask, job.cancelled.is_set):
                if isinstance(event, wire.Done):
                    answer = event
                else:
                    job.owner.send(event)
        except GenerationError as exc:
            answer = wire.Failed(job.ask.id, exc.kind, exc.message, limit_tokens=exc.limit_tokens)
        except Exception as exc:
            # The outermost handler of this process: one broken ask must not take the model from all windows.
            logger.exception("An ask could not be answered.")
            answer = wire.Failed(job.ask.id, "internal", f"{type(exc).__name__} in the engine process.")
        # Forgotten before it is answered: the client may use the id again as soon as it reads the answer.
        self._backlog.done(job)
        job.owner.send(answer or wire.Failed(job.ask.id, "internal", "The decoder gave no end."))

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._listen_to, args=(Client(connection),), name="client", daemon=True).start()

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
        with self._lock:
            known = client in self._clients
        if isinstance(message, wire.Hello):
            self._welcome(client, message)
        elif not known:
            raise wire.FrameError("it did not say hello")
        elif isinstance(message, wire.Generate):
            if not self._backlog.put(Job(client, message)):
                client.send(wire.Failed(message.id, "busy", "Too many asks wait already."))
        elif job := self._backlog.cancel(client, message.id):
            client.send(wire.Done(job.ask.id, "cancelled"))

    def _welcome(self, client: Client, hello: wire.Hello) -> None:
        if hello.version != wire.VERSION:
            raise wire.FrameError(f"it speaks version {hello.version}, this is {wire.VERSION}")
        if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise wire.FrameError("its token is wrong")
        # Sent under the lock, so that nothing that `_tell` says overtakes it.
        with self._lock:
            self._clients.add(client)
            for message in self._greeting:
                client.send(message)
        self._has_come.set()

    def _forget(self, client: Client) -> None:
        client.close()
        with self._lock:
            if client in self._clients:
                self._clients.remove(client)
                if not self._clients:
                    self._alone_until = time.monotonic() + self._limits.linger_s
        self._backlog.drop(client)
