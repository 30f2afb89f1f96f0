"""Stands in for the process that converts: `stub_quantize.py HOW SOURCE TARGET --type=N --threads=N`."""

import os
import signal
import sys
from pathlib import Path

how, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
match how:
    case "copies":
        target.write_bytes(source.read_bytes())
    case "replaces":
        target.write_bytes(Path(os.environ["STUB_RESULT"]).read_bytes())
    case "refuses":
        target.write_bytes(b"GGUF half")
        print("loading", file=sys.stderr)
        print("failed to quantize: tensor is strange", file=sys.stderr)
        sys.exit(1)
    case "aborts":
        target.write_bytes(b"GGUF half")
        os.kill(os.getpid(), signal.SIGABRT)
    case "works on":
        target.write_bytes(b"GGUF half")
        sys.stdin.read()
