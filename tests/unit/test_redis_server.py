"""The Redis of the tests leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest

from tests import redis_server

OWNER = """
import sys, time
from pathlib import Path
from tests.redis_server import RedisServer

server = RedisServer(Path(sys.argv[1]))
server.start()
if sys.argv[2] == "hanging":
    server.hang()
print(server.port, flush=True)
time.sleep(60)
"""


@redis_server.needed
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends a child with its parent")
@pytest.mark.parametrize("how", ["well", "hanging"])
def test_a_test_run_that_is_killed_leaves_no_server_behind(tmp_path, how):
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), how], stdout=subprocess.PIPE) as owner:
        port = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < end
        time.sleep(0.02)
