"""The setting `api`, and what the dialects promise about themselves."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.domain import Priority, Sampling
from monkeycode_lsp.engines.remote import dialects
from monkeycode_lsp.engines.remote.dialects.base import Call

APIS = [word for word in get_args(get_type_hints(config.Endpoint)["api"]) if word != "auto"]
FULL = Call(
    "a",
    suffix="b",
    stop=("1", "2", "3", "4", "5"),
    max_tokens=7,
    sampling=Sampling(temperature=0.5, top_p=0.9, min_p=0.1, repeat_penalty=1.1, seed=3),
    model="m",
    priority=Priority.LOOK_AHEAD,
    session="s",
)


@pytest.mark.parametrize("api", APIS)
def test_every_word_of_the_setting_has_its_dialect(api: str) -> None:
    assert dialects.by_name(api).name == api


@pytest.mark.parametrize("api", APIS)
def test_what_was_refused_is_not_sent_again(api: str) -> None:
    dialect = dialects.by_name(api)
    for field in dialect.optional:
        assert f'"{field}":' not in dialect.body(FULL, frozenset({field})).decode()


@pytest.mark.parametrize("api", ["openai", "vllm", "sglang", "tensorrt-llm", "mistral", "deepseek", "chat"])
def test_everything_optional_is_sent_somewhere(api: str) -> None:
    dialect = dialects.by_name(api)
    urgent = Call("a", sampling=FULL.sampling, stop=FULL.stop)
    sent = dialect.body(FULL).decode() + dialect.body(urgent).decode()
    assert [field for field in sorted(dialect.optional) if f'"{field}":' not in sent] == []
