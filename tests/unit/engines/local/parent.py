"""A process that has a native engine, as the editor's server does, for tests that kill it: `parent.py LINGER MODEL COMMAND…`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.native import NativeEngine


async def main():
    settings = Local(linger_seconds=int(sys.argv[1]))
    engine = NativeEngine(settings=settings, model=Path(sys.argv[2]), notify=lambda message: None, command=sys.argv[3:])
    await engine.ready()
    running = engine._tenant.running
    print(json.dumps({"pid": running.link.pid, "socket": str(running.place.socket)}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await engine.aclose()


asyncio.run(main())
