"""What prompts need to know of a language: a line of comment, and what people call it.

Keyed by LSP language identifiers.
"""

from __future__ import annotations

from monkeycode_lsp.context import comments

_TITLE = {
    "cpp": "C++",
    "csharp": "C#",
    "css": "CSS",
    "fsharp": "F#",
    "html": "HTML",
    "javascript": "JavaScript",
    "javascriptreact": "JavaScript",
    "json": "JSON",
    "objective-c": "Objective-C",
    "php": "PHP",
    "shellscript": "Shell",
    "sql": "SQL",
    "typescript": "TypeScript",
    "typescriptreact": "TypeScript",
    "yaml": "YAML",
}


def comment(language: str, text: str) -> str:
    """`text` as one line of comment."""
    mark = comments.marker(language)
    return f"{mark} {text}" if mark else f"<!-- {text} -->"


def title(language: str) -> str:
    """The name by which people and training data call it."""
    return _TITLE.get(language) or language[:1].upper() + language[1:]
