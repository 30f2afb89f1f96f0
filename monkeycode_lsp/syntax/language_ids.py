"""One language identifier for each language, whatever an editor calls it (pure).

Known are LSP's own identifiers; Neovim sends its file types, Emacs its modes' names, Helix and Sublime Text theirs.
Whoever takes an identifier from outside (a document, a setting) asks here, so that nobody else meets another spelling.
"""

from __future__ import annotations

_OTHERS = {
    "shellscript": "sh bash zsh ksh dash ash mksh bats shell shell-script",
    "csharp": "cs c-sharp c_sharp c#",
    "cpp": "c++ cxx cc hpp",
    "objective-c": "objc objectivec obj-c",
    "objective-cpp": "objcpp objc++ objectivecpp objective-c++",
    "cuda-cpp": "cuda cu",
    "python": "py python3 pyi",
    "javascript": "js js2 js3 node mjs cjs",
    "javascriptreact": "jsx js-jsx rjsx js2-jsx javascript.jsx",
    "typescript": "ts mts cts",
    "typescriptreact": "tsx typescript.tsx typescript-tsx",
    "go": "golang",
    "rust": "rs rustic",
    "ruby": "rb enh-ruby",
    "erb": "eruby html.erb",
    "perl": "pl cperl",
    "kotlin": "kt",
    "julia": "jl",
    "elixir": "ex exs",
    "erlang": "erl",
    "haskell": "hs",
    "ocaml": "ml tuareg caml",
    "fsharp": "fs f-sharp f#",
    "clojure": "clj",
    "powershell": "ps1 pwsh",
    "bat": "dosbatch cmd batch",
    "yaml": "yml",
    "json": "js-json",
    "toml": "conf-toml",
    "markdown": "md gfm",
    "html": "web mhtml html.basic",
    "latex": "tex plaintex",
    "makefile": "make gnumakefile makefile-gmake makefile-bsdmake",
    "dockerfile": "docker",
    "terraform": "tf",
    "proto": "protobuf proto3",
    "graphql": "gql",
    "properties": "jproperties java-properties conf-javaprop",
    "vb": "visualbasic vb.net",
    "git-commit": "gitcommit",
    "git-rebase": "gitrebase",
    "plaintext": "text txt plain fundamental",
}
_FAMILIES = {
    "javascript": "javascriptreact typescript typescriptreact vue svelte",
    "c": "cpp objective-c objective-cpp cuda-cpp",
    "java": "kotlin scala",
    "css": "less scss",
}
_CANONICAL = {other: language for language, others in _OTHERS.items() for other in others.split()}
_FAMILY = {member: family for family, members in _FAMILIES.items() for member in members.split()}


def canonical(language: str) -> str:
    """The identifier that all code here knows; of an unknown language its own."""
    plain = language.strip().lower()
    plain = plain.removesuffix("-mode").removesuffix("-ts")
    return _CANONICAL.get(plain, plain)


def family(language: str) -> str:
    """The same for languages (by their own identifiers) whose files use each other's definitions and read alike."""
    return _FAMILY.get(language, language)
