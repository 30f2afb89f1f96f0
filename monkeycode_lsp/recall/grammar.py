"""How the languages write comments and strings, and whether their line ends and white space mean something (pure).

Read `Grammar` first.  Where a language is hard to read without a parser the table says less than the
language allows: text that is taken for code where it is a comment costs a miss, the reverse would be
a wrong answer.
"""

from __future__ import annotations

import enum
import functools
import re

import msgspec


class Ends(enum.Enum):
    """What a line end means."""

    NOTHING = "nothing"
    BLANK = "blank"
    """No more than a blank does (markup)."""
    STATEMENT = "statement"
    """It ends a statement where one can end (Go, JavaScript)."""
    LINE = "line"
    """Lines are what the language is made of."""


class Span(msgspec.Struct, frozen=True):
    """A comment or string that can go on over line ends."""

    opener: str
    """A pattern.  A group in it is put in for `{}` in `closer`."""
    closer: str
    comment: bool = False
    escapes: bool = False
    """A backslash before the closer keeps the string open."""
    nests: str = ""
    """The opener as plain text, where such comments nest."""


class Grammar(msgspec.Struct, frozen=True):
    """What has to be known of a language to tell its tokens."""

    comment: str = ""
    """A pattern: how a comment that ends with its line begins."""
    trailing: bool = True
    """Whether such a comment can stand behind code; False where that cannot be told safely."""
    spans: tuple[Span, ...] = ()
    quotes: str = "\"'"
    """Characters around strings that end with their line."""
    quotes_after: str = ""
    """A look-behind: where a quote opens a string at all."""
    literal: str = ""
    """A pattern for literals that look like something else (characters, lifetimes)."""
    heredoc: str = ""
    """A pattern whose group `end` is the line that ends the text."""
    regex: bool = False
    """Whether a slash can open a regular expression."""
    ends: Ends = Ends.NOTHING
    indent: bool = False
    """Whether indentation means something."""
    blanks: bool = False
    """Whether white space between two tokens means something (`a -b`, `a - b`)."""
    blank_lines: bool = False
    directives: bool = False
    """Whether a line that begins with `#` is one for the preprocessor."""
    block_scalars: bool = False
    """Whether a line's end can open a text that is held together by its indentation (YAML)."""


_SLASHES = r"(?<!:)//"
_SPACED_HASH = r"(?<!\S)\#"
_BLOCK = Span(opener=r"/\*", closer="*/", comment=True)
_NESTED = Span(opener=r"/\*", closer="*/", comment=True, nests="/*")
_TRIPLE = Span(opener=r'"""', closer='"""', escapes=True)
_TRIPLE_SINGLE = Span(opener="'''", closer="'''", escapes=True)
_BACKTICK = Span(opener="`", closer="`", escapes=True)
_RAW_BACKTICK = Span(opener="`", closer="`")
_LONG = Span(opener='"', closer='"', escapes=True)
_LONG_SINGLE = Span(opener="'", closer="'")
_MARKUP = Span(opener="<!--", closer="-->", comment=True)
_HEREDOC = r"<<[-~]?[ \t]*(?P<mark>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=mark)"

_UNKNOWN = Grammar(quotes='"', ends=Ends.LINE, indent=True, blanks=True, blank_lines=True)
_PROSE = Grammar(quotes="", ends=Ends.LINE, indent=True, blanks=True, blank_lines=True)
_PYTHON = Grammar(comment=r"\#", spans=(_TRIPLE, _TRIPLE_SINGLE), ends=Ends.LINE, indent=True)
_C = Grammar(
    comment=_SLASHES,
    spans=(Span(opener=r'R"(?P<raw>[^()\\\s"]{0,16})\(', closer='){}"'), _BLOCK),
    literal=r"\d[\w.]*(?:'\w+)+",
    directives=True,
)
_JAVASCRIPT = Grammar(comment=_SLASHES, spans=(_BLOCK, _BACKTICK), regex=True, ends=Ends.STATEMENT)
_JAVA = Grammar(comment=_SLASHES, spans=(_BLOCK, _TRIPLE))
_CSHARP = Grammar(comment=_SLASHES, spans=(_BLOCK, _TRIPLE, Span(opener=r'\$?@\$?"', closer='"')), directives=True)
_NEWER = Grammar(comment=_SLASHES, spans=(_NESTED, _TRIPLE), ends=Ends.STATEMENT)
_DART = Grammar(comment=_SLASHES, spans=(_NESTED, _TRIPLE, _TRIPLE_SINGLE))
_GO = Grammar(comment=_SLASHES, spans=(_BLOCK, _RAW_BACKTICK), ends=Ends.STATEMENT)
_RUST = Grammar(
    comment=_SLASHES,
    spans=(_NESTED, Span(opener=r'\b[bc]?r(?P<raw>\#*)"', closer='"{}'), _LONG),
    quotes="",
    literal=r"'(?:\\[^'\n]{1,10}|[^\\'\n])'|'\w+",
)
_PLAIN_BRACES = Grammar(comment=_SLASHES, spans=(_BLOCK,))
_PHP = Grammar(
    comment=rf"{_SLASHES}|\#(?!\[)",
    trailing=False,
    spans=(_BLOCK, _LONG, Span(opener="'", closer="'", escapes=True)),
    quotes="",
    heredoc=r"<<<[ \t]*(?P<mark>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=mark)",
    ends=Ends.BLANK,
    blanks=True,
)
_RUBY = Grammar(
    comment=_SPACED_HASH,
    quotes="\"'`",
    heredoc=r"<<[-~]?(?P<mark>['\"]?)(?P<end>[A-Z_]\w*)(?P=mark)",
    regex=True,
    ends=Ends.LINE,
    blanks=True,
)
_PERL = Grammar(comment=r"\#", trailing=False, heredoc=_HEREDOC, ends=Ends.LINE, blanks=True)
_SHELL = Grammar(
    comment=_SPACED_HASH,
    spans=(_LONG, _LONG_SINGLE),
    quotes="",
    literal=r"\\.",
    heredoc=rf"(?<!<){_HEREDOC}",
    ends=Ends.LINE,
    blanks=True,
)
_POWERSHELL = Grammar(
    comment=_SPACED_HASH,
    spans=(
        Span(opener="<#", closer="#>", comment=True),
        Span(opener='@"', closer='"@'),
        Span(opener="@'", closer="'@"),
    ),
    ends=Ends.LINE,
    blanks=True,
)
_LUA = Grammar(
    comment="--",
    spans=(
        Span(opener=r"--\[(?P<comment_level>=*)\[", closer="]{}]", comment=True),
        Span(opener=r"\[(?P<level>=*)\[", closer="]{}]"),
    ),
)
_SQL = Grammar(comment="--", spans=(_BLOCK, _LONG_SINGLE), quotes='"')
_HTML = Grammar(spans=(_MARKUP,), quotes_after="(?<==)", ends=Ends.BLANK, blanks=True)
_CSS = Grammar(spans=(_BLOCK,), ends=Ends.BLANK, blanks=True)
_SCSS = Grammar(comment=r"(?<!\S)//", spans=(_BLOCK,), ends=Ends.BLANK, blanks=True)
_YAML = Grammar(comment=_SPACED_HASH, quotes_after=r"(?<![^\s:\[{,-])", ends=Ends.LINE, indent=True, blanks=True, block_scalars=True)
_TOML = Grammar(comment=r"\#", spans=(_TRIPLE, Span(opener="'''", closer="'''")), ends=Ends.LINE)
_JSON = Grammar(comment=_SLASHES, spans=(_BLOCK,), quotes='"')
_MAKE = Grammar(comment=_SPACED_HASH, quotes_after=r"(?<!\w)", literal=r"\\.", ends=Ends.LINE, indent=True, blanks=True)
_HASH_LINES = Grammar(comment=_SPACED_HASH, trailing=False, ends=Ends.LINE, blanks=True)
_INI = Grammar(comment=r"[;\#]", trailing=False, quotes="", ends=Ends.LINE, blanks=True)
_HASH = Grammar(comment=r"\#", spans=(_TRIPLE,), ends=Ends.LINE, blanks=True)
_HCL = Grammar(comment=rf"\#|{_SLASHES}", spans=(_BLOCK,), quotes='"', heredoc=_HEREDOC, ends=Ends.LINE)
_LISP = Grammar(comment=r"(?<!\S);", spans=(_LONG,), quotes="", blanks=True, ends=Ends.BLANK)
_HASKELL = Grammar(
    comment=r"(?<!\S)--(?![!#$%&*+./<=>?@\\^|~:])",
    spans=(Span(opener=r"\{-", closer="-}", comment=True, nests="{-"),),
    quotes='"',
    ends=Ends.LINE,
    indent=True,
    blanks=True,
)

_GRAMMARS: tuple[tuple[str, Grammar], ...] = (
    ("python starlark bazel", _PYTHON),
    ("nim coffeescript gdscript", msgspec.structs.replace(_PYTHON, blanks=True)),
    ("c cpp objective-c objective-cpp cuda-cpp cuda", _C),
    ("glsl hlsl wgsl metal proto proto3 protobuf solidity verilog systemverilog zig", _PLAIN_BRACES),
    ("javascript javascriptreact typescript typescriptreact", _JAVASCRIPT),
    ("java groovy", _JAVA),
    ("csharp", _CSHARP),
    ("kotlin scala swift", _NEWER),
    ("dart", _DART),
    ("go", _GO),
    ("rust", _RUST),
    ("php", _PHP),
    ("ruby crystal", _RUBY),
    ("perl", _PERL),
    ("shellscript sh bash zsh ksh", _SHELL),
    ("powershell", _POWERSHELL),
    ("lua", _LUA),
    ("sql plsql mysql postgres", _SQL),
    ("html xml svg xhtml vue svelte astro handlebars", _HTML),
    ("css", _CSS),
    ("scss less", _SCSS),
    ("yaml dockercompose github-actions-workflow", _YAML),
    ("toml", _TOML),
    ("json jsonc json5 jsonl", _JSON),
    ("makefile make", _MAKE),
    ("dockerfile fish gitignore ignore dotenv", _HASH_LINES),
    ("ini properties editorconfig", _INI),
    ("elixir julia r cmake graphql", _HASH),
    ("terraform hcl", _HCL),
    ("clojure lisp commonlisp scheme racket elisp emacs-lisp", _LISP),
    ("haskell elm purescript", _HASKELL),
    ("markdown mdx plaintext text latex tex bibtex restructuredtext asciidoc org quarto rmd typst", _PROSE),
    ("git-commit gitcommit git-rebase gitrebase diff log csv tsv", _PROSE),
)


@functools.cache
def _by_language() -> dict[str, Grammar]:
    return {language: grammar for languages, grammar in _GRAMMARS for language in languages.split()}


def grammar(language: str) -> Grammar:
    """What is known of `language`; of an unknown one nothing, so that all of its text counts."""
    return _by_language().get(language.lower(), _UNKNOWN)


@functools.cache
def scanner(language: str) -> re.Pattern[str]:
    """Finds the next token; the group's name says what it is.

    An operator stops where anything else could begin.  Every branch is decided by its first characters, so the work is linear.
    """
    known = grammar(language)
    opening = [known.comment, known.literal, "<<" if known.heredoc else "", "/" if known.regex else ""]
    opening += [re.sub(r"\?P<\w+>", "?:", span.opener) for span in known.spans]
    opening.append(f"{known.quotes_after}[{known.quotes}]" if known.quotes else "")
    stop = "|".join(filter(None, opening))
    blank = r"(?P<blank>\s+)|" if known.blanks else r"\s*"
    branches = [
        *(f"(?P<string{i}>{_closed(span)})" for i, span in enumerate(known.spans) if span.opener == span.closer in {'"', "'", "`"}),
        *(f"(?P<span{i}>{span.opener})" for i, span in enumerate(known.spans)),
        f"(?P<comment>{known.comment})" if known.comment else "",
        f"(?P<heredoc>{known.heredoc})" if known.heredoc else "",
        f"(?P<literal>{known.literal})" if known.literal else "",
        *(f"{known.quotes_after}(?P<quoted{i}>{_closed(Span(q, q, escapes=True))})" for i, q in enumerate(known.quotes)),
        f"(?P<quote>{known.quotes_after}[{known.quotes}])" if known.quotes else "",
        r"(?P<word>\d[\w.]*|\w+)",
        rf"(?P<operator>[()\[\]{{}},;]|(?:(?!{stop or '$.'})[^\w\s()\[\]{{}},;])++|\S)",
    ]
    return re.compile(f"{blank}(?:{'|'.join(filter(None, branches))})")


def _closed(span: Span) -> str:
    """A pattern for a string that ends on its line."""
    mark = span.closer
    return rf"{mark}(?:[^{mark}\\]++|\\.)*+{mark}" if span.escapes else f"{mark}[^{mark}]*+{mark}"
