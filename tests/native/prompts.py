"""Prompts for the real model."""

from __future__ import annotations

from monkeycode_lsp.domain import Control, Plain

FIM = (
    Control("<|fim_prefix|>"),
    Plain("def is_even(n):\n    return "),
    Control("<|fim_suffix|>"),
    Plain("\n\nprint(is_even(4))\n"),
    Control("<|fim_middle|>"),
)
FUNCTIONS = "".join(f"def f{n}(x):\n    return x + {n}\n\n" for n in range(20))
PROMPTS = {
    "fill in the middle": FIM,
    "prefix only": (Plain("import os\n\ndef read(path):\n    with open(path) as f:\n        return "),),
    "go": (Plain('package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\t'),),
    "not ASCII": (Plain("# Die Straße heißt „Größe“ 😀漢字\nname = '"),),
    "several chunks": (Plain(FUNCTIONS + "def f20(x):\n    return "),),
}
