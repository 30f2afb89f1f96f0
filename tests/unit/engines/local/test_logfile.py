from __future__ import annotations

import os

from monkeycode_lsp.engines.local.host import logfile


def written(path, text):
    descriptor = logfile.open_new(path)
    os.write(descriptor, text)
    os.close(descriptor)


def test_a_new_log_keeps_the_one_before_it(home):
    path = logfile.path("abc")
    for text in (b"first", b"second", b"third"):
        written(path, text)
    assert path.read_bytes() == b"third"
    assert path.with_suffix(".log.old").read_bytes() == b"second"


def test_there_are_never_more_than_a_dozen(home):
    for number in range(20):
        written(logfile.path(f"{number}"), b"x")
    assert len(list(home.joinpath("state").iterdir())) == 12
    assert logfile.path("19").exists()


def test_the_tail_is_the_last_lines_of_a_log_that_can_be_read(home):
    written(logfile.path("a"), b"one\ntwo\n\xff three\n")
    assert logfile.tail(logfile.path("a"), 2) == ["two", "\ufffd three"]
    assert logfile.tail(logfile.path("b"), 2) == []


def test_a_log_that_has_become_too_long_is_begun_anew(home):
    descriptor = logfile.open_new(logfile.path("a"))
    os.truncate(logfile.path("a"), logfile.MOST_BYTES)
    logfile.bound(descriptor)
    assert logfile.path("a").stat().st_size == logfile.MOST_BYTES
    os.truncate(logfile.path("a"), logfile.MOST_BYTES + 1)
    logfile.bound(descriptor)
    os.write(descriptor, b"on")
    os.close(descriptor)
    assert logfile.path("a").read_bytes() == b"on"
