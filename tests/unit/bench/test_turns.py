"""Turns, and the home of a run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from monkeycode_lsp.bench import engine_systems, processes
from monkeycode_lsp.bench.engine_report import Answer

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process costs")


class Spoken:
    """A system that notes when it was asked."""

    version = ""

    def __init__(self, name, heard):
        self.name = name
        self.heard = heard

    async def ask(self, prompt):
        self.heard.append((self.name, prompt))
        return Answer(1.0, 1.0, 1, 0, 1)


async def test_each_prompt_goes_to_each_system_and_who_begins_changes(monkeypatch):
    monkeypatch.setattr(engine_systems, "REST_S", 0.0)
    heard = []
    answers = await engine_systems.take_turns([Spoken(name, heard) for name in "abc"], [1, 2])
    assert heard == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2), ("a", 2)]
    assert {name: len(found) for name, found in answers.items()} == {"a": 2, "b": 2, "c": 2}


def test_a_run_has_a_home_of_its_own_and_gives_the_old_one_back(home):
    before = os.environ["MONKEYCODE_HOME"]
    with engine_systems.own_home() as own:
        assert os.environ["MONKEYCODE_HOME"] == str(own) != before
    assert os.environ["MONKEYCODE_HOME"] == before
    assert not own.exists()


@needs_proc
def test_processes_are_found_by_the_home_that_they_were_started_with():
    with engine_systems.own_home() as own:
        child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        assert processes.of_home(own) == [child.pid]
        assert processes.resident_mb(child.pid) > processes.private_mb(child.pid) > 0
        child.communicate(b"\n")
        assert processes.of_home(own) == []


@needs_proc
def test_a_child_that_nobody_waited_for_is_a_zombie():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.zombies([os.getpid()]) == 1
    child.wait()
    assert processes.zombies([os.getpid()]) == 0


def test_a_process_that_is_not_there_costs_nothing():
    assert processes.resident_mb(2**22 + 1) == 0
    assert processes.private_mb(2**22 + 1) == 0
