"""A model that is not here yet: ask, fetch it and show how far it is."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from monkeycode_lsp.cli import terminal
from monkeycode_lsp.config import Local
from monkeycode_lsp.errors import ModelMissingError
from monkeycode_lsp.models.catalogue import Entry


def local_model(settings: Local, out: Console, *, yes: bool, again: str) -> Path:
    """The model file that `settings` mean; one that the catalogue has is fetched if the user agrees.

    `again` is the command that agrees beforehand, for places where nobody can be asked.
    """
    from monkeycode_lsp.engines.local.engine import find_model  # noqa: PLC0415 - only when a local engine answers
    from monkeycode_lsp.models import catalogue  # noqa: PLC0415 - as above

    try:
        return find_model(settings)
    except ModelMissingError as exc:
        entry = catalogue.lookup(exc.offer)
        if entry is None:
            raise
    if not yes:
        if not (sys.stdin.isatty() and out.is_terminal):
            raise ModelMissingError(
                f"The model {entry.title} is not here yet; it is {terminal.size(entry.about_bytes)} to download.", remedy=f"Run `{again}`."
            )
        if not click.confirm(f"Download {describe(entry)}?", default=True):
            raise ModelMissingError("Nothing was downloaded, and without a model there are no suggestions.", remedy=f"Later: `{again}`.")
    return fetch(entry, out, mirror=settings.mirror)


def title(path: Path) -> str:
    """The name that the catalogue has for a file, else its own."""
    from monkeycode_lsp.models import catalogue  # noqa: PLC0415 - only when a local engine answers

    return next((entry.title for entry in catalogue.entries() if entry.file == path.name), path.name)


def describe(entry: Entry) -> str:
    """What it is, how big, under which licence and from where."""
    return f"{entry.title} ({terminal.size(entry.about_bytes)}, {entry.licence}, {entry.repository} on the hub)"


def fetch(entry: Entry, out: Console, *, mirror: str = "") -> Path:
    """The checked file, with its progress shown."""
    from monkeycode_lsp.models import pull  # noqa: PLC0415 - brings the HTTP library

    sources = pull.default_sources(mirror=mirror)
    out.print(
        f"Fetching {describe(entry)} from the first of these that has it: {', '.join(source.name for source in sources)}.", markup=False
    )
    with terminal.progress(out) as progress:
        path = pull.pull(entry, progress=progress, sources=sources)
    out.print(f"{entry.title} is here and its SHA-256 is right: {path}" if entry.sha256 else f"{entry.title} is here: {path}", markup=False)
    return path
