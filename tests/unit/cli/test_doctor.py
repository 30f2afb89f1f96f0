"""`monkeycode doctor`."""

from __future__ import annotations

import asyncio
import io
import json
import sys

import pytest
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.cli import checks, context_checks, doctor, indexes
from monkeycode_lsp.cli.endpoint_report import EndpointReport
from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.cli.runtimes import Runtime
from monkeycode_lsp.cli.tuning import in_words
from monkeycode_lsp.engines.local import abilities
from monkeycode_lsp.engines.local.measure import Speed
from monkeycode_lsp.models import catalogue
from monkeycode_lsp.models.hardware import Compiler, Gpu, Hardware
from monkeycode_lsp.syntax import grammars
from tests import servers
from tests.unit.engines.remote import model_server
from tests.unit.index.workspaces import indexed
from tests.unit.models import samples


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    """A machine without any runtime: nothing is loaded by these tests."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("PATH", "")


def findings(done):
    return {finding["subject"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_a_bare_machine_is_told_what_it_needs(run):
    done = run("doctor", "--json")
    assert done.exit_code == 1
    found = findings(done)
    assert found["model"]["state"] == "broken"
    assert "monkeycode model pull" in found["model"]["remedy"]
    assert found["local engine"]["state"] == "broken"
    assert "prebuilt" in found["local engine"]["remedy"]
    assert found["settings"]["state"] == "ok"
    assert found["folder for cache"]["state"] == "ok"


def test_the_table_marks_what_is_broken_and_gives_the_editors_lines(run):
    done = run("doctor")
    assert done.exit_code == 1
    assert "BROKEN" in done.stdout
    assert "→" in done.stdout
    assert "vim.lsp.enable('monkeycode')" in done.stdout
    assert "\x1b" not in done.stdout


async def test_with_an_endpoint_that_answers_nothing_local_is_needed(run, user_settings):
    async with model_server.server() as server:
        user_settings(f'[[remote.endpoints]]\nurl = "{server.url}"\nmodel = "qwen2.5-coder"\napi = "openai"\n')
        done = await asyncio.to_thread(run, "doctor", "--json")
    assert done.exit_code == 0, done.stdout
    found = findings(done)
    assert found[f"endpoint qwen2.5-coder at {server.url}"]["state"] == "ok"
    assert found["model"]["state"] == "note"


def test_settings_that_cannot_be_used_are_broken(run, user_settings):
    user_settings('engine = "scripted"\nnonsense = 1\n')
    done = run("doctor", "--json")
    assert done.exit_code == 1
    assert "nonsense" in findings(done)["settings"]["found"]
    assert findings(done)["engine"]["state"] == "warning"


def test_a_folder_that_cannot_be_written_is_broken(run, home):
    home.mkdir()
    (home / "cache").write_text("in the way", encoding="utf-8")
    done = run("doctor", "--json")
    assert findings(done)["folder for cache"]["state"] == "broken"
    assert "MONKEYCODE_HOME" in findings(done)["folder for cache"]["remedy"]


def test_a_switched_off_engine_is_broken(run, user_settings):
    user_settings('engine = "off"\n')
    assert findings(run("doctor", "--json"))["engine"]["state"] == "broken"


def test_the_workspace_file_counts_and_its_problems_are_told(run, tmp_path, monkeypatch):
    (tmp_path / ".monkeycode.toml").write_text("nonsense = 1\n", encoding="utf-8")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    found = findings(run("doctor", "--json"))
    assert "nonsense" in found["settings"]["found"]


def test_the_verdict_is_the_last_line(run):
    assert run("doctor").stdout.splitlines()[-1].startswith("Something that is needed does not work")


def test_the_engine_is_named(run, tmp_path, monkeypatch):
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert findings(run("doctor", "--json"))["engine"]["found"] == "local, by llama-server (prebuilt engine)"


def test_on_a_narrow_terminal_nothing_is_broken_inside_words():
    words = "the engine says something that is longer than one line of a narrow terminal and goes on"
    out = Console(file=io.StringIO(), width=40)
    doctor._tell_narrowly([Finding("subject", State.OK, "short"), Finding("subject", State.BROKEN, words, "Mend it.")], out)
    lines = out.file.getvalue().splitlines()
    assert lines[:2] == ["ok subject: short", "BROKEN subject:"]
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines[2:]).split()) == f"{words} → Mend it."


SYSTEM = "CPU : AVX2 = 1 | AVX512 = 1"


@pytest.fixture
def native():
    """The full engine, as `runtimes.look` tells of it."""
    built_for = abilities.read(SYSTEM)
    return Runtime("native", "full engine", installed=True, state="works", works=True, hardware=built_for.words(), abilities=built_for)


def machine(*gpus, features=("avx2", "avx512")):
    return Hardware("linux", "x86_64", cores=4, features=frozenset(features), gpus=gpus, compiler=Compiler("gcc", (14,), "c++"))


async def tuning(hardware, runtime, **local):
    found = await checks.check_tuning(config.Config(local=config.Local(**local)), hardware, runtime, measure=False)
    return {finding.subject: finding for finding in found}


async def test_a_build_without_the_gpu_is_a_warning_with_the_command(native):
    found = await tuning(machine(Gpu("cuda", "Card")), native)
    assert found["GPU"].state is State.WARNING
    assert "monkeycode engine install --rebuild" in found["GPU"].remedy
    assert "not nvcc" in found["best build"].found


async def test_of_the_best_build_nothing_is_said_where_it_is_here(native):
    found = await tuning(machine(), native)
    assert found == {}


async def test_the_prebuilt_engine_says_what_it_lacks():
    prebuilt = Runtime("managed", "prebuilt", installed=True, state="works", abilities=abilities.read("CPU : AVX2 = 1"))
    found = await tuning(machine(), prebuilt)
    assert "drafts" in found["prebuilt engine"].found
    assert "AVX512 unused" in found["prebuilt engine"].found


async def test_beside_the_prebuilt_engine_the_full_one_is_proposed_once():
    prebuilt = Runtime("managed", "prebuilt", installed=True, state="works", abilities=abilities.read("CPU : AVX2 = 1"))
    tips = await checks.check_tuning(config.Config(), machine(Gpu("cuda", "Card")), prebuilt, measure=False)
    assert not any("engine install" in tip.remedy for tip in tips)  # the row of the engine that is missing says it
    assert any("not nvcc" in tip.found for tip in tips)


async def test_settings_that_do_not_suit_the_machine_are_told(native):
    assert (await tuning(machine(), native, threads=64))["threads"].state is State.WARNING


async def test_an_engine_that_cannot_be_measured_says_why(native, tmp_path):
    (tmp_path / "model.gguf").write_bytes(samples.gguf())
    settings = config.Config(local=config.Local(model=str(tmp_path / "model.gguf")))
    speed = next(found for found in await checks.check_tuning(settings, machine(), native, measure=True) if found.subject == "speed")
    assert speed.state is State.WARNING
    assert speed.found.startswith("could not be measured: No engine")


def test_quick_tests_and_measures_nothing(run, tmp_path, monkeypatch, home):
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\ntouch started\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (home / "models").mkdir(parents=True)
    (home / "models" / catalogue.default().file).write_bytes(samples.gguf())
    found = findings(run("doctor", "--quick", "--json"))
    assert "not tested" in found["llama-server (prebuilt engine)"]["found"]
    assert "speed" not in found
    assert not (tmp_path / "started").exists()


def test_quick_does_not_say_that_what_it_did_not_test_works(run, tmp_path, monkeypatch, home):
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (home / "models").mkdir(parents=True)
    (home / "models" / catalogue.default().file).write_bytes(samples.gguf())
    done = run("doctor", "--quick")
    assert done.exit_code == 0, done.stdout
    last = done.stdout.splitlines()[-1]
    assert "was not tested" in last
    assert "works" not in last


def test_no_two_rows_have_the_same_name_and_no_line_is_padded(run, user_settings):
    user_settings("nonsense = 1\nrubbish = 2\n")
    told = json.loads(run("doctor", "--json").stdout)["findings"]
    names = [finding["subject"] for finding in told]
    assert len(names) == len(set(names))
    lines = run("doctor").stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert any("rubbish" in line for line in lines)


def test_a_speed_is_told_in_words():
    assert in_words(Speed(256, 320.4, 60.2)) == "reads 320 tokens a second, and generates 60 (a new prompt of 256 tokens)"
    assert in_words(Speed(256, 320.4)) == "reads 320 tokens a second (a new prompt of 256 tokens)"


def test_where_suggestions_are_kept_is_told(run, home):
    found = findings(run("doctor", "--quick", "--json"))
    assert found["suggestions on disk"]["state"] == "ok"
    assert found["suggestions on disk"]["found"] == f"nothing; in {home / 'cache' / 'suggestions'}"
    assert "team's cache" not in found


def test_a_cache_that_is_out_of_order_is_a_warning_with_its_remedy(run, user_settings, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    port = servers.unused_port()
    user_settings(f"[cache]\ndirectory = '{tmp_path / 'file'}'\nsharedUrl = 'redis://:open-sesame@127.0.0.1:{port}/0'\n")
    done = run("doctor", "--quick", "--json")
    on_disk, team = (findings(done)[name] for name in ("suggestions on disk", "team's cache"))
    assert on_disk["state"] == team["state"] == "warning"
    assert "cannot be used" in on_disk["found"]
    assert "cache.directory" in on_disk["remedy"]
    assert team["found"] == f"127.0.0.1:{port} cannot be reached."
    assert "cache.sharedUrl" in team["remedy"]
    assert "open-sesame" not in done.output


def test_caches_that_are_off_are_no_warning(run, user_settings):
    user_settings("[cache]\ndiskTtlSeconds = 0\nsharedTtlSeconds = 0\nsharedUrl = 'redis://127.0.0.1:9'\n")
    found = findings(run("doctor", "--quick", "--json"))
    assert found["suggestions on disk"] == {"subject": "suggestions on disk", "state": "note", "found": "off: `cache.diskTtlSeconds` is 0"}
    assert found["team's cache"]["state"] == "note"


# What makes suggestions good, and what no model sees


def test_languages_without_a_grammar_are_told_with_what_installs_them(monkeypatch):
    assert context_checks.check_grammars().state is State.OK
    monkeypatch.setattr(grammars, "grammar", lambda language: object() if language in {"python", "go"} else None)
    found = context_checks.check_grammars()
    assert found.state is State.NOTE
    assert found.found.startswith("for go, python; none for c, cpp, ")
    assert "monkeycode-lsp[languages]" in found.remedy


async def test_the_index_of_the_workspace_is_told(run, tmp_path):
    top = tmp_path / "w"
    top.mkdir()
    (top / "go.mod").touch()
    assert context_checks.check_index(config.Context(), top).found == f"none of {top} yet: it is made when an editor opens that folder"
    database = await indexed(top, indexes.folder(), {"src/a.py": "def f():\n    pass\n", "b.py": "def g():\n    pass\n"})
    found = context_checks.check_index(config.Context(), top / "src")
    assert found.state is State.OK
    assert found.found.startswith(f"of {top}: 2 files, 2 definitions, ")
    assert found.found.endswith(str(database))
    assert context_checks.check_index(config.Context(index=False), top).found == "off: `context.index` is false"
    database.write_bytes(b"no database, and longer than the header of one" * 10)
    assert context_checks.check_index(config.Context(), top).state is State.WARNING


def test_ignore_files_are_told_and_one_that_is_not_understood_is_broken(run, tmp_path, monkeypatch):
    (tmp_path / "w" / "src").mkdir(parents=True)
    (tmp_path / "w" / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "w" / "src")
    assert findings(run("doctor", "--quick", "--json"))["ignore files"]["state"] == "note"
    (tmp_path / "w" / ".gitignore").write_text("build/\n", encoding="utf-8")
    (tmp_path / "w" / ".monkeycodeignore").write_text("secrets/\n*.sql\n", encoding="utf-8")
    found = findings(run("doctor", "--quick", "--json"))["ignore files"]
    assert found["state"] == "ok"
    assert f"{tmp_path / 'w' / '.gitignore'}: 1 pattern (not quoted" in found["found"]
    assert f"{tmp_path / 'w' / '.monkeycodeignore'}: 2 patterns (no model" in found["found"]
    (tmp_path / "w" / ".monkeycodeignore").write_text("[nobody]\nsecrets/\n", encoding="utf-8")
    found = findings(run("doctor", "--quick", "--json"))["ignore files"]
    assert found["state"] == "broken"
    assert "line 1" in found["found"]
    assert "nothing below its folder is served" in found["remedy"]


def test_whether_the_engine_says_how_sure_it_is():
    def silence(kind, runtime="", *apis, mode="auto"):
        settings = config.Config(completion=config.Completion(silence=mode))
        endpoints = [EndpointReport("one", answers=True, api=api) for api in apis]
        found = context_checks.check_silence(kind, settings, runtime, endpoints)
        return [(one.state, one.found.partition(":")[0]) for one in found]

    assert silence("local", "native") == [(State.OK, "the compiled engine")]
    assert silence("local", "managed") == [(State.NOTE, "the prebuilt engine")]
    assert silence("local", "native", mode="off") == [(State.NOTE, "off")]
    assert silence("remote", "native", "sglang", "vllm") == [(State.OK, "sglang and vllm (from 0.14 on)")]
    assert silence("remote", "", "vllm", "ollama", "ollama") == [(State.NOTE, "ollama")]
    assert silence("remote") == silence("local") == silence("scripted", "native") == []
