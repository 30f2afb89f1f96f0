"""One engine process for all servers of a user."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import json
import os
import random
import signal
import stat
import sys
from pathlib import Path

import pytest

from monkeycode_lsp import folders
from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local import explain, verdict
from monkeycode_lsp.engines.local.host import control, jsontext, launch, registry, rendezvous
from monkeycode_lsp.engines.local.host.link import Link, LinkLostError, Patience
from monkeycode_lsp.engines.local.host.peers import ELSEWHERE, Peer
from monkeycode_lsp.engines.local.host.startlock import StartLock
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.wire import Done, Generate, Hello, encode, frames_from_worker
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError

LINGERS = Local(linger_seconds=600)


def pid_of(engine):
    return engine._tenant.running.link.pid


async def gone(pid, within_s=30):
    async with asyncio.timeout(within_s):
        while control.is_running(pid):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
            await asyncio.sleep(0.01)


def loads(events):
    return [event for event in events.so_far() if event["what"] == "load"]


async def test_two_engines_share_one_process(engine, prompt, say, events):
    one, other = engine(pause_s=0.002), engine(pause_s=0.002)
    assert await asyncio.gather(say(one, prompt("one")), say(other, prompt("other"))) == ["abc", "abc"]
    assert pid_of(one) == pid_of(other)
    assert len(loads(events)) == 1


async def test_eight_that_start_at_once_start_one_process(engine, events):
    engines = [engine() for _ in range(8)]
    await asyncio.gather(*(one.ready() for one in engines))
    assert len({pid_of(one) for one in engines}) == 1
    assert len(loads(events)) == 1


async def test_eight_that_start_at_once_go_down_the_ladder_once(engine, events):
    told = []
    engines = [engine(gpu=True, dies="SIGABRT", dies_while="on_gpu", notify=told.append) for _ in range(8)]
    await asyncio.gather(*(one.ready() for one in engines))
    assert [(event["gpu_layers"], event["gpu_share"]) for event in loads(events)] == [(-1, 1.0), (-1, 0.5), (0, 1.0)]
    assert len(told) == 1


async def test_a_process_that_somebody_kills_while_it_loads_is_no_verdict(engine, events, empty):
    asked = engine(dies="SIGKILL", dies_while="extra_buffers")
    await asked.ready()
    await asked.aclose()
    await empty()
    await engine(dies="SIGKILL", dies_while="extra_buffers").ready()
    assert [event["extra_buffers"] for event in loads(events)] == [True, False, True, False]


async def test_a_process_that_is_always_killed_while_it_loads_wants_memory(engine):
    asked = engine(dies="SIGKILL")
    for _ in range(3):
        with pytest.raises(EngineBusyError, match="SIGKILL"):
            await asked.ready()
    with pytest.raises(EngineUnavailableError, match="SIGKILL") as caught:
        await asked.ready()
    assert "smaller model" in caught.value.remedy


async def test_eight_that_start_in_vain_try_once_and_say_the_same(engine, events):
    engines = [engine(load_error="a tensor is missing", pauses_s=(60.0,)) for _ in range(8)]
    failures = await asyncio.gather(*(one.ready() for one in engines), return_exceptions=True)
    assert {str(failure) for failure in failures} == {str(failures[0])}
    assert isinstance(failures[0], EngineUnavailableError)
    assert len(loads(events)) == 1


async def test_the_process_outlives_whoever_started_it(parent, engine, prompt, say, events):
    starter = await parent(600)
    pid = json.loads(await starter.stdout.readline())["pid"]
    other = engine(settings=LINGERS)
    await other.ready()
    starter.kill()
    await starter.wait()
    assert await say(other, prompt()) == "abc"
    assert pid_of(other) == pid
    assert len(loads(events)) == 1


async def test_the_process_stays_for_a_while_after_its_last_client(engine, prompt, say):
    first = engine(settings=LINGERS)
    await first.ready()
    pid = pid_of(first)
    await first.aclose()
    second = engine(settings=LINGERS)
    assert await say(second, prompt()) == "abc"
    assert pid_of(second) == pid


async def test_a_process_whose_settings_are_old_goes_with_its_last_client(engine, prompt, say, events):
    old = engine(settings=LINGERS)
    await old.ready()
    new = engine(settings=Local(context_tokens=2048, linger_seconds=600))
    assert await say(new, prompt()) == "abc"
    await new._tenant._retiring
    assert pid_of(new) != pid_of(old)
    assert await say(old, prompt()) == "abc"
    assert control.is_running(pid_of(old))
    pid = pid_of(old)
    await old.aclose()
    await gone(pid)
    assert await say(new, prompt()) == "abc"


async def test_settings_that_do_not_matter_to_the_model_share_one_process(engine):
    one, other = engine(settings=LINGERS), engine(settings=Local(linger_seconds=5, idle_minutes=3, nice=9))
    await one.ready()
    await other.ready()
    assert pid_of(one) == pid_of(other)


async def test_the_process_is_as_nice_as_it_was_told(engine, events):
    await engine(settings=Local(nice=7, linger_seconds=0)).ready()
    assert loads(events)[0]["nice"] == os.nice(0) + 7


async def test_a_client_that_leaves_takes_its_asks_with_it_and_nothing_else(engine, prompt, say, events):
    asked = engine(mode="endless")
    await asked.ready()
    other = await Link.open(asked._tenant.running.place.socket)
    answer = other.ask(lambda number: Generate(number, (), session="other"))
    await anext(answer.events())
    await other.aclose()
    assert await say(asked, prompt()) == "abc"
    while await events.next() != {"what": "dropped", "session": "other"}:
        pass


async def test_a_client_that_does_not_read_loses_its_connection_and_holds_up_nobody_for_long(engine, prompt, say, events):
    asked = engine(mode="endless", pieces=["61" * 50_000])
    await asked.ready()
    connection = await rendezvous.connect(asked._tenant.running.place.socket)
    connection.writer.transport.pause_reading()
    connection.writer.write(encode(Hello()) + encode(Generate(1, (), session="deaf")))
    while (event := await events.next())["what"] != "dropped":
        pass
    assert event["session"] == "deaf"
    assert await say(asked, prompt()) == "a" * 50_000
    connection.writer.transport.abort()


async def test_what_is_asked_never_reaches_the_log(engine, prompt, home):
    asked = engine(mode="breaks")
    with pytest.raises(StreamBrokenError):
        await anext(asked.stream(prompt("top secret")))
    os.kill(pid_of(asked), signal.SIGSEGV)
    await asked._tenant.running.link.ended()
    text = "".join(log.read_text() for log in (home / "state").iterdir())
    assert "ZeroDivisionError" in text
    assert "Fatal Python error" in text
    assert "secret" not in text


async def test_what_a_second_client_is_told_is_what_the_first_was_told(engine):
    asked = engine()
    await asked.ready()
    other = await Link.open(asked._tenant.running.place.socket)
    assert await other.loaded() == asked._tenant.running.ready
    assert other.build == asked._tenant.running.link.build
    answer = other.ask(lambda number: Generate(number, (), session="other"))
    assert "".join([event.text async for event in answer.events() if not isinstance(event, Done)]) == "abc"
    await other.aclose()


async def test_whoever_only_looks_does_not_keep_the_process(engine, empty):
    asked = engine()
    await asked.ready()
    looking = await Link.open(asked._tenant.running.place.socket, purpose="control")
    await asked.aclose()
    await looking.ended()
    assert looking.has_left
    await looking.aclose()
    await empty()


async def test_the_status_counts_windows_asks_and_tokens(engine, prompt, say):
    one, other = engine(mode="endless"), engine(mode="endless")
    stream = one.stream(prompt())
    await anext(stream)
    assert await say(other, prompt()) == "abc"
    [seen] = await control.look()
    status = seen.status
    assert (status.pid, status.clients, status.running, status.name) == (pid_of(one), 2, 1, "stub Q0")
    assert (status.totals.asks, status.totals.generated) == (2, 6)
    assert seen.note.pid == status.pid
    assert abs(seen.note.since - status.since) < 10
    await stream.aclose()


async def test_stopping_a_process_ends_it_in_peace_and_the_next_ask_starts_another(engine, prompt, say, events, empty):
    asked = engine(settings=LINGERS)
    await say(asked, prompt())
    pid = pid_of(asked)
    [(place, note)] = registry.all_notes()
    assert await control.stop(place, note) == "left"
    assert not control.is_running(pid)
    assert {"what": "close", "pid": pid} in events.so_far()
    await empty()
    assert await say(asked, prompt()) == "abc"
    assert await control.stop(place, note) == "left"
    assert await control.stop(place, note) == "gone"


async def test_a_process_that_hangs_is_stopped_by_force(engine, empty):
    asked = engine(settings=LINGERS)
    await asked.ready()
    os.kill(pid_of(asked), signal.SIGSTOP)
    [(place, note)] = registry.all_notes()
    assert (await control.look())[0].status is None
    assert await control.stop(place, note) == "ended"
    assert not control.is_running(note.pid)


async def test_a_terminated_process_takes_its_files_along(engine, empty):
    asked = engine(settings=LINGERS)
    await asked.ready()
    os.kill(pid_of(asked), signal.SIGTERM)
    await asked._tenant.running.link.ended()
    assert asked._tenant.running.link.has_left
    await empty()


async def test_a_client_of_another_version_may_look_and_not_ask(engine):
    asked = engine()
    await asked.ready()
    for purpose, answered in (("ask", False), ("control", True)):
        connection = await rendezvous.connect(asked._tenant.running.place.socket)
        connection.writer.write(encode(Hello(version=999, purpose=purpose)))
        data = await connection.reader.read(1000)
        assert bool(data) is answered
        if answered:
            assert frames_from_worker().feed(data)[0].pid == pid_of(asked)
        connection.writer.close()
        await connection.writer.wait_closed()


async def test_what_a_dead_process_left_behind_is_no_hindrance(engine, prompt, say, empty):
    asked = engine(settings=LINGERS)
    await asked.ready()
    place, pid = asked._tenant.running.place, pid_of(asked)
    await asked.aclose()
    os.kill(pid, signal.SIGKILL)
    await gone(pid)
    assert place.socket.exists()
    assert place.note.exists()
    assert await control.look() == []
    second = engine()
    assert await say(second, prompt()) == "abc"
    await second.aclose()
    await empty()


async def test_a_new_process_clears_up_after_a_dead_one_of_other_settings(engine, empty):
    old = engine(settings=LINGERS)
    await old.ready()
    pid = pid_of(old)
    await old.aclose()
    os.kill(pid, signal.SIGKILL)
    await gone(pid)
    new = engine(settings=Local(context_tokens=2048, linger_seconds=0))
    await new.ready()
    await new._tenant._retiring
    await new.aclose()
    await empty()


async def test_a_lock_whose_holder_was_killed_goes_with_the_process(engine, empty):
    asked = engine()
    await asked.ready()
    asked._tenant.running.place.lock.touch()
    await asked.aclose()
    await empty()


async def crash(asked, prompt):
    stream = asked.stream(prompt())
    await anext(stream)
    os.kill(pid_of(asked), signal.SIGSEGV)
    with pytest.raises(StreamBrokenError):
        async for _ in stream:
            pass


async def test_a_second_crash_on_the_gpu_within_minutes_puts_fewer_layers_there(engine, prompt, events):
    told = []
    asked = engine(gpu=True, mode="endless", notify=told.append)
    for _ in range(5):
        await crash(asked, prompt)
    await asked.ready()
    assert [(event["gpu_layers"], event["gpu_share"]) for event in loads(events)] == [
        (-1, 1.0), (-1, 1.0), (-1, 0.5), (-1, 0.5), (0, 1.0), (0, 1.0),
    ]  # fmt: skip
    assert ["half of its layers" in told[0], "on the CPU only" in told[1], len(told)] == [True, True, 2]
    assert verdict.recall(asked._tenant._setup.verdict).attempt == Attempt(gpu_share=0.0)


async def test_whoever_waits_out_a_pause_joins_a_process_that_another_has_started(engine, prompt, say):
    burnt, fresh = engine(mode="endless", pauses_s=(600.0,)), engine(mode="endless", pauses_s=(600.0,))
    await crash(burnt, prompt)
    with pytest.raises(EngineBusyError):
        await burnt.ready()
    await fresh.ready()
    await burnt.ready()
    assert pid_of(burnt) == pid_of(fresh)


async def test_crashes_without_a_gpu_change_nothing(engine, prompt, events):
    told = []
    asked = engine(mode="endless", notify=told.append)
    for _ in range(3):
        await crash(asked, prompt)
    await asked.ready()
    assert {(event["extra_buffers"], event["gpu_layers"]) for event in loads(events)} == {(True, -1)}
    assert told == []


async def test_processes_killed_at_random_cost_at_most_an_answer_each(engine, prompt, say, empty):
    engines = [engine(pause_s=0.005) for _ in range(4)]
    dice = random.Random(3)  # noqa: S311 - the same each time
    n_answers = n_failures = 0

    async def ask_on(one):
        nonlocal n_answers, n_failures
        while not is_over.is_set():
            try:
                assert await say(one, prompt()) == "abc"
            except EngineError:
                n_failures += 1
            else:
                n_answers += 1

    is_over = asyncio.Event()
    asking = [asyncio.create_task(ask_on(one)) for one in engines]
    pids = set()
    for _ in range(6):
        await asyncio.sleep(dice.random() * 0.4)
        for _, note in registry.all_notes():
            pids.add(note.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(note.pid, signal.SIGKILL)
    is_over.set()
    await asyncio.gather(*asking)
    assert n_answers
    assert n_failures <= 6 * 4
    for one in engines:
        assert await say(one, prompt()) == "abc"
        pids.add(pid_of(one))
        await one.aclose()
    for pid in pids:
        await gone(pid)
    assert zombies() == []
    await empty()


def zombies():
    """Children of ours that nobody has buried."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            found += [path] if state == "Z" and int(parent) == os.getpid() else []
    return found


async def test_a_folder_that_others_can_change_is_refused(engine, home):
    (home / "run").mkdir(parents=True)
    (home / "run").chmod(0o755)
    with pytest.raises(EngineUnavailableError, match="not private"):
        await engine().ready()
    (home / "run").chmod(0o700)
    await engine().ready()


async def test_a_socket_that_cannot_be_made_is_an_error_in_words_and_not_tried_again_at_once(engine, events, tmp_path):
    asked = engine(pauses_s=(60.0,), full=True)
    with pytest.raises(EngineUnavailableError, match="cannot listen") as caught:
        await asked.ready()
    assert caught.value.remedy
    with pytest.raises(EngineUnavailableError, match="cannot listen"):
        await asked.ready()
    assert loads(events) == []


async def test_the_log_is_private_and_there_is_one_old_one(engine, home):
    for _ in range(3):
        asked = engine(settings=LINGERS)
        await asked.ready()
        [(place, note)] = registry.all_notes()
        await control.stop(place, note)
    logs = sorted((home / "state").glob("engine-*"))
    assert [log.name for log in logs] == [f"engine-{place.key}.log", f"engine-{place.key}.log.old"]
    assert all(stat.S_IMODE(log.stat().st_mode) == 0o600 for log in logs)


async def test_a_start_by_another_that_takes_too_long_is_not_awaited_for_ever(engine):
    asked = engine(load_timeout_s=0.2)
    setup = await asyncio.to_thread(asked._tenant._prepare)
    lock = StartLock.take(rendezvous.place(setup.key).lock)
    with pytest.raises(EngineBusyError, match="Another window"):
        await asked.ready()
    lock.release()


def state_of(pid):
    """Of its first thread."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


DIES_IN_PARTS = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the whole process is told of")
async def test_a_process_runs_until_its_last_thread_is_dead():
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_IN_PARTS, stdin=asyncio.subprocess.PIPE)
    async with asyncio.timeout(20):
        while state_of(process.pid) != "Z":  # noqa: ASYNC110 - a single thread cannot be awaited
            await asyncio.sleep(0.01)
    assert control.is_running(process.pid)
    process.stdin.close()
    await gone(process.pid)
    await process.wait()


async def test_what_the_user_stops_by_force_has_not_crashed(engine):
    asked = engine(settings=LINGERS, gpu=True)
    await asked.ready()
    os.kill(pid_of(asked), signal.SIGSTOP)
    [(place, note)] = registry.all_notes()
    # A window that starts the next process meanwhile: it clears up, and would find the note of a crash.
    lock = StartLock.take(place.lock)
    assert await control.stop(place, note) == "ended"
    lock.release()
    await asked.ready()
    known = verdict.recall(asked._tenant._setup.verdict)
    assert not (known.crashes if known else ())


async def test_a_process_that_lets_go_of_its_socket_late_is_swept_all_the_same(engine, tmp_path, empty):
    asked = engine(settings=LINGERS)
    await asked.ready()
    [(place, note)] = registry.all_notes()
    await control.stop(place, note)
    n_came = 0

    async def dying(_reader, writer):
        nonlocal n_came
        n_came += 1
        server.close()
        writer.close()

    folders.private(place.socket.parent)
    server = await asyncio.start_unix_server(dying, place.socket)
    place.note.write_text(jsontext.dump(note))
    assert await launch.sweep(place) == note
    assert n_came == 1
    await empty()


async def test_a_process_in_another_container_is_never_ended_by_a_number_that_it_tells(engine, prompt, say):
    asked = engine()
    await asked.ready()
    connection = await rendezvous.connect(asked._tenant.running.place.socket)
    link = Link(dataclasses.replace(connection, peer=Peer(os.geteuid(), ELSEWHERE)))
    link.send(Hello())
    await link.loaded()
    assert link.pid == ELSEWHERE
    link.kill()
    await link.aclose()
    assert await say(asked, prompt()) == "abc"


async def test_a_process_in_another_container_that_hangs_is_left_and_that_is_said(engine, monkeypatch):
    asked = engine(settings=LINGERS)
    await asked.ready()
    pid = pid_of(asked)
    [(place, note)] = registry.all_notes()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(rendezvous, "peer_of", lambda _: Peer(os.geteuid(), ELSEWHERE))
    with pytest.raises(EngineUnavailableError, match="another container") as caught:
        await control.stop(place, note)
    assert caught.value.remedy
    with pytest.raises(EngineUnavailableError, match="another container"):
        await engine(patience=Patience(welcome_s=0.2, loading_s=0.2)).ready()
    assert control.is_running(pid)
    assert registry.read(place) == note
    os.kill(pid, signal.SIGCONT)
    assert await control.stop(place, note) == "left"


@pytest.mark.parametrize("what", ["socket", "note", "lock", "a link as lock"])
async def test_what_lies_in_the_way_is_named(engine, what):
    asked = engine(pauses_s=(60.0,))
    place = rendezvous.place((await asyncio.to_thread(asked._tenant._prepare)).key)
    path = getattr(place, what.rpartition(" ")[2])
    if what == "a link as lock":
        path.symlink_to(path.parent / "no" / "where")
    else:
        path.mkdir()
    with pytest.raises(EngineUnavailableError, match=f"{path} is in the way") as caught:
        await asyncio.wait_for(asked.ready(), 30)
    assert caught.value.remedy == "Remove it."
    assert await launch.sweep(place) is None


@pytest.mark.parametrize("what", ["socket", "note"])
async def test_a_named_pipe_in_place_of_a_file_is_no_hindrance(engine, prompt, say, empty, what):
    asked = engine()
    place = rendezvous.place((await asyncio.to_thread(asked._tenant._prepare)).key)
    os.mkfifo(getattr(place, what))
    assert await asyncio.wait_for(say(asked, prompt()), 30) == "abc"
    await asked.aclose()
    await empty()


async def test_a_runtime_folder_that_is_not_ours_to_use_is_no_hindrance(engine, prompt, say, tmp_path, monkeypatch):
    monkeypatch.delenv("MONKEYCODE_HOME")
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "h"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    asked = engine()
    assert await say(asked, prompt()) == "abc"
    await asked.aclose()


@pytest.mark.parametrize(("number", "is_full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False), (None, False)])
def test_only_a_full_disk_is_asked_after(number, is_full):
    assert ("disk full" in explain.cannot_listen("no", number=number).remedy) is is_full


async def test_each_look_is_answered_anew(engine):
    asked = engine()
    await asked.ready()
    link = await Link.open(asked._tenant.running.place.socket, purpose="control")
    assert (await link.status()).clients == 1
    other = engine()
    await other.ready()
    assert [status.clients for status in await asyncio.gather(link.status(), link.status())] == [2, 2]
    unheard = asyncio.create_task(link.status())
    await asyncio.sleep(0)
    unheard.cancel()
    third = engine()
    await third.ready()
    assert (await link.status()).clients == 3
    await link.aclose()
    with pytest.raises(LinkLostError):
        await link.status()
