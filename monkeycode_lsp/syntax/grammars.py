"""The grammars at hand, by LSP language identifier.  The only module that knows tree-sitter's packages.

A grammar is imported when its language is met first (some milliseconds).  Parsing holds the
interpreter, about 50 µs for each 1,000 characters, so whoever is on the event loop parses a bounded text.
"""

from __future__ import annotations

import importlib
import logging
import time
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Language, Parser, Tree

logger = logging.getLogger(__name__)


WITHIN_MS = 8.0
"""Source of 24,000 characters takes one to two milliseconds, words without any structure two hundred."""
_PIECE = 65_536


class _Package(msgspec.Struct, frozen=True):
    """Where a grammar comes from."""

    module: str
    function: str = "language"


_JAVASCRIPT = _Package("tree_sitter_javascript")
_TYPESCRIPT = _Package("tree_sitter_typescript", "language_typescript")
_TSX = _Package("tree_sitter_typescript", "language_tsx")
_BASH = _Package("tree_sitter_bash")

_PACKAGES = {
    "python": _Package("tree_sitter_python"),
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "typescriptreact": _TSX,
    "go": _Package("tree_sitter_go"),
    "rust": _Package("tree_sitter_rust"),
    "java": _Package("tree_sitter_java"),
    "c": _Package("tree_sitter_c"),
    "cpp": _Package("tree_sitter_cpp"),
    "csharp": _Package("tree_sitter_c_sharp"),
    "ruby": _Package("tree_sitter_ruby"),
    "php": _Package("tree_sitter_php", "language_php"),
    "shellscript": _BASH,
    "bash": _BASH,
    "lua": _Package("tree_sitter_lua"),
    "kotlin": _Package("tree_sitter_kotlin"),
    "swift": _Package("tree_sitter_swift"),
    "scala": _Package("tree_sitter_scala"),
    "html": _Package("tree_sitter_html"),
    "css": _Package("tree_sitter_css"),
    "json": _Package("tree_sitter_json"),
    "yaml": _Package("tree_sitter_yaml"),
    "toml": _Package("tree_sitter_toml"),
    "zig": _Package("tree_sitter_zig"),
    "elixir": _Package("tree_sitter_elixir"),
    "julia": _Package("tree_sitter_julia"),
}

LANGUAGES = frozenset(_PACKAGES)
"""Those that can have a grammar; some need the extra `languages`."""


@cache
def grammar(language: str) -> Language | None:
    """None where there is none, or it is not installed."""
    package = _PACKAGES.get(language)
    if package is None:
        return None
    try:
        import tree_sitter  # noqa: PLC0415 - a server that is never asked does not pay for it

        module = importlib.import_module(package.module)
        return tree_sitter.Language(getattr(module, package.function)())
    except (ImportError, AttributeError, ValueError) as exc:  # not installed, or made for another tree-sitter
        logger.info("No grammar for %s (%s).", language, type(exc).__name__)
        return None


@cache
def _parser(language: str) -> tuple[Parser, bytearray] | None:
    """A parser, and what it is given to read: always the same object, because the library never lets go of one (0.26)."""
    known = grammar(language)
    if known is None:
        return None
    import tree_sitter  # noqa: PLC0415 - see above

    return tree_sitter.Parser(known), bytearray()


def parse(text: str, language: str, *, within_ms: float = WITHIN_MS) -> Tree | None:
    """The tree of `text`; offsets in it are UTF-8 bytes.  Not for several threads at once.

    None: no grammar, or the parser was still looking for sense in it after so much processor time.
    """
    found = _parser(language)
    if found is None:
        return None
    parser, piece = found
    data = text.encode("utf-8", errors="replace")
    # To ask for the processor's time costs as much as a short text to parse, so it is asked only when a quarter is over on the wall.
    began, limit, until = time.monotonic(), within_ms / 1e3, 0.0

    def is_late(_at: int, _is_fault: bool) -> bool:  # noqa: FBT001 - the library's call
        nonlocal until
        passed = time.monotonic() - began
        if not until:
            until = time.thread_time() + 0.75 * limit if passed > limit / 4 else 0.0
            return False
        return passed > limit and time.thread_time() > until

    def read(at: int, _place: object) -> bytearray:
        piece[:] = data[at : at + _PIECE]
        return piece

    try:
        return parser.parse(read, progress_callback=is_late)
    except ValueError:
        parser.reset()  # else it would go on with this text
        return None
    finally:
        piece.clear()
