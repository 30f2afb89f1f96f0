"""The process that requantizes a model: `python -m monkeycode_lsp.engines.local.llama.quantize SOURCE TARGET --type N`.

It writes straight to TARGET, a temporary name that its parent chose, and leaves when its stdin is closed; TARGET then
goes with it.  Exit status 1: llama.cpp refused, and the last line on stderr says why.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import llama_cpp

_WARNING = 3
"""llama.cpp's levels: what is less than this is chatter, one line a tensor."""
_CONTINUED = 5
"""The rest of a line whose beginning had a level of its own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Requantize one file."""
    parser = argparse.ArgumentParser(prog="monkeycode model convert", description="Requantizes one model file.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--type", type=int, required=True, help="llama_ftype")
    parser.add_argument("--threads", type=int, default=0, help="0: as llama.cpp sees fit")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends us
    threading.Thread(target=_watch_parent, args=(args.target,), name="parent", daemon=True).start()
    log = llama_cpp.llama_log_callback(_log)
    llama_cpp.llama_log_set(log, None)
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = args.type
    params.nthread = args.threads
    params.allow_requantize = True
    return int(llama_cpp.llama_model_quantize(os.fsencode(args.source), os.fsencode(args.target), ctypes.byref(params)) != 0)


def _log(level: int, text: bytes, _user_data: object) -> None:
    if _WARNING <= level < _CONTINUED:
        sys.stderr.write(text.decode("utf-8", "replace"))
        sys.stderr.flush()


def _watch_parent(target: Path) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    with contextlib.suppress(OSError):
        target.unlink()
    os._exit(0)


if __name__ == "__main__":
    raise SystemExit(main())
