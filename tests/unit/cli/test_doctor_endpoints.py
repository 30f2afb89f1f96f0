"""`monkeycode doctor` about endpoints: what it says to people, and to programs."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.cli import endpoint_report, endpoint_words
from monkeycode_lsp.cli.finding import State
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.examination.examining import Examination, Line
from monkeycode_lsp.engines.remote.examination.filling import Attempt, Filling
from monkeycode_lsp.engines.remote.examination.pace import Pace
from monkeycode_lsp.errors import EngineUnavailableError
from tests.certificates import Authority
from tests.servers import CompletionServer, hold, status, unused_port
from tests.unit.engines.remote import model_server
from tests.unit.engines.remote.model_server import QWEN

FAMILY = prompt.by_name(QWEN)
FILLS = Filling("psm", fills=True, attempts=(Attempt("psm", 1.0),))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Made before the path is emptied."""
    made = Authority.make(tmp_path_factory.mktemp("authority"))
    if made is None:
        pytest.skip("no openssl to make certificates with")
    return made


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    """A machine without any runtime: nothing is loaded by these tests."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def doctor(run, user_settings):
    """Runs it with these endpoints; gives its findings by subject, its list of endpoints, and its exit code."""

    async def doctor(*endpoints, options=(), head=""):
        tables = [
            "[[remote.endpoints]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in endpoint.items())
            for endpoint in endpoints
        ]
        user_settings(head + "".join(tables))
        done = await asyncio.to_thread(run, "doctor", "--json", *options)
        told = json.loads(done.stdout)
        return {finding["subject"]: finding for finding in told["findings"]}, told["endpoints"], done.exit_code

    return doctor


async def test_an_endpoint_that_works_is_told_with_its_proof_and_its_speed(doctor):
    async with model_server.server() as server:
        found, (endpoint,), code = await doctor({"url": server.url, "api": "openai"})
    subject = f"endpoint {server.url}"
    assert code == 0
    assert found["engine"]["found"] == f"remote, by {server.url}"
    assert found[subject]["state"] == "ok"
    assert f"fills in the middle with the markers of {QWEN} (known by its name) in the order psm" in found[subject]["found"]
    assert "window of 8192 tokens" in found[subject]["found"]
    assert found[f"{subject}: speed"]["state"] == "ok"
    assert [name for name in found if name.startswith(subject)] == [subject, f"{subject}: speed"]
    assert endpoint["answers"]
    assert endpoint["fills_in"]
    expected = {
        "role": "only",
        "api": "openai",
        "model": QWEN,
        "family": QWEN,
        "order": "psm",
        "stop_strings": "many",
        "delivery": "stream",
    }
    assert {key: endpoint[key] for key in expected} == expected
    assert endpoint["likeness"] == {"psm": 1.0}
    assert endpoint["first_ms"] >= 0
    assert endpoint["warm_first_ms"] >= 0
    assert abs(endpoint["clock_ahead_s"]) < 30
    assert endpoint["certificate_days"] is None


async def test_a_better_order_is_told_and_remembered(doctor, home):
    async with model_server.server(model_server.fills_spm) as server:
        found, (endpoint,), _ = await doctor({"url": server.url, "api": "openai"})
        assert "in the order spm instead of psm" in found[f"endpoint {server.url}"]["found"]
        assert endpoint["order"] == "spm"
        assert proofs.apply(FAMILY, server.url, QWEN).order == "spm"
        again, (endpoint,), _ = await doctor({"url": server.url, "api": "openai"})
        assert again[f"endpoint {server.url}"] == found[f"endpoint {server.url}"]  # it is proved anew, not believed


async def test_a_model_that_cannot_fill_in_is_told_with_the_setting(doctor):
    async with model_server.server(model_server.echoes) as server:
        found, (endpoint,), code = await doctor({"url": server.url, "api": "openai"})
        told = found[f"endpoint {server.url}"]
        assert code == 0  # suggestions come, only not as good
        assert told["state"] == "warning"
        assert "cannot fill in the middle (markers come back as text)" in told["found"]
        assert "`template`" in told["remedy"]
        assert endpoint["fills_in"] is False
        assert proofs.apply(FAMILY, server.url, QWEN) is None


async def test_a_template_that_does_not_fit_is_told(doctor):
    async with model_server.server(model_server.fills_psm) as server:
        head = 'template = {prefix = "<|fim_prefix|>", suffix = "<|fim_suffix|>", middle = "<|fim_middle|>", order = "spm"}\n'
        found, (endpoint,), _ = await doctor({"url": server.url, "api": "openai"}, head=head)
        told = found[f"endpoint {server.url}"]
        assert told["state"] == "warning"
        assert "`template`" in told["found"]
        assert endpoint["family_from"] == "setting"
        assert proofs.apply(FAMILY, server.url, QWEN) is FAMILY


async def test_quick_asks_who_is_there_and_no_model(doctor, home):
    async with model_server.server() as server:
        found, (endpoint,), code = await doctor({"url": server.url, "api": "openai"}, options=["--quick"])
        assert not server.requests
    assert code == 0
    assert found[f"endpoint {server.url}"]["found"] == f"{QWEN} answers; prompts of the family {QWEN}"
    assert (endpoint["model"], endpoint["family"], endpoint["fills_in"], endpoint["role"]) == (QWEN, QWEN, None, "only")
    assert not (home / "state" / "endpoint-proofs.json").exists()


async def test_quick_does_not_say_that_the_endpoint_works(run, user_settings):
    async with model_server.server() as server:
        user_settings(f'[[remote.endpoints]]\nurl = "{server.url}"\napi = "openai"\n')
        done = await asyncio.to_thread(run, "doctor", "--quick")
    assert "was not tested" in done.stdout.splitlines()[-1]


async def test_those_that_share_the_work_and_those_that_stand_in_are_told(doctor):
    async with model_server.server() as one, model_server.server() as two, model_server.server() as other:
        settings = [{"url": one.url, "api": "openai"}, {"url": other.url, "api": "openai", "model": "deepseek-coder"}]
        found, endpoints, code = await doctor(*settings, {"url": two.url, "api": "openai"}, options=["--quick"])
    assert code == 0
    assert found["engine"]["found"] == "remote, by 3 endpoints"
    assert [endpoint["role"] for endpoint in endpoints] == ["shares", "stands in", "shares"]
    assert "shares the work" in found[f"endpoint {one.url}"]["found"]
    assert "stands in" in found[f"endpoint deepseek-coder at {other.url}"]["found"]


async def test_one_that_is_gone_is_a_warning_while_another_answers_and_broken_alone(doctor):
    gone = {"url": f"http://127.0.0.1:{unused_port()}", "api": "openai"}
    async with model_server.server() as server:
        found, endpoints, code = await doctor(gone, {"url": server.url, "api": "openai"}, options=["--quick"])
    assert code == 0
    assert found[f"endpoint {gone['url']}"]["state"] == "warning"
    assert [endpoint["role"] for endpoint in endpoints] == ["", "first"]
    assert endpoints[0]["failure"]
    found, (endpoint,), code = await doctor(gone)
    assert code == 1
    assert found[f"endpoint {gone['url']}"]["state"] == "broken"
    assert "remote.endpoints" in found[f"endpoint {gone['url']}"]["remedy"]
    assert not endpoint["answers"]


@pytest.mark.parametrize("options", [[], ["--quick"]])
async def test_one_that_is_only_busy_now_is_not_broken_though_it_is_alone(doctor, options):
    busy = status(503, {"error": {"message": "Loading model", "code": 503}})
    async with CompletionServer(busy, routes=dict.fromkeys(("/v1/models", "/health"), busy)) as server:
        found, (endpoint,), code = await doctor({"url": server.url, "api": "openai"}, options=options)
    assert found[f"endpoint {server.url}"]["state"] == "warning"
    assert code == 0
    assert (endpoint["role"], endpoint["answers"]) == ("", False)
    assert endpoint["failure"]


async def test_a_refused_key_is_broken_and_is_never_repeated(doctor):
    async with CompletionServer(status(401, {"error": "sk-very-secret is not known"})) as server:
        found, (endpoint,), code = await doctor({"url": server.url, "api": "openai", "model": QWEN, "apiKey": "sk-very-secret"})
    told = found[f"endpoint {QWEN} at {server.url}"]
    assert code == 1
    assert told["state"] == "broken"
    assert "refused the key" in told["found"]
    assert "apiKey" in told["remedy"]
    assert endpoint["role"] == ""
    assert "very-secret" not in json.dumps([found, endpoint])


async def test_a_certificate_of_an_unknown_authority_is_broken_and_of_a_named_one_is_counted(doctor, authority):
    async with CompletionServer(model_server.script(model_server.fills_psm), tls=authority.server) as server:
        endpoint = {"url": server.url, "api": "openai", "model": QWEN}
        found, _, code = await doctor(endpoint)
        assert code == 1
        assert "caFile" in found[f"endpoint {QWEN} at {server.url}"]["remedy"]
        found, (report,), code = await doctor(endpoint | {"caFile": str(authority.ca_file)})
    assert code == 0
    assert "certificate ends in 2 days" in found[f"endpoint {QWEN} at {server.url}: certificate"]["found"]
    assert 1 < report["certificate_days"] < 3


async def test_a_password_in_the_address_is_never_told(doctor, home):
    async with model_server.server() as server:
        url = server.url.replace("//", "//user:open-sesame@")
        found, endpoints, code = await doctor({"url": url, "api": "openai"})
    assert code == 0
    assert "sesame" not in json.dumps([found, endpoints])
    assert b"sesame" not in (home / "state" / "endpoint-proofs.json").read_bytes()


async def test_one_that_says_nothing_costs_its_time_limit_only(doctor):
    async with CompletionServer(hold) as server:
        found, _, code = await doctor({"url": server.url, "api": "openai", "model": QWEN}, head="remote.timeoutMs = 200\n")
    assert code == 1
    told = found[f"endpoint {QWEN} at {server.url}"]
    assert "did not begin to answer" in told["found"]
    assert "timeoutMs" in told["remedy"]


async def test_an_address_that_is_none_is_told_with_the_setting(doctor):
    found, _, code = await doctor({"url": "ftp://nowhere"})
    assert code == 1
    assert "not an http or https address" in found["endpoint ftp://nowhere"]["found"]


async def test_a_local_engine_needs_no_endpoint_and_pays_none(doctor):
    async with model_server.server() as server:
        found, (endpoint,), _ = await doctor({"url": server.url, "api": "openai"}, head='engine = "local"\n', options=["--quick"])
        assert not server.requests
    assert found[f"endpoint {server.url}"]["state"] == "ok"
    assert endpoint["fills_in"] is None


async def test_a_remote_engine_without_an_endpoint_is_broken(doctor):
    found, endpoints, code = await doctor(head='engine = "remote"\n')
    assert code == 1
    assert found["endpoint"]["state"] == "broken"
    assert endpoints == []


async def test_a_key_that_is_named_and_not_there_is_told(doctor):
    async with model_server.server() as server:
        endpoint = {"url": server.url, "api": "openai", "apiKeyEnv": "MONKEYCODE_TEST_NO_KEY"}
        found, _, _ = await doctor(endpoint, options=["--quick"])
    assert "MONKEYCODE_TEST_NO_KEY" in found[f"endpoint {server.url}: settings"]["found"]


# What an examination means


def told(**found):
    found = {"family": FAMILY, "family_from": "name", "filling": FILLS, "pace": pace(), "line": LINE} | found
    examined = Examination("vllm", QWEN, 8192, **found)
    return {finding.subject: finding for finding in endpoint_words.findings("e", examined, role="", deadline_ms=3000)}


LINE = Line(keeps=True, clock_s=3.0, certificate_days=80.0)


def pace(**figures):
    return Pace(
        **{
            "first_ms": 400.0,
            "warm_first_ms": 60.0,
            "prompt_tokens": 1000,
            "tokens_per_second": 80.0,
            "reused_tokens": 960,
            "reuses": True,
            "delivery": "stream",
        }
        | figures
    )


def test_what_is_well_is_told_in_two_rows():
    found = told()
    assert list(found) == ["e", "e: speed"]
    assert found["e: speed"].found == (
        "first text after 400 ms for a new prompt, after 60 ms for one letter more; 80 tokens a second; "
        "960 of 1000 tokens of the prompt were not read again"
    )


@pytest.mark.parametrize(
    ("found", "row", "state", "words", "remedy"),
    [
        ({"pace": pace(delivery="held back")}, "stream", State.WARNING, "holds back the stream", "proxy_buffering off"),
        ({"pace": pace(delivery="one piece")}, "stream", State.WARNING, "in one piece", "proxy_buffering off"),
        ({"pace": pace(reuses=False)}, "prefix cache", State.WARNING, "anew", "--enable-prefix-caching"),
        ({"pace": pace(warm_first_ms=3500.0)}, "speed", State.WARNING, "later than", "completion.deadlineMs"),
        ({"pace": None, "is_late": True}, "speed", State.WARNING, "too long", "smaller model"),
        (
            {"pace": None, "error": EngineUnavailableError("It is gone.", remedy="Start it.")},
            "speed",
            State.WARNING,
            "could not be measured: It is gone.",
            "Start it.",
        ),
        ({"stops": "none"}, "stop strings", State.NOTE, "applied on this side", ""),
        ({"line": Line(keeps=False, clock_s=None, certificate_days=None)}, "connection", State.NOTE, "new connection", "keep-alive"),
        ({"line": Line(keeps=True, clock_s=3600.0, certificate_days=None)}, "clock", State.NOTE, "1.0 hours ahead of", "Set the one"),
        ({"line": Line(keeps=True, clock_s=-120.0, certificate_days=None)}, "clock", State.NOTE, "2 minutes behind", "Set the one"),
        ({"line": Line(keeps=True, clock_s=0.0, certificate_days=3.0)}, "certificate", State.WARNING, "ends in 3 days", "Renew"),
    ],
)
def test_each_fault_has_a_row_with_what_mends_it(found, row, state, words, remedy):
    finding = told(**found)[f"e: {row}"]
    assert finding.state is state
    assert words in finding.found
    assert remedy in finding.remedy


def test_a_model_that_fills_in_poorly_keeps_its_markers_and_is_told():
    poor = Filling("psm", fills=False, attempts=(Attempt("psm", 0.5), Attempt("spm", 0.3), Attempt("plain", 0.1)))
    found = told(filling=poor)["e"]
    assert found.state is State.WARNING
    assert "poorly" in found.found
    assert "50%" in found.found


@pytest.mark.parametrize("takes_markers", [True, False])
def test_the_template_is_proposed_only_where_markers_are_taken(takes_markers):
    nothing = Filling(None, fills=False, attempts=(Attempt("plain", 0.1),))
    finding = told(filling=nothing, takes_markers=takes_markers)["e"]
    assert "cannot fill in" in finding.found
    assert ("`template`" in finding.remedy) == takes_markers


def test_a_server_that_only_chats_is_told():
    examined = Examination("chat", "gpt", None, filling=Filling(None, fills=True, attempts=(Attempt("plain", 1.0),)))
    finding = next(endpoint_words.findings("e", examined, role="", deadline_ms=3000))
    assert finding.state is State.WARNING
    assert "only chats" in finding.found


def test_four_stop_strings_are_told_beside_the_rest():
    assert "takes four stop strings" in told(stops="four")["e"].found


def test_each_figure_of_its_speed_has_its_own_name():
    pace = Pace(321.04, 45.67, 900, 61.25, 850, reuses=True, delivery="stream")
    report = endpoint_report.of(Examination("openai", QWEN, None, pace=pace), endpoint="e", role="only")
    assert (report.first_ms, report.warm_first_ms) == (321.0, 45.7)
    assert (report.prompt_tokens, report.reused_tokens, report.reuses_prefix) == (900, 850, True)
    assert report.tokens_per_second == pytest.approx(61.25, abs=0.1)


def test_what_was_not_found_out_is_null():
    report = endpoint_report.of(Examination("openai", QWEN, None), endpoint="e", role="only")
    assert (report.fills_in, report.first_ms, report.keeps_connection, report.order, report.likeness) == (None, None, None, "", {})


@pytest.mark.parametrize(
    "routes",
    [
        {"/v1/models": b'{"data":%s}'},
        {"/v1/models": b"{}", "/props": b'{"default_generation_settings":{"a":%s}}'},
        {
            "/v1/models": b"{}",
            "/api/version": b'{"version":"1"}',
            "/api/show": b'{"model_info":{"a":%s}}',
            "/api/ps": b'{"models":[{"name":"a"}]}',
        },
        {"/v1/models": b'{"data":[{"id":"a","owned_by":"llamacpp"}]}', "/props": b'{"total_slots":-5}'},
        {"/v1/models": b'{"data":[{"id":"a","owned_by":"llamacpp"}]}', "/props": b'{"total_slots":1000000000000000000}'},
    ],
)
async def test_a_server_that_says_senseless_things_is_examined_all_the_same(doctor, routes):
    deep = b"[" * 100_000 + b"]" * 100_000
    pages = {path: status(200, page.replace(b"%s", deep)) for path, page in routes.items()}
    async with CompletionServer(routes=pages) as server:
        found, (endpoint,), code = await doctor({"url": server.url})
    assert code in (0, 1)
    assert found[f"endpoint {server.url}"]["found"]
    assert endpoint["endpoint"] == server.url
