"""Which family a model belongs to."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.config import Template
from monkeycode_lsp.domain import Control, Plain, Window
from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.prompt import Markers

QWEN = Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
STAR = Markers("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>")

NAMES = {
    "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M": "qwen2.5-coder",
    "qwen2.5-coder:7b": "qwen2.5-coder",
    "qwen2.5-coder": "qwen2.5-coder",
    "QWEN2.5-CODER-0.5B": "qwen2.5-coder",
    "/models/qwen2_5_coder_q05.Q4.gguf": "qwen2.5-coder",
    "C:\\models\\Qwen2.5-Coder-1.5B.Q8_0.gguf": "qwen2.5-coder",
    "Qwen3-Coder-30B-A3B-Instruct": "qwen2.5-coder",
    "qwen3-coder:30b": "qwen2.5-coder",
    "Qwen/CodeQwen1.5-7B-Chat": "codeqwen1.5",
    "codeqwen:7b-code": "codeqwen1.5",
    "bigcode/starcoder2-3b": "starcoder2",
    "starcoder2:15b": "starcoder2",
    "org/StarCoder2-7B-GGUF:Q4_K_M": "starcoder2",
    "bigcode/starcoderbase-1b": "starcoder",
    "starcoder:7b": "starcoder",
    "bigcode/santacoder": "santacoder",
    "stable-code:3b-code": "stable-code",
    "stabilityai/stable-code-3b": "stable-code",
    "/models/deepseek-coder-1.3b.Q4.gguf": "deepseek-coder",
    "deepseek-coder:6.7b-base": "deepseek-coder",
    "org/DeepSeek-Coder-V2-Lite-Base-GGUF:Q4_K_M": "deepseek-coder",
    "deepseek-coder-v2:16b-lite-base-q4_0": "deepseek-coder",
    "codellama:7b-code": "codellama",
    "codellama/CodeLlama-13b-hf": "codellama",
    "code-llama-7b": "codellama",
    "codegemma:2b": "codegemma",
    "google/codegemma-7b": "codegemma",
    "mistralai/Codestral-22B-v0.1": "codestral",
    "codestral-latest": "codestral",
    "granite-code:8b": "granite-3",
    "ibm-granite/granite-3.3-8b-base": "granite-3",
    "ibm-granite/granite-8b-code-base-4k": "granite-3",
    "ibm-granite/granite-4.0-h-tiny": "granite-4",
    "granite4:3b": "granite-4",
    "ByteDance-Seed/Seed-Coder-8B-Base": "seed-coder",
    "JetBrains/Mellum-4b-base": "mellum-4b",
    "JetBrains/Mellum2-base": "mellum-2",
    "zai-org/codegeex4-all-9b": "codegeex4",
    "GLM-4.5-Air-GGUF:Q4_K_M": "glm-4.5",
    "tiiuae/Falcon-H1-7B-Base": "falcon-h1",
    "mercury-coder-small": "mercury-coder",
    "smallcloudai/Refact-1_6B-fim": "refact",
    # Models that were never taught to fill in, and names that only look like the above.
    "qwen2.5-7b-instruct": None,
    "qwen2.5:7b": None,
    "Qwen/Qwen3-8B": None,
    "llama-3.1-8b-instruct": None,
    "meta-llama/Llama-3.2-3B": None,
    "deepseek-r1-distill-qwen-7b": None,
    "deepseek-chat": None,
    "gemma2:9b": None,
    "mistral-7b-instruct": None,
    "gpt-4o-mini": None,
    "codellama:7b-python": None,
    "codellama-34b.Q4_K_M.gguf": None,
    "granite-embedding-278m": None,
    "granite-embedding-4k": None,
    "glm-4-9b": None,
    "glm-4-9b-chat": None,
    "wizardcoder-python": None,
    "/home/me/starcoder/llama-3.gguf": None,
    "": None,
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_by_name(name: str, expected: str | None) -> None:
    found = prompt.by_name(name)
    assert (found.name if found else None) == expected


@pytest.mark.parametrize(
    ("markers", "architecture", "name", "expected"),
    [
        (QWEN, "qwen2", "Qwen2.5 Coder 0.5B Instruct", "qwen2.5-coder"),
        (QWEN, "qwen2", "", "qwen2.5-coder"),
        (QWEN, "", "my-own-model", "qwen2.5-coder"),
        (Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"), "gemma", "", "codegemma"),
        (Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"), "granitehybrid", "", "granite-4"),
        (Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", separator="<|file_separator|>"), "", "", "codegemma"),
        (Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"), "some-new-one", "x", "generic"),
        (STAR, "starcoder2", "", "starcoder2"),
        (STAR, "starcoder", "", "starcoder"),
        (STAR, "stablelm", "stable-code-3b", "stable-code"),
        (STAR, "qwen2", "CodeQwen1.5-7B", "codeqwen1.5"),
        (STAR, "llama", "Mellum-4b-base", "mellum-4b"),
        (STAR, "llama", "granite-8b-code-base", "granite-3"),
        (STAR, "refact", "Refact-1.6B", "refact"),
        (STAR, "llama", "nobody-knows", "generic"),
        (Markers("<fim-prefix>", "<fim-suffix>", "<fim-middle>"), "gpt2", "", "santacoder"),
        (
            Markers("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
            "llama",
            "",
            "deepseek-coder",
        ),
        (Markers("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"), "llama", "", "codellama"),
        (Markers("[PREFIX]", "[SUFFIX]", "[MIDDLE]"), "llama", "Codestral-22B", "codestral"),
        (Markers("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"), "llama", "", "seed-coder"),
        (Markers("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"), "chatglm", "", "codegeex4"),
        (Markers("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"), "glm4moe", "", "glm-4.5"),
        (Markers("<|prefix|>", "<|suffix|>", "<|middle|>"), "falcon-h1", "", "falcon-h1"),
        # The vocabulary decides: a misleading name changes nothing.
        (QWEN, "qwen2", "deepseek-coder", "qwen2.5-coder"),
        (STAR, "starcoder2", "qwen2.5-coder", "starcoder2"),
        # Not all that is needed.
        (Markers(), "qwen2", "qwen2.5-coder", None),
        (Markers(prefix="<|fim_prefix|>", suffix="<|fim_suffix|>"), "qwen2", "qwen2.5-coder", None),
        (Markers(prefix="<|fim_prefix|>"), "", "", None),
    ],
)
def test_by_vocabulary(markers: Markers, architecture: str, name: str, expected: str | None) -> None:
    found = prompt.by_vocabulary(markers, architecture=architecture, name=name)
    assert (found.name if found else None) == expected


def test_markers_that_nobody_knows_are_used_in_the_usual_order() -> None:
    markers = Markers("<@pre>", "<@suf>", "<@mid>", separator="<@file>")
    family = prompt.by_vocabulary(markers, architecture="llama", name="")
    window = Window(prefix="a", suffix="b", language="c", path="x.c")
    assert prompt.render(window, (), family, max_tokens=1).segments == (
        Control("<@pre>"),
        Plain("a"),
        Control("<@suf>"),
        Plain("b"),
        Control("<@mid>"),
    )
    assert family is not None
    assert set(family.stop) == {"<@pre>", "<@suf>", "<@mid>", "<@file>"}


def test_markers_are_looked_up_in_a_vocabulary() -> None:
    vocabulary = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "def"}
    assert prompt.markers_in(vocabulary.__contains__) == QWEN
    assert prompt.markers_in({"def", "<fim_prefix>"}.__contains__) == Markers()


@pytest.mark.parametrize("known", prompt.FAMILIES, ids=lambda known: known.name)
def test_every_family_is_found_by_its_own_vocabulary(known: prompt.Family) -> None:
    vocabulary = {text for text in (known.markers.prefix, known.markers.suffix, known.markers.middle) if text}
    found = prompt.markers_in(vocabulary.__contains__)
    assert (found.prefix, found.suffix, found.middle) == (known.markers.prefix, known.markers.suffix, known.markers.middle)


def test_auto_keeps_what_was_detected() -> None:
    detected = prompt.by_name("starcoder2")
    assert prompt.by_setting("auto", detected) is detected
    assert prompt.by_setting("auto", None) is None


def test_a_named_family_wins_over_what_was_detected() -> None:
    found = prompt.by_setting("CodeGemma", prompt.by_name("starcoder2"))
    assert found is not None
    assert found.name == "codegemma"


def test_the_spelling_of_the_vocabulary_is_kept_when_the_user_names_the_same_family() -> None:
    detected = prompt.by_vocabulary(Markers("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"), architecture="llama", name="")
    assert prompt.by_setting("codellama", detected) is detected
    named = prompt.by_setting("codellama", None)
    assert named is not None
    assert named.markers.prefix == "<PRE>"


def test_an_unknown_family_is_refused_with_near_names() -> None:
    with pytest.raises(ConfigError, match=r"no model family 'star-coder2'.*starcoder2"):
        prompt.by_setting("star-coder2", None)


def test_a_format_of_the_users_own() -> None:
    template = Template(prefix="<X> ", suffix=" <Y>", middle=" <Z>", stop=("END",))
    family = prompt.by_setting(template, prompt.by_name("starcoder2"))
    window = Window(prefix="a", suffix="b", language="python", path="a.py")
    rendered = prompt.render(window, (), family, max_tokens=1)
    assert prompt.as_text(rendered).text == "<X> a <Y>b <Z>"
    assert rendered.segments == (Control("<X>"), Plain(" a "), Control("<Y>"), Plain("b "), Control("<Z>"))
    assert rendered.stop == ("END", "<X>", "<Y>", "<Z>")


def test_a_format_of_the_users_own_in_spm_order_without_a_middle() -> None:
    family = prompt.by_setting(Template(prefix="[P]", suffix="[S]", middle="", order="spm"), None)
    window = Window(prefix="a", suffix="b", language="python", path="a.py")
    assert prompt.as_text(prompt.render(window, (), family, max_tokens=1)).text == "[S]b[P]a"
