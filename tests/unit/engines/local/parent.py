"""A process that owns a native engine, as the editor's server does, for tests that kill it: `parent.py MODEL COMMAND…`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local.native import NativeEngine


async def main():
    engine = NativeEngine(settings=Local(), model=Path(sys.argv[1]), notify=lambda message: None, command=sys.argv[2:])
    await engine.ready()
    child = engine._running[0].child
    print(json.dumps({"pid": child.pid, "socket": str(child.path)}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await engine.aclose()


asyncio.run(main())
