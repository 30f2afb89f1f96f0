"""Segments, and user text that looks like control tokens."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Control, Plain, Priority, Prompt, Sampling, Snippet, Window

QWEN = prompt.by_name("qwen2.5-coder")


def window(prefix: str, suffix: str = "") -> Window:
    return Window(prefix=prefix, suffix=suffix, language="python", path="a.py")


def test_control_tokens_and_text_are_kept_apart() -> None:
    rendered = prompt.render(window("a<|fim_suffix|>b", "c"), (), QWEN, max_tokens=7)
    assert rendered.segments == (
        Control("<|fim_prefix|>"),
        Plain("a<|fim_suffix|>b"),
        Control("<|fim_suffix|>"),
        Plain("c"),
        Control("<|fim_middle|>"),
    )
    assert rendered.fim
    assert rendered.stop == QWEN.stop


def test_no_text_is_split_in_two_and_none_is_empty() -> None:
    snippets = (Snippet("b.py", "x"), Snippet("c.py", "y"))
    for family in prompt.FAMILIES:
        segments = prompt.render(window("a"), snippets, family, max_tokens=7).segments
        assert all(segment.text for segment in segments)
        pairs = itertools.pairwise(segments)
        assert not [pair for pair in pairs if isinstance(pair[0], Plain) and isinstance(pair[1], Plain)]


def test_a_model_that_cannot_fill_in_sees_the_prefix_only() -> None:
    rendered = prompt.render(window("a = ", "\nrest"), (Snippet("b.py", "x"),), None, max_tokens=7)
    assert rendered.segments == (Plain("a = "),)
    assert not rendered.fim
    assert rendered.stop == ()
    assert (rendered.prefix, rendered.suffix) == ("a = ", "\nrest")


def test_what_the_engine_is_told_besides_is_passed_on() -> None:
    rendered = prompt.render(
        window("a"), (), QWEN, max_tokens=5, sampling=Sampling(temperature=0.5), session="doc", draft="b", priority=Priority.WARM_UP
    )
    assert (rendered.max_tokens, rendered.sampling.temperature, rendered.session) == (5, 0.5, "doc")
    assert (rendered.draft, rendered.priority) == ("b", Priority.WARM_UP)


MARKERS = [
    "<|fim_prefix|>",
    "<|endoftext|>",
    "<|im_start|>",
    "<|tool_call>",
    "<\uff5cfim\u2581hole\uff5c>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<\uff5cUser\uff5c>",
    "<fim_middle>",
    "<fim-middle>",
    "<file_sep>",
    "<repo_name>",
    "<reponame>",
    "<filename>",
    "<PRE>",
    "\u2581<PRE>",
    "<EOT>",
    "[SUFFIX]",
    "[PREFIX]",
    "[INST]",
    "[/INST]",
    "<[fim-suffix]>",
    "<[end\u2581of\u2581sentence]>",
    "<end_of_turn>",
    "<eos>",
    "<s>",
    "</s>",
    "<think>",
    "<tool_call>",
    "[gMASK]",
]


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_in_the_users_text_is_neutralised_and_restored(marker: str) -> None:
    wire = prompt.as_text(prompt.render(window(f'x = "{marker}"\n', f"# {marker}{marker}"), (), QWEN, max_tokens=7))
    body = wire.text.removeprefix("<|fim_prefix|>").removesuffix("<|fim_middle|>")
    prefix, _, suffix = body.partition("<|fim_suffix|>")
    assert marker not in prefix + suffix
    assert wire.inserted
    assert wire.restore(prefix) == f'x = "{marker}"\n'
    assert wire.restore(suffix) == f"# {marker}{marker}"


def test_every_known_marker_and_stop_token_is_neutralised() -> None:
    for family in prompt.FAMILIES:
        texts = [family.markers.prefix, family.markers.suffix, family.markers.middle, family.markers.pad]
        texts += [family.markers.repository, family.markers.separator, *(stop for stop in family.stop if stop[0] in "<[")]
        for text in filter(None, texts):
            wire = prompt.as_text(Prompt(segments=(Plain(text),), prefix=text, suffix=""))
            assert text.strip("\u2581") not in wire.text


def test_ordinary_code_is_not_touched() -> None:
    code = "if (a < b || c > d) { x[i] = [PREFIXES][0]; }\nf <| g |> h\n<div><pre>hi</pre></div>\nvector<int> v; a<b>c\n<$> <|> <*>"
    wire = prompt.as_text(prompt.render(window(code), (), QWEN, max_tokens=7))
    assert wire.text == f"<|fim_prefix|>{code}<|fim_suffix|><|fim_middle|>"
    assert wire.inserted == ""
    assert wire.restore("a\u2060b") == "a\u2060b"


def test_the_character_put_in_is_one_that_the_text_does_not_hold() -> None:
    wire = prompt.as_text(prompt.render(window("\u2060\u200b <|im_end|>"), (), QWEN, max_tokens=7))
    assert wire.inserted not in {"", "\u2060", "\u200b"}
    assert wire.restore(wire.text) == "<|fim_prefix|>\u2060\u200b <|im_end|><|fim_suffix|><|fim_middle|>"


def test_an_answer_is_restored_piece_by_piece() -> None:
    wire = prompt.as_text(prompt.render(window("<|im_end|>"), (), QWEN, max_tokens=7))
    assert "".join(wire.restore(char) for char in f"<{wire.inserted}|im_end|>") == "<|im_end|>"


def test_the_control_tokens_of_a_users_own_format_are_neutralised_too() -> None:
    segments = (Control("@@PRE"), Plain("a @@PRE b"), Control("@@SUF"))
    wire = prompt.as_text(Prompt(segments=segments, prefix="", suffix=""))
    assert wire.text.count("@@PRE") == 1
    assert wire.restore(wire.text) == "@@PREa @@PRE b@@SUF"


def test_text_with_every_invisible_character_still_gives_a_prompt() -> None:
    every = "".join(map(chr, [*range(0x200B, 0x2065), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
    wire = prompt.as_text(prompt.render(window(every + "<|im_end|>"), (), QWEN, max_tokens=7))
    assert "<|im_end|>" not in wire.text


@given(st.lists(st.sampled_from([*MARKERS, "<", "|", ">", "[", "x", "\n", " ", "\u2060"]), max_size=12).map("".join))
def test_whatever_the_text_no_marker_of_the_family_survives_in_it(text: str) -> None:
    wire = prompt.as_text(prompt.render(window(text), (), QWEN, max_tokens=7))
    assert wire.text.count("<|fim_prefix|>") == wire.text.count("<|fim_suffix|>") == wire.text.count("<|fim_middle|>") == 1
    assert wire.restore(wire.text) == f"<|fim_prefix|>{text}<|fim_suffix|><|fim_middle|>"
