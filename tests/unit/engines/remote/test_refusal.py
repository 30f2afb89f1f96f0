from __future__ import annotations

import json

import pytest

from monkeycode_lsp.engines.remote import refusal
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineRefusedError, EngineUnavailableError

WHERE = refusal.Where("http://h", "m", has_key=True)


def by_status(status: int, body: object = None, retry_after: str = "") -> EngineError:
    return refusal.by_status(WHERE, status, json.dumps(body).encode(), path="/v1/completions", retry_after=retry_after)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, EngineRefusedError, "refused the key"),
        (403, EngineRefusedError, "apiKey"),
        (404, EngineRefusedError, "/v1/completions"),
        (429, EngineBusyError, "wait"),
        (503, EngineBusyError, "loading"),
        (500, EngineUnavailableError, "fault of its own"),
        (502, EngineUnavailableError, "fault of its own"),
        (400, EngineRefusedError, "refused the request"),
        (307, EngineRefusedError, "another address"),
    ],
)
def test_every_status_has_its_error_and_its_words(status: int, kind: type[EngineError], words: str) -> None:
    error = by_status(status, {"error": "sk-SECRET def f(): pass"})
    assert type(error) is kind
    assert words in str(error)
    assert "SECRET" not in str(error)


def test_a_wrong_model_name_is_told_from_a_wrong_route() -> None:
    assert "no model 'm'" in str(by_status(404, {"message": "The model `m` does not exist."}))


def test_without_a_key_the_message_asks_for_one() -> None:
    assert "wants a key" in str(refusal.by_status(refusal.Where("http://h"), 401, b"", path="/"))


def test_retry_after_is_read() -> None:
    error = by_status(429, retry_after="7")
    assert isinstance(error, EngineBusyError)
    assert error.retry_after_s == 7
    odd = by_status(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")
    assert isinstance(odd, EngineBusyError)
    assert odd.retry_after_s is None


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({"message": "This model's maximum context length is 2048 tokens. However, you requested 6100 tokens (6004 in the prompt)."}, 2048),
        ({"message": "The decoder prompt (length 5000) is longer than the maximum model length of 2,048."}, 2048),
        ({"error": {"type": "exceed_context_size_error", "message": "too large", "n_prompt_tokens": 5000, "n_ctx": 2048}}, 2048),
        ({"message": "The input (3000 tokens) is longer than the model's context length (2048 tokens)."}, 2048),
        ({"error": {"code": "context_length_exceeded", "message": "Requested tokens (3000) exceed context window of 2048"}}, 2048),
        ({"message": "Prompt length (3000) exceeds max_seq_len 2048"}, 2048),
        ({"message": "The prompt is too long."}, None),
    ],
)
def test_an_overflow_is_recognised_and_its_limit_read(body: object, limit: int | None) -> None:
    error = by_status(400, body)
    assert isinstance(error, ContextOverflowError)
    assert error.limit_tokens == limit


def test_an_error_object_is_classified_like_a_status() -> None:
    def of(value: object) -> EngineError:
        return refusal.by_error_object(WHERE, json.dumps(value).encode())

    assert isinstance(of({"message": "maximum context length is 2048 tokens", "code": 400}), ContextOverflowError)
    assert isinstance(of({"code": 503}), EngineBusyError)
    assert "key" in str(of({"code": 401}))
    assert type(of("busy")) is EngineRefusedError


@pytest.mark.parametrize(
    ("status", "body", "about"),
    [
        (400, b'{"message":"suffix is not currently supported"}', True),
        (422, b'{"detail":[{"loc":["body","Suffix"]}]}', True),
        (400, b"{}", False),
        (500, b"suffix", False),
    ],
)
def test_a_refused_suffix_is_told_from_other_refusals(status: int, body: bytes, about: bool) -> None:  # noqa: FBT001 - a column of the table
    assert refusal.about_suffix(status, body) is about
