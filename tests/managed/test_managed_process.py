"""The managed engine's process care: the real host around a stand-in for the llama-server program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp import config, folders
from monkeycode_lsp.domain import Usage
from monkeycode_lsp.engines.local.host import control, registry
from monkeycode_lsp.engines.local.host.link import Link
from monkeycode_lsp.engines.local.managed import engine as managed
from monkeycode_lsp.engines.local.managed import server as managed_server
from monkeycode_lsp.engines.local.managed.engine import ManagedEngine
from monkeycode_lsp.engines.local.managed.health import Trust
from monkeycode_lsp.engines.local.wire import Began, Cancel, Ended
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError
from tests.managed.scene import N_LAYERS, SETTINGS, header

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line for POSIX systems")

QUICK = Trust(silent_s=0.1, health_s=0.5, progress_s=0.5, look_s=0.05)


def host(engine):
    """The process that keeps the server."""
    return engine._tenant.running.link.pid


async def test_a_program_is_waited_for_while_it_loads_and_then_answers(make, notes, say):
    engine = make("noisy")
    model = await engine.ready()
    assert (model.name, model.context_tokens) == ("noisy", 512)
    assert await say(engine) == "ok"
    assert "--ctx-size 1024 --parallel 2 --batch-size 128 --ubatch-size 128" in notes.starts[0]


async def test_the_last_chunk_has_the_servers_figures_and_the_host_adds_them_up(make, prompt):
    engine = make()
    for _ in range(2):
        async with aclosing(engine.stream(prompt())) as stream:
            chunks = [chunk async for chunk in stream]
        assert chunks[-1].usage == Usage(reused=2, read=3, generated=1)
    (seen,) = await control.look()
    totals = seen.status.totals
    assert (totals.asks, totals.cancelled, totals.reused, totals.read, totals.generated) == (2, 0, 4, 6, 2)
    assert totals.busy_s > 0
    assert (seen.note.kind, seen.status.name, seen.status.clients, seen.status.running) == ("managed", "well", 1, 0)
    assert seen.status.address.startswith("http://127.0.0.1:")


async def test_eight_engines_that_start_in_the_same_instant_share_one_server(make, notes, say):
    engines = [make() for _ in range(8)]
    assert await asyncio.gather(*map(say, engines)) == ["ok"] * 8
    assert len(notes.starts) == 1
    assert len({host(engine) for engine in engines}) == 1


async def test_one_who_leaves_while_it_loads_does_not_stop_it(make, notes):
    engine = make()
    waiting = [asyncio.create_task(engine.ready()) for _ in range(4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert {task.result().name for task in waiting[1:]} == {"well"}
    assert len(notes.starts) == 1


async def test_closing_one_engine_leaves_the_server_to_the_others(make, notes, prompt, say):
    first, second = make(), make()
    stream = second.stream(prompt("endless"))
    await anext(stream)
    await first.ready()
    await first.aclose()
    assert (await anext(stream)).text
    await stream.aclose()
    assert await say(second) == "ok"
    with pytest.raises(EngineUnavailableError):
        await first.ready()
    assert len(notes.starts) == 1


async def test_closing_a_stream_ends_its_generation_over_there(make, notes, prompt):
    stream = make().stream(prompt("endless"))
    await anext(stream)
    (seen,) = await control.look()
    assert seen.status.running == 1
    await stream.aclose()
    await notes.until("left")
    (seen,) = await control.look()
    assert (seen.status.running, seen.status.totals.cancelled) == (0, 1)
    assert seen.status.totals.generated > 0


async def test_the_host_leaves_with_its_last_client_and_nothing_is_left_behind(make, notes, gone, empty):
    first, second = make(), make()
    await asyncio.gather(first.ready(), second.ready())
    pid = host(first)
    await first.aclose()
    assert control.is_running(pid)
    await second.aclose()
    await gone(pid)
    await gone(notes.pids[0])
    await empty()


async def test_the_host_lingers_for_whoever_comes_next(make, notes, say, gone):
    lingering = msgspec.structs.replace(SETTINGS, linger_seconds=60)
    first = make(settings=lingering)
    await say(first)
    pid = host(first)
    await first.aclose()
    second = make(settings=lingering)
    assert await say(second) == "ok"
    assert host(second) == pid
    (place, note), *_ = registry.all_notes()
    assert await control.stop(place, note) == "left"
    await gone(pid)
    await gone(notes.pids[0])


async def test_a_host_that_is_stopped_costs_nothing(make, notes, say):
    engine = make(pauses_s=(60.0,))
    await say(engine)
    (place, note), *_ = registry.all_notes()
    assert await control.stop(place, note) == "left"
    assert await say(engine) == "ok"
    assert len(notes.starts) == 2


async def test_a_server_without_work_leaves_and_one_that_works_does_not(make, notes, prompt, say):
    engine = make()
    engine._tenant._recipe = msgspec.structs.replace(engine._tenant._recipe, idle_s=0.3)
    stream = engine.stream(prompt("endless"))
    running = (await anext(stream), engine._tenant.running)[1]
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        await anext(stream)
    assert running.link.is_open
    await stream.aclose()
    async with asyncio.timeout(10):
        await running.link.ended()
    assert running.link.has_left
    assert await say(engine) == "ok"
    assert len(notes.starts) == 2


async def test_other_settings_start_a_second_host_and_retire_the_first(make, notes, say, gone):
    lingering = msgspec.structs.replace(SETTINGS, linger_seconds=60)
    first = make(settings=lingering)
    await say(first)
    old = host(first)
    second = make(settings=msgspec.structs.replace(lingering, context_tokens=1024))
    assert await say(second) == "ok"
    assert host(second) != old
    await second._tenant._retiring
    assert await say(first) == "ok"
    await first.aclose()
    await gone(old)
    assert len(notes.starts) == 2


async def test_settings_that_no_llama_server_knows_share_one(make, notes):
    first, second = make(), make(settings=msgspec.structs.replace(SETTINGS, drafts="off", keep_states=True))
    await asyncio.gather(first.ready(), second.ready())
    assert len(notes.starts) == 1


async def test_a_host_that_is_killed_takes_its_server_with_it_and_costs_one_answer(make, notes, prompt, say, gone):
    engine = make()
    stream = engine.stream(prompt("endless"))
    await anext(stream)
    pid = host(engine)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StreamBrokenError, match="middle of an answer"):
        async for _ in stream:
            pass
    await gone(notes.pids[0], within_s=2)
    assert await say(engine) == "ok"
    assert host(engine) != pid


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process between the two does it")
async def test_a_host_that_is_killed_while_it_loads_takes_its_server_with_it(make, notes, gone):
    engine = make("never loads")
    loading = asyncio.create_task(engine.ready())
    await notes.until("started")
    ((_, note),) = registry.all_notes()
    os.kill(note.pid, signal.SIGKILL)
    await gone(notes.pids[0], within_s=2)
    await engine.aclose()
    await asyncio.wait([loading])


async def test_a_host_dies_as_its_server_dies_and_the_next_ask_gets_another(make, notes, say, gone, caplog):
    engine = make()
    await say(engine)
    pid = host(engine)
    os.kill(notes.pids[0], signal.SIGKILL)
    await gone(pid)
    assert await say(engine) == "ok"
    assert "was stopped by SIGKILL" in caplog.text
    assert len(notes.starts) == 2


async def test_a_death_before_the_first_word_is_made_good_by_the_next_server(make, notes, say):
    assert await say(make("die at first")) == "ok"
    assert len(notes.starts) == 2


async def test_after_deaths_at_work_the_next_start_waits(make, notes, say):
    engine = make("die at work", pauses_s=(0.0, 60.0))
    with pytest.raises(StreamBrokenError, match="middle of an answer"):
        await say(engine)
    for _ in range(5):
        with pytest.raises(EngineBusyError, match="SIGSEGV"):
            await say(engine)
    assert len(notes.starts) == 2


@pytest.fixture(params=["stop at first", "deaf"])
def hangs(request):
    """The second one still says that it is healthy, but nobody decodes."""
    return request.param


async def test_a_server_that_hangs_is_started_anew(make, notes, say, caplog, hangs):
    engine = make(hangs, trust=QUICK)
    await engine.ready()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(say(engine), 0.3)
    await engine._doubting
    assert "does not get on" in caplog.text
    assert await say(engine) == "ok"
    assert not control.is_running(notes.pids[0])
    assert len(notes.starts) == 2


async def test_a_slot_that_does_not_get_on_is_a_hang_too(make, say, caplog):
    engine = make("stuck", trust=QUICK, limits=Limits(first_s=0.3, stall_s=0.3))
    with pytest.raises(StreamBrokenError, match="did not go on"):
        await say(engine)
    await engine._doubting
    assert "does not get on" in caplog.text


async def test_asks_that_are_each_given_up_soon_show_a_hang_together(make, notes, say):
    engine = make("deaf", trust=msgspec.structs.replace(QUICK, silent_s=0.5))
    await engine.ready()
    while engine._doubting is None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(say(engine), 0.1)
    await engine._doubting
    assert await say(engine) == "ok"


async def test_a_server_that_is_only_slow_is_left_alone(make, notes, prompt, say):
    engine = make(trust=msgspec.structs.replace(QUICK, silent_s=0.0))
    stream = engine.stream(prompt("endless"))
    opening = asyncio.create_task(anext(stream))
    await notes.until("asked")
    await opening
    await stream.aclose()
    engine._silent_since = 0.0
    assert await say(engine) == "ok"
    assert len(notes.starts) == 1


async def test_a_stopped_host_is_ended_by_whoever_comes_next(make, notes, say, gone):
    first = make()
    await say(first)
    pid = host(first)
    os.kill(pid, signal.SIGSTOP)
    patience = msgspec.structs.replace(managed.Patience(), welcome_s=0.3, loading_s=0.3)
    assert await say(make(patience=patience)) == "ok"
    await gone(pid)
    await gone(notes.pids[0])
    assert await say(first) == "ok"


async def test_a_crash_at_load_is_cured_by_half_of_the_layers(make, notes, told, say):
    assert await say(make("abort with all layers")) == "ok"
    assert f"--n-gpu-layers {(N_LAYERS + 1) // 2} " in notes.starts[1]
    assert "half of its layers" in told[0]


async def test_a_crash_on_the_gpu_ends_without_it_and_that_is_remembered(make, notes, told, say, empty):
    first = make("abort on the GPU")
    assert await say(first) == "ok"
    assert len(notes.starts) == 3
    assert "--n-gpu-layers 0 " in notes.starts[2]
    assert len(told) == 1
    assert "gpuLayers" in told[0]
    await first.aclose()
    await empty()
    assert await say(make()) == "ok"
    assert len(notes.starts) == 4
    assert len(told) == 1


async def test_a_crash_at_every_load_is_said_and_not_repeated_at_every_ask(make, notes):
    engine = make("always abort", pauses_s=(60.0,))
    for _ in range(10):
        with pytest.raises(EngineUnavailableError, match=r"SIGABRT.*It is out of memory\."):
            await engine.ready()
    assert len(notes.starts) == 4
    assert "--n-gpu-layers 0 --no-repack" in notes.starts[-1]


async def test_a_file_that_cannot_be_loaded_is_named(make, empty):
    with pytest.raises(EngineUnavailableError, match=r"model\.gguf.*local\.model"):
        await make("refuse").ready()
    await empty()


@pytest.mark.skipif(sys.platform == "darwin", reason="there every file name is text")
async def test_the_package_says_that_it_cannot_open_a_file_whose_name_is_no_text(make, tmp_path):
    pytest.importorskip("xllamacpp", reason="needs the prebuilt engine")
    model = tmp_path / os.fsdecode(b"m\xfc.gguf")
    model.write_bytes(header(""))
    with pytest.raises(EngineUnavailableError, match="its name is no text") as caught:
        await make(model=model, server="").ready()
    assert "Rename" in caught.value.remedy


async def test_a_whole_file_for_which_there_is_no_memory_is_not_called_broken(make):
    with pytest.raises(EngineUnavailableError, match=r"not enough memory for .*model\.gguf.*mmap failed") as caught:
        await make("refuse for want of memory").ready()
    assert "smaller model" in caught.value.remedy


async def test_a_program_that_cannot_be_started_is_named_in_words(make, tmp_path):
    with pytest.raises(EngineUnavailableError, match=r"cannot be started: .*nothing"):
        await make(server=str(tmp_path / "nothing")).ready()


async def test_a_missing_file_and_a_folder_are_named_with_the_setting(tmp_path):
    for path, words in ((tmp_path / "no.gguf", "does not exist"), (tmp_path, "folder")):
        engine = ManagedEngine(settings=config.Local(), model=path, notify=print)
        with pytest.raises(EngineUnavailableError, match=rf"{path.name}.*{words}.*local\.model"):
            await engine.ready()
        await engine.aclose()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
async def test_the_key_is_in_no_command_line_file_or_status(make, notes, say, tmp_path):
    engine = make()
    await say(engine)
    key = engine._tenant.running.link.serving.key
    assert len(key) > 30
    assert key not in str(await control.look())
    places = [f"/proc/{host(engine)}/cmdline", f"/proc/{notes.pids[0]}/cmdline", f"/proc/{host(engine)}/environ"]
    assert holders(key, tmp_path / "home", places) == []


def holders(key, folder, more):
    """Where it stands."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.parent == folders.state() for path in files)
    return [path for path in [*files, *map(Path, more)] if key.encode() in path.read_bytes()]


async def test_a_client_that_tells_nonsense_of_its_asks_costs_itself_only(make, say):
    engine = make()
    await say(engine)
    for nonsense in (Ended(1), Cancel(1)):
        link = await Link.open(engine._tenant.running.place.socket)
        link.send(nonsense)
        async with asyncio.timeout(5):
            await link.ended()
        await link.aclose()
    twice = await Link.open(engine._tenant.running.place.socket)
    twice.send(Began(1))
    twice.send(Began(1))
    async with asyncio.timeout(5):
        await twice.ended()
    await twice.aclose()
    assert await say(engine) == "ok"
    (seen,) = await control.look()
    assert seen.status.running == 0


async def test_loopback_works_without_a_unix_socket(make, say, empty):
    engine = make(loopback=True)
    assert await say(engine) == "ok"
    await engine.aclose()
    await empty()


async def test_the_self_test_joins_a_server_that_runs_and_retires_nobody(make, notes, say, tmp_path):
    engine = make()
    await say(engine)
    model = tmp_path / "model.gguf"
    await managed.self_test(settings=SETTINGS, model=model, server=str(tmp_path / "llama-server"))
    assert len(notes.starts) == 1
    other = msgspec.structs.replace(SETTINGS, context_tokens=1024)
    await managed.self_test(settings=other, model=model, server=str(tmp_path / "llama-server"))
    assert len(notes.starts) == 2
    assert await say(engine) == "ok"
    with pytest.raises(EngineError):
        await managed.self_test(settings=SETTINGS, model=tmp_path / "none.gguf", server=str(tmp_path / "llama-server"))


async def test_a_server_is_ended_with_the_pipe_where_the_system_does_not_do_it(tmp_path):
    pipe = asyncio.subprocess.PIPE
    sleeper = "import sys, time; print('up', flush=True); time.sleep(60)"
    code = f"import sys; from {managed_server.__name__} import _run_while_stdin as run; sys.exit(run([sys.executable, '-c', {sleeper!r}]))"
    between = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe)
    assert await between.stdout.readline() == b"up\n"
    between.stdin.close()
    assert await asyncio.wait_for(between.wait(), 5) == 128 + 9
    assert await between.stdout.read() == b""  # nobody else holds the pipe: the sleeper is gone too


def test_the_editors_side_loads_nothing_native():
    code = "import sys, monkeycode_lsp.engines.local.managed.engine; raise SystemExit('xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
