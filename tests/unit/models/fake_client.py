"""A package client for tests: `python fake_client.py SHELF download … --dest D NAME==VERSION`.

SHELF holds `NAME.bin` and `NAME.blob` (the path inside the wheel).  `NAME.fails` makes it fail with that text,
`NAME.sleeps` makes it write its process id to that file and sleep.  Each call is added to `SHELF/calls`.
"""

from __future__ import annotations

import sys
import time
import zipfile
from os import getpid
from pathlib import Path

shelf, argv = Path(sys.argv[1]), sys.argv[2:]
name, _, version = argv[-1].partition("==")
with (shelf / "calls").open("a") as calls:
    calls.write(" ".join(argv) + "\n")
sleeps = shelf / f"{name}.sleeps"
if sleeps.exists():
    Path(sleeps.read_text()).write_text(str(getpid()))
    time.sleep(60)
fails = shelf / f"{name}.fails"
if fails.exists():
    sys.stderr.write(fails.read_text())
    sys.exit(1)
dest = Path(argv[argv.index("--dest") + 1])
dest.mkdir()
wheel = dest / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
if (shelf / f"{name}.bin").exists():
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr((shelf / f"{name}.blob").read_text(), (shelf / f"{name}.bin").read_bytes())
elif (shelf / f"{name}.junk").exists():
    wheel.write_bytes(b"this is no zip file")
