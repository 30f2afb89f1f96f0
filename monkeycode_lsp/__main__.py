"""`python -m monkeycode_lsp`, and the short way from an editor to the server."""

from __future__ import annotations

import os
import sys


def serve() -> None:
    """`monkeycode-lsp`: serve over stdio, without the command line's imports when there are no arguments."""
    if len(sys.argv) > 1 and sys.argv[1:] != ["--stdio"]:
        from monkeycode_lsp.cli import main  # noqa: PLC0415 - not needed on an editor's way

        sys.argv.insert(1, "serve")
        main()
        return
    from monkeycode_lsp import app, transport  # noqa: PLC0415 - standard output is claimed before anything can print

    stdout = transport.claim_stdout()
    app.start_logging(os.environ.get("MONKEYCODE_LOG_LEVEL", "info"))
    sys.exit(app.serve_stdio(stdout=stdout))


if __name__ == "__main__":
    from monkeycode_lsp.cli import main

    main()
