"""Makes snapshots and windows from text with `‸` at the cursor."""

from monkeycode_lsp import config
from monkeycode_lsp.context import window
from monkeycode_lsp.domain import Ask, Snapshot, Trigger
from monkeycode_lsp.text import prevailing_eol, split_lines

URI = "file:///w/app.py"


def snapshot(marked, *, language="python", uri=URI, workspace="file:///w", **more):
    before, _, after = marked.partition("‸")
    lines = split_lines(before + after)
    head = split_lines(before)
    return Snapshot(
        uri=uri, language=language, version=1, lines=lines, line=len(head) - 1, column=len(head[-1]),
        eol=prevailing_eol(lines), workspace=workspace, n_bytes=len(before + after), **more,
    )  # fmt: skip


def ask(marked, *, invoked=False, since_edit_ms=None, selected=None, inserted="", **more):
    return Ask(snapshot(marked, **more), Trigger.INVOKED if invoked else Trigger.AUTOMATIC, selected, since_edit_ms, inserted)


def at(marked, settings=None, **more):
    """The window at the cursor."""
    return window.around(snapshot(marked, **more), settings or config.Context())
