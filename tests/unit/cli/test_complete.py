"""`monkeycode complete`."""

from __future__ import annotations

import asyncio
import json

import pytest

from monkeycode_lsp.cli import indexes
from tests.fakes import chat
from tests.servers import CompletionServer, reply
from tests.unit.index.workspaces import indexed

CODE = "def add(a, b):\n    return \n"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "app.py"
    file.write_text(CODE, encoding="utf-8")
    return file


def test_the_suggestion_is_printed_and_nothing_else(run, file):
    done = run("complete", f"{file}:2:12", "--engine", "scripted", "--setting", "scripted.text=a + b")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "a + b\n", "")


def test_json_has_the_outcome_and_its_timings(run, file):
    done = run("complete", f"{file}:2:12", "--json", "--engine", "scripted", "--setting", "scripted.text=a + b")
    answer = json.loads(done.stdout)
    assert answer["text"] == "a + b"
    assert answer["outcome"] == "shown"
    assert answer["origin"] == "engine"
    assert answer["totalMs"] >= answer["stagesMs"]["engine"] > 0


def test_nothing_to_suggest_says_why_and_is_exit_code_1(run, file):
    done = run("complete", f"{file}:2:12", "--engine", "scripted", "--setting", "scripted.text=")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "Nothing to suggest: The model had nothing to add here.\n"


def test_a_file_that_holds_secrets_is_not_served(run, tmp_path):
    (tmp_path / ".env").write_text("PASSWORD=\n", encoding="utf-8")
    done = run("complete", f"{tmp_path / '.env'}:1:10", "--engine", "scripted")
    assert done.exit_code == 1
    assert "secrets" in done.stderr


@pytest.mark.parametrize("setting", ["enabled=false", "completion.deadlineMs=1000"])
def test_an_engine_that_is_not_needed_is_not_started(run, tmp_path, setting):
    (tmp_path / ".env").write_text("PASSWORD=\n", encoding="utf-8")
    script = tmp_path / "script.json"
    script.write_text("no script", encoding="utf-8")  # an engine that gets as far as this fails
    where = ("--engine", "scripted", "--setting", f"scripted.script={script}", "--setting", setting)
    done = run("complete", f"{tmp_path / '.env'}:1:10", *where)
    assert done.exit_code == 1
    assert done.stderr.startswith("Nothing to suggest: ")


def test_an_engine_that_cannot_answer_says_why(run, file, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('[{"fault": "unavailable"}]', encoding="utf-8")
    done = run("complete", f"{file}:2:12", "--engine", "scripted", "--setting", f"scripted.script={script}")
    assert done.exit_code == 1
    assert done.stderr == "Error: The scripted engine was told to be unavailable.\n"


def test_a_switched_off_engine_says_so(run, file):
    done = run("complete", f"{file}:2:12", "--engine", "off")
    assert done.exit_code == 1
    assert "switched off" in done.stderr


def test_a_wrong_place_is_a_usage_error(run):
    assert run("complete", "app.py").exit_code == 2


def test_settings_that_cannot_be_used_are_said_and_left_out(run, file, user_settings):
    user_settings('[completion]\nmaxTokens = "many"\n')
    done = run("complete", f"{file}:2:12", "--engine", "scripted", "--setting", "scripted.text=a + b")
    assert done.stdout == "a + b\n"
    assert "Setting completion.maxTokens" in done.stderr


async def test_an_endpoint_is_asked_with_the_key_of_a_variable(run, file, monkeypatch):
    monkeypatch.setenv("A_KEY", "s3cret")
    async with CompletionServer(reply("a + b")) as server:
        where = ("--url", server.url, "--model", "qwen2.5-coder", "--api-key-env", "A_KEY")
        done = await asyncio.to_thread(run, "complete", f"{file}:2:12", *where, "--setting", "remote.retries=0")
        assert (done.exit_code, done.stdout) == (0, "a + b\n"), done.stderr
        asked = server.requests[-1]
    assert asked.headers["authorization"] == "Bearer s3cret"
    assert "def add(a, b):" in asked.json["prompt"]


def test_a_dead_endpoint_is_one_sentence(run, file):
    done = run("complete", f"{file}:2:12", "--url", "http://127.0.0.1:9", "--model", "qwen2.5-coder")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert "127.0.0.1:9" in done.stderr


async def test_nothing_of_earlier_runs_hides_what_the_engine_says(run, file, home):
    async with CompletionServer(reply("a + b")) as server:
        where = ("--url", server.url, "--model", "qwen2.5-coder", "--json", "--setting", "remote.retries=0")
        for _ in range(2):
            done = await asyncio.to_thread(run, "complete", f"{file}:2:12", *where)
            assert json.loads(done.stdout)["origin"] == "engine"
    done = await asyncio.to_thread(run, "complete", f"{file}:2:12", *where)
    assert done.exit_code == 1
    assert "Nothing answers" in done.stderr
    assert not (home / "cache" / "suggestions").exists()


# What is said beside the answer


def at(url, **more):
    """Settings of an endpoint that nobody typed an address for."""
    return ("--setting", f"remote.endpoints={json.dumps([{'url': url, 'model': 'qwen2.5-coder', **more}])}")


async def test_a_variable_that_is_not_set_is_said_once_and_by_the_name_of_the_option(run, file):
    async with CompletionServer(reply("a + b")) as server:
        where = ("--url", server.url, "--model", "qwen2.5-coder", "--api-key-env", "NO_SUCH_KEY")
        done = await asyncio.to_thread(run, "complete", f"{file}:2:12", *where)
    assert (done.exit_code, done.stdout) == (0, "a + b\n")
    assert done.stderr == "The environment variable NO_SUCH_KEY, named by --api-key-env, is not set: no key is sent.\n"


async def test_a_server_that_only_chats_is_said_once_and_not_in_the_json(run, file):
    async with chat.server() as server:
        done = await asyncio.to_thread(run, "complete", f"{file}:2:12", "--json", "--url", server.url, "--model", "gpt-4o-mini")
    assert json.loads(done.stdout)["text"] == "a + b"
    assert done.stderr.count("only chats") == 1


async def test_an_endpoint_that_is_left_out_is_said_beside_the_answer_of_the_other(run, file):
    async with CompletionServer(reply("a + b")) as server:
        endpoints = [{"url": "http://127.0.0.1:port"}, {"url": server.url, "model": "qwen2.5-coder"}]
        done = await asyncio.to_thread(run, "complete", f"{file}:2:12", "--setting", f"remote.endpoints={json.dumps(endpoints)}")
    assert (done.exit_code, done.stdout) == (0, "a + b\n")
    assert done.stderr.count("is left out") == 1


def test_the_remedy_names_the_option_where_the_address_was_typed_and_else_the_setting(run, file):
    done = run("complete", f"{file}:2:12", "--url", "http://127.0.0.1:9", "--model", "qwen2.5-coder")
    assert done.stderr == "Error: Nothing answers at http://127.0.0.1:9.\nStart the server there, or correct --url.\n"
    done = run("complete", f"{file}:2:12", "--engine", "remote", *at("http://127.0.0.1:9"))
    assert done.stderr.endswith("or correct `url` in `remote.endpoints`.\n")


async def test_a_notice_and_a_failure_are_each_said_once(run, file):
    done = await asyncio.to_thread(run, "complete", f"{file}:2:12", "--url", "http://127.0.0.1:9", "--api-key-env", "NO_SUCH_KEY")
    assert done.exit_code == 1
    assert done.stderr.count("NO_SUCH_KEY") == done.stderr.count("127.0.0.1:9") == 1


# What other files say

OTHER = "class Basket:\n    def total_of_all(self):\n        return sum(self.prices)\n"
USER = "from shop.basket import Basket\n\n\ndef pay(basket: Basket):\n    return \n"


async def asked_in(run, folder, *options):
    """What the model saw."""
    async with CompletionServer(reply("basket.total_of_all()")) as server:
        where = ("--url", server.url, "--model", "qwen2.5-coder", "--setting", "remote.retries=0", *options)
        done = await asyncio.to_thread(run, "complete", f"{folder / 'app.py'}:5", *where)
        assert done.exit_code == 0, done.stderr
        return server.requests[-1].json["prompt"]


async def test_definitions_come_from_the_index_that_an_editor_has_made(run, tmp_path):
    top = tmp_path / "w"
    database = await indexed(top, indexes.folder(), {"pyproject.toml": "", "shop/basket.py": OTHER, "app.py": USER})
    held = database.stat()
    assert "total_of_all" in await asked_in(run, top)
    assert "total_of_all" not in await asked_in(run, top, "--setting", "context.index=false")
    assert "total_of_all" not in await asked_in(run, top, "--setting", "context.budgetMs=0")
    assert database.stat().st_mtime_ns == held.st_mtime_ns


async def test_what_no_model_may_see_does_not_come_from_it(run, tmp_path):
    top = tmp_path / "w"
    await indexed(top, indexes.folder(), {"pyproject.toml": "", "shop/basket.py": OTHER, "app.py": USER})
    (top / ".monkeycodeignore").write_text("shop/\n", encoding="utf-8")
    assert "total_of_all" not in await asked_in(run, top)


async def test_without_an_index_none_is_made_and_a_damaged_one_is_none(run, tmp_path):
    top = tmp_path / "w"
    (top / "shop").mkdir(parents=True)
    for file, text in {"pyproject.toml": "", "shop/basket.py": OTHER, "app.py": USER}.items():
        (top / file).write_text(text, encoding="utf-8")
    assert "total_of_all" not in await asked_in(run, top)
    assert not indexes.folder().exists()
    indexes.folder().mkdir(parents=True)
    indexes.database(top).write_bytes(b"no database, and longer than the header of one" * 10)
    assert "total_of_all" not in await asked_in(run, top)
