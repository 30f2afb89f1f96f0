"""A real Redis or Valkey on a free port of loopback, which a test may kill, stop and start again.

with RedisServer(tmp_path) as server:
    ...  # use `server.url`
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from monkeycode_lsp.engines.local.managed import command
from tests import servers
from tests.certificates import Authority

_UP_WITHIN_S = 20
_PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")

needed = pytest.mark.skipif(_PROGRAM is None, reason="neither redis-server nor valkey-server is installed")


class RedisServer:
    """One server process; its port stays the same when it is started again.

    On Linux it ends with us, however we end.
    """

    def __init__(self, folder: Path, *arguments: str, authority: Authority | None = None, password: str = "") -> None:
        self.port = servers.unused_port()
        self._folder = folder
        self._authority = authority
        self._password = password
        self._arguments = [*arguments, *(("--requirepass", password) if password else ())]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        tls = self._authority
        scheme, options = ("rediss", f"?ssl_ca_certs={tls.ca_file}") if tls else ("redis", "")
        return f"{scheme}://{f':{self._password}@' if self._password else ''}127.0.0.1:{self.port}/0{options}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it; returns when it answers."""
        assert _PROGRAM is not None
        assert self._process is None
        self._folder.mkdir(parents=True, exist_ok=True)
        listen = ["--port", str(self.port)]
        if self._authority is not None:
            keys = self._authority.ca_file.parent
            listen = ["--port", "0", "--tls-port", str(self.port), "--tls-cert-file", str(keys / "server.pem")]
            listen += ["--tls-key-file", str(keys / "server.key"), "--tls-ca-cert-file", str(keys / "ca.pem"), "--tls-auth-clients", "no"]
        quiet = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(self._folder), "--daemonize", "no"]
        started = [_PROGRAM, *listen, *quiet, *self._arguments]
        if sys.platform == "linux":
            started = command.bound(started)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(started, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + _UP_WITHIN_S
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "server.log").read_text()
            assert time.monotonic() < end, "the server does not come up"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once, as a crash would; can be called twice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """It takes connections and answers nothing, until `go_on`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def run(self, *words: str | bytes) -> bytes:
        """What it says to one command, as bytes of the protocol."""
        with self._connected() as connection:
            if self._password:
                self._say(connection, "AUTH", self._password)
                connection.recv(100)
            self._say(connection, *words)
            return connection.recv(65_536)

    def _answers(self) -> bool:
        try:
            if self._authority is not None:
                self._connected().close()
                return True
            return self.run("PING").startswith(b"+PONG")
        except OSError:
            return False

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    @staticmethod
    def _say(connection: socket.socket, *words: str | bytes) -> None:
        parts = [word if isinstance(word, bytes) else word.encode() for word in words]
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
