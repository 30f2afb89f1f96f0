"""The native engine with a real child process around a stub decoder."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Finish, Priority, Sampling, Usage
from monkeycode_lsp.engines.local import explain, verdict
from monkeycode_lsp.engines.local.host import control, rendezvous
from monkeycode_lsp.engines.local.host.link import Link, Patience
from monkeycode_lsp.engines.local.wire import Cancel, Generate, Hello, encode
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineRefusedError, EngineUnavailableError, StreamBrokenError

QUICK = Patience(welcome_s=0.5, quiet_s=0.2, pong_s=0.5)


async def gone(pid, within_s=30):
    async with asyncio.timeout(within_s):
        while control.is_running(pid):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
            await asyncio.sleep(0.01)


async def _whole(engine, prompt):
    async with aclosing(engine.stream(prompt)) as stream:
        return "".join([chunk.text async for chunk in stream])


async def _first(engine, prompt):
    async with aclosing(engine.stream(prompt)) as stream:
        return (await anext(stream)).text


async def test_an_answer_comes_in_chunks_and_the_last_one_says_how_it_ended(engine, prompt):
    async with aclosing(engine().stream(prompt())) as stream:
        chunks = [chunk async for chunk in stream]
    assert [chunk.text for chunk in chunks] == ["a", "b", "c", ""]
    assert [chunk.finish for chunk in chunks] == [None, None, None, Finish.STOP]
    assert chunks[-1].usage == Usage(reused=3, read=2, generated=3)
    assert sum(chunk.logprob or 0 for chunk in chunks) == -1.5
    assert sum(chunk.n_tokens for chunk in chunks) == 3


async def test_ready_tells_which_model_answers(engine):
    model = await engine().ready()
    assert model.name == "stub Q0"
    assert model.family is None
    assert model.context_tokens == 4096
    assert model.fingerprint.startswith("native:")


async def test_the_fingerprint_follows_the_file_and_not_its_place(engine, tmp_path):
    first = tmp_path / "a.gguf"
    first.write_bytes(b"GGUF" + b"a" * 100)
    moved = tmp_path / "b.gguf"
    moved.write_bytes(first.read_bytes())
    other = tmp_path / "c.gguf"
    other.write_bytes(b"GGUF" + b"c" * 100)
    a, b, c = [(await engine(model=path).ready()).fingerprint for path in (first, moved, other)]
    assert a == b != c


async def test_an_emoji_in_three_tokens_arrives_whole(engine, prompt):
    async with aclosing(engine(pieces=["f09f", "98", "80", "21"]).stream(prompt())) as stream:
        texts = [chunk.text async for chunk in stream if chunk.text]
    assert texts == ["😀", "!"]


async def test_two_asks_at_once_are_both_answered(engine, prompt, say):
    # The stub's process ends at once when two threads are inside it.
    asked = engine(pause_s=0.002)
    assert await asyncio.gather(say(asked, prompt("one")), say(asked, prompt("two"))) == ["abc", "abc"]


async def test_the_process_is_asked_for_all_that_the_prompt_says(engine, prompt, say, events):
    sampling = Sampling(temperature=0.7)
    more = {"grammar": "root ::= x", "heal": "de", "draft": "abc", "priority": Priority.WARM_UP, "max_tokens": 0, "sampling": sampling}
    await say(engine(), prompt("doc", **more))
    _, begun = events.so_far()[:2]
    told = {name: begun[name] for name in ("grammar", "heal", "draft", "priority", "max_tokens", "temperature", "session")}
    assert told == {
        "grammar": "root ::= x", "heal": "de", "draft": "abc", "priority": 2, "max_tokens": 0, "temperature": 0.7, "session": "doc",
    }  # fmt: skip


async def test_an_ask_that_is_more_urgent_interrupts_the_batch(engine, prompt, say, events):
    asked = engine(mode="reads")
    reading = asyncio.create_task(say(asked, prompt("read ahead", priority=Priority.WARM_UP)))
    assert [(await events.next())["what"] for _ in range(2)] == ["load", "begin"]
    assert await say(asked, prompt("typed")) == await reading == "abc"
    assert {"what": "left", "session": "read ahead"} in events.so_far()


async def test_closing_a_stream_ends_its_generation_before_the_close_returns(engine, prompt, say, events):
    asked = engine(mode="endless")
    stream = asked.stream(prompt("left"))
    await anext(stream)
    await stream.aclose()
    assert {"what": "cancelled", "session": "left"} in events.so_far()
    assert await say(asked, prompt("next")) == "abc"


async def test_a_stalled_prompt_can_be_cancelled(engine, prompt, say, events):
    asked = engine(mode="stalls")
    pulling = asyncio.create_task(say(asked, prompt("stuck")))
    while (await events.next())["what"] != "begin":
        pass
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert events.so_far() == [{"what": "cancelled", "session": "stuck"}]
    assert await say(asked, prompt("next")) == "abc"


async def test_an_ask_that_has_not_begun_can_be_cancelled_without_ever_beginning(engine, prompt, say, events):
    # The first one keeps the decode thread inside a step until something more urgent comes.
    asked = engine(mode="reads")
    reading = asyncio.create_task(say(asked, prompt("reading")))
    assert [(await events.next())["what"] for _ in range(2)] == ["load", "begin"]
    waiting = asyncio.create_task(say(asked, prompt("waiting", priority=Priority.BATCH)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    reading.cancel()
    link = asked._tenant.running.link
    other = await Link.open(asked._tenant.running.place.socket)
    await other.aclose()
    link.kill()
    with pytest.raises((asyncio.CancelledError, StreamBrokenError)):
        await reading
    assert [event["session"] for event in events.so_far() if event["what"] == "begin"] == []


async def test_a_process_that_answers_pings_and_ignores_a_cancel_is_ended_in_the_end(engine, prompt, events):
    asked = engine(mode="deaf", confirm_s=0.2, give_up_s=0.6)
    pulling = asyncio.create_task(_whole(asked, prompt("stuck")))
    while (await events.next())["what"] != "begin":
        pass
    pid = asked._tenant.running.link.pid
    pulling.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert time.monotonic() - began > 0.5
    await gone(pid)
    await asked.ready()
    assert asked._tenant.running.link.pid != pid


async def test_a_process_that_is_stopped_in_the_middle_of_an_answer_is_replaced(engine, prompt, say, empty):
    asked = engine(mode="endless", patience=QUICK, confirm_s=0.2)
    stream = asked.stream(prompt())
    await anext(stream)
    pid = asked._tenant.running.link.pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(StreamBrokenError):
        async for _ in stream:
            pass
    await gone(pid)
    assert await _first(asked, prompt("next")) == "a"
    await asked.aclose()
    await empty()


async def test_a_process_that_is_stopped_while_idle_costs_one_ask(engine, prompt, say):
    asked = engine(patience=QUICK)
    await asked.ready()
    os.kill(asked._tenant.running.link.pid, signal.SIGSTOP)
    with pytest.raises(StreamBrokenError):
        await say(asked, prompt())
    assert await say(asked, prompt()) == "abc"


async def test_a_process_that_accepts_and_does_not_welcome_is_replaced(engine, prompt, say):
    first = engine(settings=Local(linger_seconds=600), patience=QUICK)
    await first.ready()
    pid = first._tenant.running.link.pid
    await first.aclose()
    os.kill(pid, signal.SIGSTOP)
    second = engine(patience=QUICK)
    assert await say(second, prompt()) == "abc"
    assert second._tenant.running.link.pid != pid
    await gone(pid)


async def test_a_process_killed_in_the_middle_breaks_one_stream_and_the_next_ask_is_answered(engine, prompt, say):
    asked = engine(mode="endless")
    stream = asked.stream(prompt())
    await anext(stream)
    killed = asked._tenant.running
    os.kill(killed.link.pid, signal.SIGKILL)
    with pytest.raises(StreamBrokenError):
        async for _ in stream:
            pass
    assert not killed.place.socket.exists()
    again = asked.stream(prompt())
    assert (await anext(again)).text == "a"
    await again.aclose()


async def test_a_process_killed_while_idle_costs_nothing(engine, prompt, say):
    asked = engine()
    await asked.ready()
    running = asked._tenant.running
    os.kill(running.link.pid, signal.SIGKILL)
    await asyncio.wait([running.link._reading])
    assert await say(asked, prompt()) == "abc"


async def test_after_a_crash_the_restart_waits_out_its_pause(engine, prompt):
    asked = engine(mode="endless", pauses_s=(60.0,))
    stream = asked.stream(prompt())
    await anext(stream)
    os.kill(asked._tenant.running.link.pid, signal.SIGSEGV)
    with pytest.raises(StreamBrokenError):
        await anext(stream)
    with pytest.raises(EngineBusyError, match="SIGSEGV") as caught:
        await asked.ready()
    assert 0 < caught.value.retry_after_s <= 60


async def test_a_process_leaves_when_it_is_idle_and_the_next_ask_starts_another(engine, prompt, say):
    asked = engine(idle_s=0.05)
    assert await say(asked, prompt()) == "abc"
    running = asked._tenant.running
    await asyncio.wait([running.link._reading], timeout=10)
    assert running.link.has_left
    assert await say(asked, prompt()) == "abc"
    await gone(running.link.pid)


async def test_an_ask_that_meets_a_leaving_process_goes_to_the_next_one(engine, prompt, say, events):
    asked = engine(mode="leaves", once=True, pauses_s=(60.0,))
    assert await say(asked, prompt()) == "abc"
    assert [event["what"] for event in events.so_far() if event["what"] in {"load", "begin"}] == ["load", "begin", "load", "begin"]


async def test_an_ask_that_said_nothing_before_a_crash_is_asked_once_more(engine, prompt, events):
    asked = engine(mode="stalls", once=True)
    asking = asyncio.create_task(_whole(asked, prompt()))
    while (await events.next())["what"] != "begin":
        pass
    os.kill(asked._tenant.running.link.pid, signal.SIGKILL)
    assert await asking == "abc"


async def test_a_prompt_too_long_says_what_fits(engine, prompt, say):
    with pytest.raises(ContextOverflowError) as caught:
        await say(engine(mode="overflow"), prompt())
    assert caught.value.limit_tokens == 4096


async def test_a_grammar_that_cannot_be_read_is_refused_in_words(engine, prompt, say):
    with pytest.raises(EngineRefusedError, match="grammar") as caught:
        await say(engine(mode="grammar"), prompt())
    assert "GBNF" in caught.value.remedy


async def test_a_prompt_too_long_for_any_frame_is_refused_and_the_next_ask_is_answered(engine, prompt, say):
    asked = engine()
    with pytest.raises(ContextOverflowError):
        await say(asked, prompt("x" * (17 * 1024 * 1024)))
    assert await say(asked, prompt()) == "abc"


async def test_a_decoder_that_raises_breaks_one_answer_only(engine, prompt, say):
    asked = engine(mode="breaks")
    with pytest.raises(StreamBrokenError):
        await say(asked, prompt())
    assert await say(asked, prompt()) == "abc"


async def test_an_abort_at_load_with_layers_on_the_gpu_ends_on_the_cpu(engine, prompt, say, events):
    told = []
    asked = engine(gpu=True, dies="SIGABRT", dies_while="on_gpu", notify=told.append)
    assert await say(asked, prompt()) == "abc"
    loads = [(event["gpu_layers"], event["gpu_share"]) for event in events.so_far() if event["what"] == "load"]
    assert loads == [(-1, 1.0), (-1, 0.5), (0, 1.0)]
    assert len(told) == 1
    assert "SIGABRT" in told[0]
    assert "on the CPU only" in told[0]


async def test_an_abort_at_load_is_cured_by_half_of_the_layers(engine, prompt, say, events):
    told = []
    asked = engine(gpu=True, dies="SIGABRT", dies_while="more_than_half_on_gpu", notify=told.append)
    assert await say(asked, prompt()) == "abc"
    assert [event["gpu_share"] for event in events.so_far() if event["what"] == "load"] == [1.0, 0.5]
    assert "half of its layers" in told[0]


async def test_an_illegal_instruction_is_cured_without_extra_buffers_and_the_message_has_the_build_line(engine, prompt, say, events):
    told = []
    asked = engine(dies="SIGILL", dies_while="extra_buffers", notify=told.append)
    assert await say(asked, prompt()) == "abc"
    assert [event["extra_buffers"] for event in events.so_far() if event["what"] == "load"] == [True, False]
    assert len(told) == 1
    assert explain.BUILD_LINE in told[0]


async def test_what_worked_is_remembered_and_said_only_once(engine, events, empty):
    told = []
    behaviour = {"dies": "SIGILL", "dies_while": "extra_buffers", "notify": told.append}
    first = engine(**behaviour)
    await first.ready()
    events.so_far()
    await first.aclose()
    await empty()
    await engine(**behaviour).ready()
    assert [event["extra_buffers"] for event in events.so_far() if event["what"] == "load"] == [False]
    assert len(told) == 1


async def test_what_worked_is_forgotten_when_the_model_changes(engine, events, model):
    behaviour = {"dies": "SIGILL", "dies_while": "extra_buffers"}
    await engine(**behaviour).ready()
    events.so_far()
    model.write_bytes(b"GGUF" + bytes(2000))
    await engine(**behaviour).ready()
    assert [event["extra_buffers"] for event in events.so_far() if event["what"] == "load"] == [True, False]


async def test_a_processor_that_nothing_cures_gets_the_build_line_and_is_left_alone_for_a_while(engine, events):
    asked = engine(dies="SIGILL", pauses_s=(60.0,))
    with pytest.raises(EngineUnavailableError, match="illegal instruction") as caught:
        await asked.ready()
    assert explain.BUILD_LINE in caught.value.remedy
    assert len(events.so_far()) == 2
    with pytest.raises(EngineUnavailableError):
        await asked.ready()
    assert events.so_far() == []


async def test_a_load_error_names_the_file_and_what_the_library_said(engine, model):
    with pytest.raises(EngineUnavailableError, match="tensor") as caught:
        await engine(load_error="a tensor is missing").ready()
    assert str(model) in caught.value.message
    assert "local.model" in caught.value.remedy


@pytest.mark.parametrize(("dies", "then"), [("SIGILL", False), ("SIGABRT", True)])
async def test_a_single_crash_at_load_is_no_verdict_for_ever(engine, events, empty, dies, then):
    told = []
    first = engine(dies=dies, dies_while="extra_buffers", notify=told.append)
    await first.ready()
    assert ("after a day" in told[0]) is then
    await first.aclose()
    await empty()
    events.so_far()
    verdict.forget()
    await engine().ready()
    assert [event["extra_buffers"] for event in events.so_far() if event["what"] == "load"] == [then]


@pytest.mark.skipif(sys.platform == "darwin", reason="there every file name is text")
async def test_a_model_file_whose_name_is_no_text_is_loaded(engine, prompt, say, events, tmp_path):
    model = tmp_path / os.fsdecode(b"m\xfc.gguf")
    model.write_bytes(b"GGUF")
    assert await say(engine(model=model), prompt()) == "abc"
    assert [event["model"] for event in events.so_far() if event["what"] == "load"] == [str(model)]


@pytest.mark.skipif(sys.platform == "darwin", reason="there every file name is text")
async def test_a_failure_that_names_a_file_whose_name_is_no_text_is_told(engine, tmp_path):
    model = tmp_path / os.fsdecode(b"m\xfc.gguf")
    model.write_bytes(b"GGUF")
    with pytest.raises(EngineUnavailableError, match=r"a tensor of .*/m\?\.gguf is missing"):
        await engine(model=model, load_error="a tensor of {model} is missing").ready()


async def test_a_pipe_is_no_model_and_nobody_waits_for_it(engine, tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    async with asyncio.timeout(10):
        with pytest.raises(EngineUnavailableError, match="is a pipe or a device") as caught:
            await engine(model=tmp_path / "pipe.gguf").ready()
    assert "local.model" in caught.value.remedy


@pytest.fixture(params=["missing", "folder", "no gguf"])
def useless(request, tmp_path):
    """A model file of no use, and what is said of it."""
    path = tmp_path / "other.gguf"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "no gguf":
        path.write_text("<html>")
    return path, {"missing": "does not exist", "folder": "is a folder", "no gguf": "not a GGUF file"}[request.param]


def mend(path):
    if path.is_dir():
        path.rmdir()
    path.write_bytes(b"GGUF")


async def test_a_model_file_of_no_use_is_named_with_its_setting_and_works_once_mended(engine, prompt, say, useless):
    path, said = useless
    asked = engine(model=path)
    for _ in range(2):
        with pytest.raises(EngineUnavailableError, match=said) as caught:
            await asked.ready()
        assert str(path) in caught.value.message
        assert "local.model" in caught.value.remedy
    mend(path)
    assert await say(asked, prompt()) == "abc"


async def test_a_program_that_does_not_exist_is_an_error_in_words(engine, tmp_path):
    with pytest.raises(EngineUnavailableError, match="cannot be started"):
        await engine(command=[str(tmp_path / "nothing")]).ready()


async def test_a_program_that_is_no_worker_is_an_error_in_words(engine):
    command = [sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(9)"]
    with pytest.raises(EngineUnavailableError, match=r"status 9.*no such thing"):
        await engine(command=command).ready()


async def test_a_process_that_hangs_while_it_loads_is_given_up(engine, events, empty):
    asked = engine(hangs=True, load_timeout_s=1.0)
    with pytest.raises(EngineUnavailableError, match="hung"):
        await asked.ready()
    await empty()


async def test_many_asks_while_it_loads_start_one_process(engine, prompt, say, events):
    asked = engine()
    assert await asyncio.gather(*(say(asked, prompt(str(n))) for n in range(5))) == ["abc"] * 5
    assert sum(event["what"] == "load" for event in events.so_far()) == 1


async def test_a_caller_that_leaves_while_it_loads_does_not_stop_the_loading(engine, prompt, say, events):
    asked = engine()
    first = asyncio.create_task(asked.ready())
    assert (await events.next())["what"] == "load"
    first.cancel()
    assert await say(asked, prompt()) == "abc"
    assert sum(event["what"] == "load" for event in events.so_far()) == 0


async def test_closing_leaves_no_process_and_no_file(engine, prompt, say, empty):
    asked = engine()
    await say(asked, prompt())
    running = asked._tenant.running
    folder = running.place.socket.parent
    assert {path.name for path in folder.iterdir()} == {running.place.socket.name, running.place.note.name}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    await asked.aclose()
    await asked.aclose()
    await gone(running.link.pid)
    await empty()
    with pytest.raises(EngineUnavailableError):
        await asked.ready()


async def test_closing_while_it_loads_leaves_no_process_and_no_file(engine, events, empty):
    asked = engine(hangs=True)
    loading = asyncio.create_task(asked.ready())
    told = await events.next()
    await asked.aclose()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await gone(told["pid"])
    await empty()


async def test_closing_in_the_middle_of_an_answer_ends_it(engine, prompt):
    asked = engine(mode="endless")
    stream = asked.stream(prompt())
    await anext(stream)
    await asked.aclose()
    with pytest.raises(StreamBrokenError):
        async for _ in stream:
            pass


async def test_a_deep_home_does_not_make_the_socket_path_too_long(engine, prompt, say, tmp_path, monkeypatch):
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / ("d" * 120)))
    asked = engine()
    assert await say(asked, prompt()) == "abc"
    running = asked._tenant.running
    await asked.aclose()
    await gone(running.link.pid)
    assert not running.place.socket.parent.exists()


async def test_loopback_serves_whoever_shows_the_token_and_nobody_else(engine, prompt, say, empty):
    asked = engine(loopback=True)
    assert await say(asked, prompt()) == "abc"
    path = asked._tenant.running.place.socket
    port = json.loads(path.read_text())["port"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for first in (Hello(token="guessed"), Cancel(1)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(encode(first))
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert await say(engine(loopback=True), prompt()) == "abc"
    await asked.aclose()


async def test_nothing_that_the_library_prints_reaches_our_standard_output(parent):
    process = await parent(0, prints=10_000)
    out, _ = await process.communicate(b"\n")
    assert process.returncode == 0
    assert [list(json.loads(line)) for line in out.splitlines()] == [["pid", "socket"]]


@pytest.mark.parametrize("mode", ["endless", "stalls", "deaf"])
async def test_the_process_ends_with_its_killed_last_client_whatever_it_does(parent, mode, events, empty):
    process = await parent(0, mode=mode)
    told = json.loads(await process.stdout.readline())
    witness = await Link.open(Path(told["socket"]))
    await witness.loaded()
    witness.ask(lambda number: Generate(number, (), session="witness"))
    while (await events.next())["what"] != "begin":
        pass
    process.kill()
    await process.wait()
    await witness.aclose()
    await gone(told["pid"], within_s=3)
    await empty()


async def test_a_malformed_frame_costs_its_own_connection_only(engine, prompt, say):
    asked = engine()
    await asked.ready()
    stranger = await rendezvous.connect(asked._tenant.running.place.socket)
    stranger.writer.write(b"\x00\x00\x00\x03abc")
    assert await stranger.reader.read() == b""
    stranger.writer.close()
    await stranger.writer.wait_closed()
    assert await say(asked, prompt()) == "abc"


def test_the_editors_side_never_imports_the_library():
    code = (
        "import sys, monkeycode_lsp.engines.local.native, monkeycode_lsp.engines.local.selftest\n"
        "raise SystemExit(bool({'llama_cpp', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_prompt_that_no_frame_can_hold_is_refused_in_words_and_the_next_ask_is_answered(engine, prompt, say):
    one = engine()
    with pytest.raises(EngineRefusedError, match="cannot be sent"):
        await say(one, prompt(heal="\udc80"))
    assert await say(one, prompt()) == "abc"
