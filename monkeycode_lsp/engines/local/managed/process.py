"""The llama-server as its host sees it: started on a private port, listened to, and gone when its host is gone."""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import queue
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from monkeycode_lsp.engines.local import explain
from monkeycode_lsp.engines.local.managed import command as managed_command
from monkeycode_lsp.engines.local.managed.command import About
from monkeycode_lsp.engines.local.managed.server import BUILT, KEY_VARIABLE, LISTENS

logger = logging.getLogger(__name__)

_LISTENING = re.compile(re.escape(LISTENS) + r"(http://\S+)")
_SIGNALLED = 128
_LONGEST_LINE = 65_536
_HEALTH_S = 2.0
_END_S = 2.0
_OK = 200


class Address(msgspec.Struct, frozen=True):
    """Where the server listens."""

    url: str


class End(msgspec.Struct, frozen=True):
    """The server has ended."""

    status: int
    """Its exit status, below 0 a signal."""


News = About | Address | End


class ServerProcess:
    """One llama-server."""

    def __init__(self, command: Sequence[str], news: queue.SimpleQueue[News | None]) -> None:
        """Start it; what it tells and its end go into `news`.  Raises `OSError`.

        Call it on the main thread: on Linux the server dies with the thread that started it.
        """
        # The mutable state is what it said at last, and of memory; it changes on the thread that listens, until it has ended.
        self.key = secrets.token_urlsafe(32)
        """Proof for its answers; in memory, in its environment and nowhere else."""
        self._news = news
        self.last_words = ""
        """The last line that it printed."""
        self.words_of_memory = ""
        """The last of its lines that complained of a lack of memory."""
        self._process = subprocess.Popen(  # noqa: S603 - the command is ours
            managed_command.bound([*command]),
            stdin=subprocess.DEVNULL if sys.platform == "linux" else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**managed_command.environment(os.environ), KEY_VARIABLE: self.key},
        )
        threading.Thread(target=self._listen, name="server", daemon=True).start()

    def is_healthy(self, url: str) -> bool:
        """Whether it has loaded the model and would answer now."""
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_HEALTH_S)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == _OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """End it and wait until it is gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # whoever keeps it ends it, and then himself
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        output = self._process.stdout
        while output is not None and (line := output.readline(_LONGEST_LINE)):
            self._hear(line.decode("utf-8", "replace").strip())
        status = self._process.wait()
        if sys.platform != "linux" and status > _SIGNALLED:
            status = _SIGNALLED - status
        self._news.put(End(status))

    def _hear(self, line: str) -> None:
        if line.startswith(BUILT):
            with contextlib.suppress(msgspec.MsgspecError):
                self._news.put(msgspec.json.decode(line.removeprefix(BUILT), type=About))
            return
        if found := _LISTENING.search(line):
            self._news.put(Address(found[1]))
        if line:
            self.last_words = line
            if explain.speaks_of_memory(line):
                self.words_of_memory = line
            with contextlib.suppress(OSError):  # a full disk must not stop us listening, which would stop the server
                print(line, file=sys.stderr, flush=True)  # noqa: T201 - our log
