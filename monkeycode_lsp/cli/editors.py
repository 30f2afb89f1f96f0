"""The lines to paste into an editor.  One text for `try`, `doctor` and the README."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec

COMMAND = "monkeycode-lsp"


class Editor(msgspec.Struct, frozen=True):
    """How one editor is told to use the server."""

    name: str
    file: str
    """Where the lines go."""
    language: str
    """Of the lines, for highlighting."""
    lines: str
    note: str = ""


NEOVIM = Editor(
    name="Neovim 0.12",
    file="init.lua",
    language="lua",
    lines="""\
vim.lsp.config('monkeycode', { cmd = { 'monkeycode-lsp' }, root_markers = { '.git' } })
vim.lsp.enable('monkeycode')
vim.lsp.inline_completion.enable()
vim.keymap.set('i', '<Tab>', function()
  if not vim.lsp.inline_completion.get() then return '<Tab>' end
end, { expr = true })
""",
    note="Tab takes the ghost text.",
)

HELIX = Editor(
    name="Helix",
    file="~/.config/helix/languages.toml",
    language="toml",
    lines="""\
[language-server.monkeycode]
command = "monkeycode-lsp"

[[language]]
name = "python"
language-servers = ["monkeycode"]
""",
    note="Helix has no ghost text: suggestions are in the completion menu. Repeat the last three lines for each language, "
    "with the servers that you use there beside monkeycode.",
)

VSCODE = Editor(
    name="VS Code",
    file="settings.json, with the extension “Generic LSP Client (v2)”",
    language="json",
    lines="""\
"glspc.server.command": "monkeycode-lsp",
"glspc.server.languageId": ["python", "typescript", "javascript", "go", "rust", "java", "c", "cpp"]
""",
    note="Through this extension suggestions are in the completion menu.",
)

EDITORS = (NEOVIM, HELIX, VSCODE)


def here() -> tuple[Editor, ...]:
    """The same with the command's whole path where an editor would not find it by its name."""
    program = Path(sys.executable).with_name(COMMAND + (".exe" if sys.platform == "win32" else ""))
    in_environment = sys.prefix != sys.base_prefix  # its commands are on PATH only where it is activated
    if not program.is_file() or (shutil.which(COMMAND) and not in_environment):
        return EDITORS
    path = program.as_posix()
    return tuple(msgspec.structs.replace(editor, lines=editor.lines.replace(COMMAND, path)) for editor in EDITORS)


def text(editor: Editor) -> str:
    """Name, place, lines and note, for a terminal."""
    note = f"\n{editor.note}" if editor.note else ""
    return f"{editor.name}: {editor.file}\n\n{editor.lines.rstrip()}\n{note}".rstrip() + "\n"
