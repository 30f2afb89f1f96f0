"""Every family's prompt, byte for byte, without and with another file."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Snippet, Window

WINDOW = Window(prefix="P\n", suffix="\nS", language="python", path="src/here.py", repository="shop")
OTHER = Snippet(path="src/other.py", text="C = 1\n")

SINGLE = {
    "qwen2.5-coder": "<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>",
    "starcoder2": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "starcoder": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "santacoder": "<fim-prefix>P\n<fim-suffix>\nS<fim-middle>",
    "stable-code": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "codeqwen1.5": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "deepseek-coder": "<\uff5cfim\u2581begin\uff5c>P\n<\uff5cfim\u2581hole\uff5c>\nS<\uff5cfim\u2581end\uff5c>",
    "codellama": "<PRE> P\n <SUF>\nS <MID>",
    "codegemma": "<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>",
    "codestral": "[SUFFIX]\nS[PREFIX]P\n",
    "granite-4": "<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>",
    "granite-3": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "seed-coder": "<[fim-suffix]>\nS<[fim-prefix]>P\n<[fim-middle]>",
    "mellum-4b": "<fim_suffix>\nS<fim_prefix>P\n<fim_middle>",
    "mellum-2": "<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "codegeex4": (
        "<|user|>\n###PATH:src/here.py\n###LANGUAGE:Python\n###MODE:BLOCK\n"
        "<|code_suffix|>\nS<|code_prefix|>P\n<|code_middle|><|assistant|>\n"
    ),
    "glm-4.5": "<|code_prefix|>P\n<|code_suffix|>\nS<|code_middle|>",
    "falcon-h1": "<|prefix|>P\n<|suffix|>\nS<|middle|>",
    "mercury-coder": "<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>",
    "refact": "<fim_suffix>\nS<fim_prefix>P\n<fim_middle>",
}

WITH_FILES = {
    "qwen2.5-coder": (
        "<|repo_name|>shop\n<|file_sep|>src/other.py\nC = 1\n<|file_sep|>src/here.py\n<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>"
    ),
    "starcoder2": ("<repo_name>shop\n<file_sep>src/other.py\nC = 1\n<file_sep>src/here.py\n<fim_prefix>P\n<fim_suffix>\nS<fim_middle>"),
    "starcoder": (
        "<reponame>shop<filename>src/other.py\nC = 1\n<|endoftext|><filename>src/here.py\n<fim_prefix>P\n<fim_suffix>\nS<fim_middle>"
    ),
    "santacoder": "<fim-prefix># src/other.py\nC = 1\nP\n<fim-suffix>\nS<fim-middle>",
    "stable-code": "<fim_prefix># src/other.py\nC = 1\nP\n<fim_suffix>\nS<fim_middle>",
    "codeqwen1.5": ("<reponame>shop\n<file_sep>src/other.py\nC = 1\n<file_sep>src/here.py\n<fim_prefix>P\n<fim_suffix>\nS<fim_middle>"),
    "deepseek-coder": ("#src/other.py\nC = 1\n<\uff5cfim\u2581begin\uff5c>P\n<\uff5cfim\u2581hole\uff5c>\nS<\uff5cfim\u2581end\uff5c>"),
    "codellama": "<PRE> # src/other.py\nC = 1\nP\n <SUF>\nS <MID>",
    "codegemma": ("<|file_separator|>src/other.py\nC = 1\n<|file_separator|>src/here.py\n<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>"),
    "codestral": "[SUFFIX]\nS[PREFIX]+++++ src/other.py\nC = 1\n\n+++++ src/here.py\nP\n",
    "granite-4": "<|fim_prefix|># src/other.py\nC = 1\nP\n<|fim_suffix|>\nS<|fim_middle|>",
    "granite-3": "<reponame>shop\n# src/other.py\nC = 1\n<fim_prefix>P\n<fim_suffix>\nS<fim_middle>",
    "seed-coder": "<[fim-suffix]>\nS<[fim-prefix]># src/other.py\nC = 1\nP\n<[fim-middle]>",
    "mellum-4b": "<filename>src/other.py\nC = 1\n<filename>src/here.py\n<fim_suffix>\nS<fim_prefix>P\n<fim_middle>",
    "mellum-2": "<fim_prefix># src/other.py\nC = 1\nP\n<fim_suffix>\nS<fim_middle>",
    "codegeex4": (
        "<|user|>\n###REFERENCE:\n###PATH:src/other.py\nC = 1\n"
        "###PATH:src/here.py\n###LANGUAGE:Python\n###MODE:BLOCK\n"
        "<|code_suffix|>\nS<|code_prefix|>P\n<|code_middle|><|assistant|>\n"
    ),
    "glm-4.5": "<|code_prefix|># src/other.py\nC = 1\nP\n<|code_suffix|>\nS<|code_middle|>",
    "falcon-h1": "<|prefix|># src/other.py\nC = 1\nP\n<|suffix|>\nS<|middle|>",
    "mercury-coder": ("<|file_sep|>src/other.py\nC = 1\n<|file_sep|>src/here.py\n<|fim_prefix|>P\n<|fim_suffix|>\nS<|fim_middle|>"),
    "refact": "<fim_suffix>\nS<fim_prefix># src/other.py\nC = 1\nP\n<fim_middle>",
}


def family(name: str) -> prompt.Family:
    found = prompt.by_setting(name, None)
    assert found is not None
    return found


def written(name: str, *snippets: Snippet, window: Window = WINDOW) -> str:
    return prompt.as_text(prompt.render(window, snippets, family(name), max_tokens=9)).text


def test_every_family_has_its_rows() -> None:
    names = {family.name for family in prompt.FAMILIES}
    assert names == set(SINGLE)
    assert names == set(WITH_FILES)


@pytest.mark.parametrize("name", SINGLE)
def test_one_file(name: str) -> None:
    assert written(name) == SINGLE[name]


@pytest.mark.parametrize("name", WITH_FILES)
def test_with_another_file_before_it(name: str) -> None:
    assert written(name, OTHER) == WITH_FILES[name]


def test_without_a_workspace_no_repository_is_named() -> None:
    window = Window(prefix="P", suffix="", language="go", path="a.go")
    assert written("qwen2.5-coder", OTHER, window=window) == (
        "<|file_sep|>src/other.py\nC = 1\n<|file_sep|>a.go\n<|fim_prefix|>P<|fim_suffix|><|fim_middle|>"
    )


def test_a_path_comment_is_one_of_the_current_language() -> None:
    window = Window(prefix="P", suffix="", language="go", path="a.go")
    assert written("stable-code", OTHER, window=window).startswith("<fim_prefix>// src/other.py\nC = 1\nP<fim_suffix>")


def test_the_prompt_grows_at_its_end_when_a_letter_is_typed() -> None:
    longer = Window(prefix="P\nx", suffix="\nS", language="python", path="src/here.py", repository="shop")
    before, after = written("qwen2.5-coder", OTHER), written("qwen2.5-coder", OTHER, window=longer)
    assert after.startswith(before[: before.index("<|fim_suffix|>")])


@pytest.mark.parametrize("known", prompt.FAMILIES, ids=lambda known: known.name)
def test_no_family_stops_at_ordinary_code(known: prompt.Family) -> None:
    code = "package main\nimport os  // https://example.org # note\n\nclass A {}\n<code>a</code><pre>b</pre>\n"
    assert not [stop for stop in known.stop if stop in code]
    assert all(stop for stop in known.stop)
