"""Which language a file is written in, by its name (pure)."""

from __future__ import annotations

from pathlib import PurePosixPath

_ENDINGS = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs",
    "javascriptreact": "jsx",
    "typescript": "ts mts cts",
    "typescriptreact": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ inl ipp tpp",
    "csharp": "cs",
    "ruby": "rb rake",
    "php": "php",
    "shellscript": "sh bash",
    "lua": "lua",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc",
    "zig": "zig",
    "elixir": "ex exs",
    "julia": "jl",
}
_LANGUAGE = {f".{ending}": language for language, endings in _ENDINGS.items() for ending in endings.split()}


def of(path: str) -> str:
    """The LSP language identifier; empty: a language in which nothing is looked for."""
    return _LANGUAGE.get(PurePosixPath(path).suffix.lower(), "")
