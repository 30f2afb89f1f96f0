"""`monkeycode replay --record`: serves an editor in place of `monkeycode serve`, and records what is typed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from monkeycode_lsp import settings, transport
from monkeycode_lsp.cli import options, replay_words
from monkeycode_lsp.cli.options import Chosen


def serve(file: Path, chosen: tuple[str, ...]) -> int:
    """Serve the editor that started us; the exit code."""
    stdout = transport.claim_stdout()  # before the imports: whatever prints while it is imported must not reach the editor
    from monkeycode_lsp import app  # noqa: PLC0415 - see above
    from monkeycode_lsp.bench.replay import record, recording  # noqa: PLC0415 - as above

    tree = options.overrides(Chosen(settings=chosen))
    goes_to = recording.RecordingFile(file)
    if sys.stdin.isatty():  # somebody tries it by hand
        click.echo(replay_words.recording(file, goes_to.expected()), err=True)
    app.start_logging(str(tree.get("logLevel") or os.environ.get("MONKEYCODE_LOG_LEVEL") or "info"))
    layers = settings.Layers(environ=os.environ, overrides=tree)
    return app.run(app.make_server(tree), lambda server: record.serve(server, stdout, goes_to, layers))
