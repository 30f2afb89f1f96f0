"""An endpoint looked at from all sides, against servers that behave as if a model were behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.examination import examining, holes
from monkeycode_lsp.engines.remote.examination.examining import Examination
from monkeycode_lsp.engines.remote.stream.reading import Limits
from tests.certificates import Authority
from tests.fakes import chat, deepseek, llama_server, mistral, ollama, openai, sglang, tensorrt_llm, vllm
from tests.servers import CompletionServer, hold, status
from tests.unit.engines.remote import model_server

QWEN = prompt.by_name(model_server.QWEN)


FAKES = [
    (chat, {}, "chat", "four", False),
    (deepseek, {"model": "deepseek-chat", "api": "deepseek"}, "deepseek", "many", False),
    (llama_server, {}, "llama-server", "many", True),
    (mistral, {"model": "codestral-latest", "api": "mistral"}, "mistral", "many", False),
    (ollama, {}, "ollama", None, True),
    (openai, {}, "openai", "four", True),
    (sglang, {}, "sglang", "many", True),
    (tensorrt_llm, {}, "tensorrt-llm", "many", True),
    (vllm, {}, "vllm", "four", True),
]
"""Stand-ins of real servers that say the same to everything: what is set, and what is found out."""


@asynccontextmanager
async def endpoint(url: str, **settings: Any) -> AsyncIterator[Endpoint]:
    made = Endpoint(
        config.Endpoint(url=url, **{"api": "openai", **settings}),
        limits=Limits(first_s=10, stall_s=10),
        notify=lambda _: None,
        environ={},
        proved=proofs.unproved,
    )
    try:
        yield made
    finally:
        await made.aclose()


async def examined(
    server: CompletionServer, *, template: str | config.Template = "auto", within_s: float = 30, **settings: Any
) -> Examination:
    async with server, endpoint(server.url, **settings) as asked:
        return await examining.examine(asked, template=template, within_s=within_s)


@pytest.mark.parametrize(("fake", "settings", "api", "stops", "takes_markers"), FAKES, ids=[case[2] for case in FAKES])
async def test_every_kind_of_server_is_examined(
    fake: Any, settings: dict[str, str], api: str, stops: str | None, takes_markers: Any
) -> None:
    server = fake.server()
    found = await examined(server, **{"api": "auto"} | settings)
    assert found.error is None
    assert (found.api, found.stops, found.takes_markers) == (api, stops, takes_markers)
    assert not found.filling.fills
    assert [attempt.form for attempt in found.filling.attempts] == (["psm", "spm", "plain"] if found.family else ["plain"])
    assert found.pace is not None
    assert found.line.keeps
    assert len(server.requests) <= 14


async def test_a_model_that_fills_in_by_the_table_is_asked_in_no_other_order() -> None:
    server = model_server.server()
    found = await examined(server)
    assert (found.api, found.model, found.family, found.family_from, found.context_tokens) == (
        "openai",
        model_server.QWEN,
        QWEN,
        "name",
        8192,
    )
    assert [(attempt.form, attempt.score) for attempt in found.filling.attempts] == [("psm", 1.0)]
    assert found.filling.fills
    assert found.asked_as == QWEN
    assert (found.proof.family, found.proof.order) == (QWEN.name, "psm")
    assert found.error is None
    assert not found.is_late
    assert len(server.requests) <= 7


async def test_a_model_that_fills_in_the_other_way_round_is_found_out() -> None:
    server = model_server.server(model_server.fills_spm)
    found = await examined(server)
    assert found.filling.order == found.proof.order == "spm"
    assert found.filling.score == 1.0
    assert found.asked_as.order == "spm"
    assert server.requests[-1].json["prompt"].startswith("<|fim_suffix|>")  # speed is measured as prompts will be
    assert len(server.requests) <= 12


@pytest.mark.parametrize(
    ("mind", "comes_back", "is_silent"),
    [(model_server.echoes, True, False), (model_server.says(""), False, True), (model_server.says("print(1)"), False, False)],
)
async def test_markers_that_come_back_or_give_nothing_are_given_no_more(mind: model_server.Mind, comes_back: Any, is_silent: Any) -> None:
    found = await examined(model_server.server(mind))
    assert not found.filling.fills
    assert found.filling.order is None
    assert found.asked_as is None
    assert found.proof.order is None
    for attempt in found.filling.attempts[:2]:
        assert (attempt.shows_markers, attempt.is_silent) == (comes_back, is_silent)


@pytest.mark.parametrize(("knows", "fills"), [(3, True), (2, False)])
async def test_markers_after_the_answer_are_forgiven_only_where_all_answers_are_right(knows: int, fills: Any) -> None:
    known = [hole.expected for hole in holes.HOLES[:knows]]

    def mind(asked: Mapping[str, Any]) -> list[str]:
        said = model_server.fills_psm(asked)
        return [*said, "<|fim_suffix|>"] if said[0] in known else ["print(1)"]

    found = await examined(model_server.server(mind))
    assert found.filling.attempts[0].shows_markers
    assert found.filling.fills == fills
    assert found.filling.order == ("psm" if fills else None)


async def test_a_model_without_a_family_is_tried_with_both_halves() -> None:
    server = model_server.server(model_server.inserts)
    found = await examined(server, model="who-knows")
    assert found.family is None
    assert not found.family_from
    assert [attempt.form for attempt in found.filling.attempts] == ["plain"]
    assert found.filling.fills
    assert found.proof is None
    assert "suffix" in server.requests[-1].json


async def test_a_server_that_ignores_what_follows_does_not_fill_in() -> None:
    found = await examined(model_server.server(model_server.says("print(1)")), model="who-knows")
    assert not found.filling.fills


async def test_markers_that_are_no_use_are_left_out_where_the_server_inserts_by_itself() -> None:
    found = await examined(model_server.server(model_server.inserts))
    assert (found.filling.order, found.filling.fills) == (None, True)
    assert found.proof.order is None


async def test_the_users_own_template_is_what_is_tried_and_nothing_is_proved_against_it() -> None:
    template = config.Template("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", order="spm")
    found = await examined(model_server.server(model_server.fills_spm), template=template)
    assert (found.family.name, found.family_from) == ("custom", "setting")
    assert found.filling.fills
    assert found.proof is None
    found = await examined(model_server.server(model_server.fills_psm), template=template)
    assert not found.filling.fills
    assert found.asked_as.name == "custom"
    assert found.proof is None


async def test_a_template_that_does_not_fit_is_not_excused_by_a_server_that_could_insert_by_itself() -> None:
    template = config.Template("<a>", "<b>", "<c>")
    found = await examined(model_server.server(model_server.inserts), template=template)
    assert found.filling.attempts[-1].fills
    assert not found.filling.fills
    assert found.asked_as.name == "custom"


async def test_a_template_is_no_matter_where_no_markers_are_taken() -> None:
    template = config.Template("<a>", "<b>", "<c>")
    found = await examined(model_server.chat(), api="auto", model=model_server.QWEN, template=template)
    assert found.filling.fills
    assert found.asked_as is None
    assert found.proof is None


async def test_naming_the_family_that_is_found_anyway_leaves_its_order_open() -> None:
    found = await examined(model_server.server(model_server.fills_spm), template=model_server.QWEN)
    assert (found.family_from, found.proof.order) == ("name", "spm")


async def test_a_family_that_does_not_exist_is_said() -> None:
    found = await examined(model_server.server(), template="qwen9")
    assert "qwen9" in found.error.message
    assert "Near names" in found.error.remedy
    assert found.filling is None


async def test_a_stream_that_is_held_back_is_seen() -> None:
    words = [" word"] * 300  # so many that a busy machine does not take them for a stream
    found = await examined(model_server.server(model_server.says(*words), first_s=1.0, in_one_write=True))
    assert found.pace.delivery == "held back"
    assert found.pace.tokens_per_second is None


async def test_a_stream_that_is_not_held_back_is_not_suspected() -> None:
    found = await examined(model_server.server())
    assert found.pace.delivery == "stream"
    assert found.pace.first_ms > 0


async def test_an_answer_in_one_piece_is_seen() -> None:
    found = await examined(model_server.server(lambda asked: ["".join(model_server.fills_psm(asked))]))
    assert found.pace.delivery == "one piece"


@pytest.mark.parametrize("ahead_s", [3600, -3600])
async def test_a_clock_that_is_an_hour_off_is_seen(ahead_s: float) -> None:
    found = await examined(model_server.server(clock_s=ahead_s))
    assert found.line.clock_s == pytest.approx(ahead_s, abs=30)


async def test_of_a_server_that_tells_no_time_nothing_is_said() -> None:
    assert (await examined(model_server.server(clock_s=None))).line.clock_s is None


@pytest.mark.parametrize(("most", "limit"), [(100, "many"), (4, "four"), (0, "none")])
async def test_stop_strings_are_counted(most: int, limit: str) -> None:
    assert (await examined(model_server.server(most_stops=most))).stops == limit


async def test_a_connection_that_is_kept_is_told_from_one_that_is_not() -> None:
    assert (await examined(model_server.server())).line.keeps is True

    found = await examined(model_server.server(keeps=False))
    assert found.line.keeps is False
    assert found.filling.fills


async def test_a_certificate_tells_how_long_it_is_good(tmp_path: Any) -> None:
    authority = Authority.make(tmp_path)
    if authority is None:
        pytest.skip("no openssl to make certificates with")
    server = CompletionServer(model_server.script(model_server.fills_psm), tls=authority.server)
    found = await examined(server, model=model_server.QWEN, ca_file=str(authority.ca_file))
    assert 1 < found.line.certificate_days < 3
    assert found.line.keeps
    assert (await examined(model_server.server())).line.certificate_days is None


async def test_a_refused_key_ends_it_with_the_setting() -> None:
    server = CompletionServer(status(401, {"error": "no"}))
    found = await examined(server, model=model_server.QWEN)
    assert "wants a key" in found.error.message
    assert "apiKey" in found.error.remedy
    assert not found.completes
    assert found.line is not None
    assert found.filling is None


async def test_a_server_that_never_answers_costs_the_time_that_it_is_given_and_no_more() -> None:
    found = await examined(CompletionServer(hold), model=model_server.QWEN, within_s=0.3)
    assert found.is_late
    assert found.filling is None


async def test_a_server_that_turns_out_to_chat_only_is_tried_without_markers() -> None:
    found = await examined(model_server.chat(), api="auto", model=model_server.QWEN)
    assert found.api == "chat"
    assert [attempt.form for attempt in found.filling.attempts] == ["plain"]
    assert found.filling.fills
    assert found.proof is None


async def test_stop_strings_are_counted_although_another_field_is_refused() -> None:
    server = model_server.server(refuses="stream_options", most_stops=4)
    assert (await examined(server)).stops == "four"


async def test_an_overflow_of_a_small_window_leaves_the_proof() -> None:
    found = await examined(model_server.server(longest=500))
    assert found.filling.fills
    assert found.pace is None
    assert "too long" in found.error.message
    assert found.completes


async def test_a_known_window_is_not_overflowed() -> None:
    server = model_server.server(window=512)
    found = await examined(server)
    assert found.pace is not None
    assert max(len(request.json["prompt"]) for request in server.requests) < 512 * 3
