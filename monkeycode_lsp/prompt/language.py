"""What prompts need to know of a language: how a line comment begins and what people call it.

Keyed by LSP language identifiers; a language that is not listed gets `#` and its own identifier.
"""

from __future__ import annotations

_SLASHES = (
    "c cpp csharp cuda-cpp d dart fsharp glsl go groovy hlsl java javascript javascriptreact jsonc kotlin less objective-c "
    "objective-cpp php proto rust scala scss swift typescript typescriptreact verilog systemverilog zig"
)
_DASHES = "ada elm haskell lua sql vhdl"
_SEMICOLONS = "asm clojure commonlisp elisp emacs-lisp ini lisp racket scheme"
_PERCENTS = "bibtex erlang latex matlab prolog tex"
_MARKUP = "html xml svg vue svelte markdown astro"

_COMMENT: dict[str, tuple[str, str]] = {
    **dict.fromkeys(_SLASHES.split(), ("// ", "")),
    **dict.fromkeys(_DASHES.split(), ("-- ", "")),
    **dict.fromkeys(_SEMICOLONS.split(), ("; ", "")),
    **dict.fromkeys(_PERCENTS.split(), ("% ", "")),
    **dict.fromkeys(_MARKUP.split(), ("<!-- ", " -->")),
    "bat": ("REM ", ""),
    "css": ("/* ", " */"),
    "ocaml": ("(* ", " *)"),
    "vb": ("' ", ""),
    "vim": ('" ', ""),
}

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
    before, after = _COMMENT.get(language, ("# ", ""))
    return f"{before}{text}{after}"


def title(language: str) -> str:
    """The name by which people and training data call it."""
    return _TITLE.get(language) or language[:1].upper() + language[1:]
