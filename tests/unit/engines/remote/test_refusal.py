from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest

from monkeycode_lsp.engines.remote import refusal
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineFaultError,
    EngineRefusedError,
    EngineUnavailableError,
)

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
        (402, EngineRefusedError, "pay"),
        (407, EngineRefusedError, "proxy"),
        (408, EngineBusyError, "wait"),
        (413, ContextOverflowError, "too long"),
        (422, EngineRefusedError, "refused the request"),
        (500, EngineFaultError, "fault of its own"),
        (502, EngineUnavailableError, "no answer from the server behind it"),
        (504, EngineUnavailableError, "no answer from the server behind it"),
        (520, EngineFaultError, "fault of its own"),
        (400, EngineRefusedError, "refused the request"),
        (307, EngineRefusedError, "another address"),
    ],
)
def test_every_status_has_its_error_and_its_words(status: int, kind: type[EngineError], words: str) -> None:
    error = by_status(status, {"error": "sk-SECRET def f(): pass"})
    assert type(error) is kind
    assert words in str(error)
    assert "SECRET" not in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"message": "The model `m` does not exist."}),
        (404, {"error": {"message": "The model `m2.5` does not exist or you do not have access to it.", "code": "model_not_found"}}),
        (404, {"error": 'model "m:7b" not found, try pulling it first'}),
        (400, {"object": "error", "message": "Invalid model: m", "type": "invalid_model", "code": "1500"}),
        (400, {"error": {"message": "Model Not Exist"}}),
        (422, {"detail": "Unknown model m"}),
    ],
)
def test_a_wrong_model_name_is_told_from_a_wrong_route(status: int, body: object) -> None:
    assert "no model 'm'" in str(by_status(status, body))
    assert refusal.about_model(status, json.dumps(body).encode())


@pytest.mark.parametrize(
    "message",
    [
        "Not Found",
        "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
        "no Route matched with those values",
    ],
)
def test_a_route_that_is_not_there_is_not_taken_for_a_model(message: str) -> None:
    error = by_status(404, {"message": message})
    assert "/v1/completions" in str(error)
    assert not refusal.about_model(404, message.encode())


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "you must provide a model parameter"}},
        {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required", "input": {"prompt": "x"}}]},
    ],
)
def test_a_server_that_wants_a_model_to_be_named_says_so(body: object) -> None:
    error = refusal.by_status(refusal.Where("http://h"), 400, json.dumps(body).encode(), path="/v1/completions")
    assert "wants the name of a model" in str(error)


PAGE = b"<html><body>no</body></html>"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, PAGE, "web page"),
        (400, PAGE, "proxy"),
        (400, b"<html>The plain HTTP request was sent to HTTPS port</html>", "https only"),
        (400, b"Client sent an HTTP request to an HTTPS server.", "https only"),
        (502, PAGE, "server behind it"),
        (404, PAGE, "/v1/completions"),
        (429, b'{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}', "pay"),
        (429, b'{"error":{"message":"Rate limit reached for tokens per min"}}', "wait"),
    ],
)
def test_proxies_and_empty_accounts_are_told_apart_from_servers(status: int, body: bytes, words: str) -> None:
    assert words in str(refusal.by_status(WHERE, status, body, path="/v1/completions"))


def test_without_a_key_the_message_asks_for_one() -> None:
    assert "wants a key" in str(refusal.by_status(refusal.Where("http://h"), 401, b"", path="/"))


def rest(retry_after: str) -> float | None:
    error = by_status(429, retry_after=retry_after)
    assert isinstance(error, EngineBusyError)
    return error.retry_after_s


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("99999999", 3600),
        ("", None),
        ("soon", None),
        ("nan", None),
    ],
)
def test_retry_after_is_read(told: str, seconds: float | None) -> None:
    assert rest(told) == seconds


def test_a_date_in_retry_after_is_held_against_the_clock() -> None:
    seconds = rest(formatdate(time.time() + 60, usegmt=True))
    assert seconds is not None
    assert 20 < seconds <= 60


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
        (
            {
                "message": "This model's maximum context length is 4096 tokens. However, you requested 96 output tokens and your prompt contains at "
                "least 5000 input tokens, for a total of at least 5096 tokens."
            },
            4096,
        ),
        (
            {"message": "Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of 3000"},
            2048,
        ),
        ({"message": "Input length (3000 tokens) exceeds the maximum allowed length (2043 tokens). Use a shorter input."}, 2043),
        ({"message": "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)"}, 69632),
        ({"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", "code": "3051"}, 32768),
        ({"message": "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2000 `inputs` tokens and 96 `max_new_tokens`"}, 2048),
        ({"message": "prompt token count of 200000 exceeds the limit of 128000"}, 128000),
        ({"message": "Please reduce the length of the messages or completion."}, None),
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
    assert isinstance(of({"code": "429", "message": "Rate limit: requested tokens exceed"}), EngineBusyError)
    assert isinstance(of({"code": 500, "message": "EngineCore encountered an issue"}), EngineFaultError)
    assert "no model 'm'" in str(of({"code": 404, "message": "The model `m` does not exist."}))
    assert "pay" in str(of({"code": 402}))
    assert type(of("busy")) is EngineRefusedError
    assert type(of({"code": "invalid_request_error"})) is EngineRefusedError


@pytest.mark.parametrize(
    ("status", "body", "about"),
    [
        (400, b'{"message":"suffix is not currently supported"}', True),
        (422, b'{"detail":[{"loc":["body","Suffix"]}]}', True),
        (400, b"{}", False),
        (500, b"suffix", False),
        (400, b"Value error, suffix is not supported", True),
        (422, b"Suffix is not supported and can be achieved by preprocessing the prompt.", True),
        (501, b'{"error":"the insert field suffix is not implemented"}', True),
        (400, b'{"detail":"bad request","input":{"prompt":"def strip_suffix(suffix):"}}', False),
    ],
)
def test_a_refused_suffix_is_told_from_other_refusals(status: int, body: bytes, about: bool) -> None:  # noqa: FBT001 - a column of the table
    assert refusal.about_suffix(status, body) is about


FIELDS = ("stream_options", "top_p", "stop", "seed", "priority", "min_p", "max_tokens", "temperature", "suffix")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ('{"error":{"message":"Unrecognized request argument supplied: min_p"}}', {"min_p"}),
        ('{"error":{"message":"no","param":"stream_options"}}', {"stream_options"}),
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", {"max_tokens"}),
        ("Unsupported value: 'temperature' does not support 0 with this model.", {"temperature"}),
        ('{"detail":[{"type":"extra_forbidden","loc":["body","min_p"],"msg":"Extra inputs are not permitted"}]}', {"min_p"}),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'priority'), 'msg': 'Extra inputs are not permitted'}]", {"priority"}),
        ("Got priority 1 but Priority scheduling is not enabled.", {"priority"}),
        ("Using priority is disabled for this server. Please send a new request without a priority.", {"priority"}),
        ("property 'min_p' is unsupported", {"min_p"}),
        ("Additional properties are not allowed ('min_p' was unexpected)", {"min_p"}),
        ("The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.", {"min_p"}),
        ('json: unknown field "seed"', {"seed"}),
        ("unknown field `stream_options`, expected one of `model`, `stop`, `top_p`", {"stream_options"}),
        ("Extra inputs are not permitted, field: 'seed'", {"seed"}),
        ("This model does not support the 'suffix' parameter.", {"suffix"}),
        ("Please stop sending invalid requests", set()),
        ("Invalid request: your priority is our priority; stop", set()),
        ("max_tokens is too large: 5000", set()),
        ("the request's priority and its region are not allowed to differ", set()),
        ('{"detail":[{"type":"missing","loc":["body","model"],"input":{"stop":["a"],"prompt":"stop = 1","seed":null}}]}', set()),
        ("This model's maximum context length is 2048 tokens; reduce max_tokens or stop", set()),
    ],
)
def test_only_fields_that_a_refusal_is_about_are_taken_for_refused(body: str, fields: set[str]) -> None:
    assert refusal.refused_fields(400, body.encode(), FIELDS) == fields
    assert not refusal.refused_fields(429, body.encode(), FIELDS)


ECHOED = (
    "# stop is not supported here\n",
    "raise ValueError('Unknown parameter: stream_options')\n",
    "if err == 'suffix is not currently supported': pass\n",
    "# maximum context length is 1280 tokens\n",
    "raise HTTPException(404, 'model not found')\n",
    "class billing: pass\n",
    "def f():\n\tprint('the seed parameter is not allowed')\n",
)
SENT = "".join(ECHOED)


def repeating(code: str) -> list[bytes]:
    """How servers repeat what they were sent."""
    asked = {"prompt": code, "stop": ["\n\n"], "stream": True}
    odd = {"type": "value_error", "loc": ["body", "n"], "msg": "temporary trouble", "input": asked}
    return [
        json.dumps({"detail": [odd]}).encode(),
        json.dumps({"detail": [odd | {"input": code}], "body": asked}).encode(),
        json.dumps({"error": {"message": f"bad request: {[odd]!r}", "code": 400}}).encode(),
        json.dumps({"object": "error", "message": repr({"n": 1, "prompt": code}), "request": asked}).encode(),
        f"Bad request\n\n{json.dumps(asked)}\n".encode(),
        f"<html><pre>{code}</pre></html>".encode(),
        json.dumps(f"could not read: {code}").encode(),
    ]


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500])
@pytest.mark.parametrize("code", ECHOED)
def test_what_we_sent_is_not_taken_for_what_the_server_says(code: str, status: int) -> None:
    for where in (WHERE, refusal.Where("http://h")):
        plain = refusal.by_status(where, status, b"temporary trouble", path="/v1/completions")
        for body in repeating(code):
            told = refusal.by_status(where, status, body, path="/v1/completions", sent=(code, "\n    return 1\n"))
            assert (type(told), told.message.replace(" with a web page", "")) == (type(plain), plain.message), body
    for body in repeating(code):
        assert not refusal.refused_fields(status, body, FIELDS, sent=(code,)), body
        assert not refusal.about_suffix(status, body, sent=(code,)), body
        assert not refusal.about_model(status, body, sent=(code,)), body
        assert type(refusal.by_error_object(WHERE, body, sent=(code,))) is EngineRefusedError


def test_what_the_server_says_beside_what_we_sent_is_read() -> None:
    error = {"type": "extra_forbidden", "loc": ["body", "min_p"], "msg": "Extra inputs are not permitted", "input": {"prompt": SENT}}
    assert refusal.refused_fields(422, json.dumps({"detail": [error]}).encode(), FIELDS, sent=(SENT,)) == {"min_p"}
    body = f"prompt {SENT!r} is refused: 'seed' is not supported; {SENT!r}; this model's maximum context length is 2048 tokens".encode()
    assert refusal.refused_fields(400, body, FIELDS, sent=(SENT,)) == {"seed"}
    told = refusal.by_status(WHERE, 400, body, path="/", sent=(SENT,))
    assert isinstance(told, ContextOverflowError)
    assert told.limit_tokens == 2048


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_in_trouble_teaches_nothing_that_lasts(status: int) -> None:
    assert not refusal.refused_fields(status, b"'seed' is not supported", FIELDS)
    overflow = {"message": "This model's maximum context length is 2048 tokens", "code": status}
    told = [by_status(500, overflow), refusal.by_error_object(WHERE, json.dumps(overflow).encode())]
    assert not any(isinstance(error, ContextOverflowError) and error.limit_tokens for error in told)


@pytest.mark.parametrize("limit", ["0", "5", "64", "255", "10000001", "9" * 5000])
def test_a_window_that_no_model_has_is_not_learned(limit: str) -> None:
    error = by_status(400, {"message": f"This model's maximum context length is {limit} tokens."})
    assert isinstance(error, ContextOverflowError)
    assert error.limit_tokens is None


@pytest.mark.parametrize("told", ["Fri, 31 Dec 99999999999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -0000", "9" * 9000, "1e999", "\0"])
def test_a_time_that_no_clock_knows_is_no_time(told: str) -> None:
    assert rest(told) in (None, 3600.0)


LONG = 1_000_000
SHAPES = (
    "stop, ",
    "stop and ",
    "seed and seed ",
    "model" + '"' * 20_000,
    "model",
    "model ",
    "model.",
    "seed" + " " * 20_000,
    "prompt ",
    "unknown field ",
    "unknown" + " " * 20_000,
    "unknown " + "a" * 20_000,
    "extra inputs " + "body " * 4000,
    "invalid parameter" + "(" * 20_000,
    "invalid value ",
    'loc:["',
    "1",
    "1,",
    "max_" + "a" * 20_000,
    "max_",
    "missing ",
    "not support ",
    "limit ",
    "insufficient ",
    "\\",
    "\\n",
    "a ",
    '{"message":',
    "[",
    "\u00e9",
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["{}", '{{"error":{{"message":"{}"}}}}', '{{"detail":[{}'])
def test_no_refusal_is_long_or_strange_enough_to_hold_us_up(form: str, shape: str) -> None:
    body = form.format((shape * (LONG // len(shape) + 1))[:LONG]).encode()
    sent = ("a b c d\n" * 2000, "stop, stop, stop\n" * 500)
    began = time.monotonic()
    for where in (WHERE, refusal.Where("http://h")):
        refusal.by_status(where, 400, body, path="/", sent=sent)
        refusal.by_status(where, 429, body, path="/", sent=sent)
        refusal.by_error_object(where, body, sent=sent)
    refusal.refused_fields(400, body, FIELDS, sent=sent)
    refusal.about_model(404, body, sent=sent)
    assert time.monotonic() - began < 2


def test_both_ends_of_a_long_refusal_are_read() -> None:
    filling = "x" * LONG
    for body in (f"'seed' is not supported {filling}", f"{filling} 'seed' is not supported"):
        assert refusal.refused_fields(400, body.encode(), FIELDS) == {"seed"}
        assert refusal.refused_fields(400, json.dumps({"error": body}).encode(), FIELDS) == {"seed"}
