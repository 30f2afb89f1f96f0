"""KV states on disk."""

from __future__ import annotations

import os
import stat
import sys
import time

import pytest

from monkeycode_lsp.engines.local.batch import states
from monkeycode_lsp.engines.local.batch.shelf import Entry

if sys.platform != "win32":
    import resource


def entry(tokens, state):
    return Entry(tokens, len(state), lambda: state)


def write(folder, *entries, scope="a", most_bytes=1000):
    states.write(folder, scope, entries, most_bytes=most_bytes)


def found(folder, scope="a"):
    return {entry.tokens: entry.load() for entry in states.read(folder, scope)}


def test_what_was_written_is_found_again_with_the_most_useful_one_last(tmp_path):
    write(tmp_path / "kv", entry((1, 2), b"newest"), entry((3,), b"older"))
    assert found(tmp_path / "kv") == {(1, 2): b"newest", (3,): b"older"}


def test_another_model_or_build_finds_nothing_and_removes_nothing(tmp_path):
    write(tmp_path, entry((1,), b"x"))
    assert found(tmp_path, scope="b") == {}
    write(tmp_path, entry((2,), b"y"), scope="b")
    assert (found(tmp_path), found(tmp_path, scope="b")) == ({(1,): b"x"}, {(2,): b"y"})


def test_what_is_written_next_replaces_what_was_there_also_where_it_came_from_there(tmp_path):
    write(tmp_path, entry((1,), b"one"), entry((2,), b"two"))
    kept = [one for one in states.read(tmp_path, "a") if one.tokens == (2,)]
    write(tmp_path, entry((3,), b"three"), *kept)
    assert found(tmp_path) == {(2,): b"two", (3,): b"three"}


def test_what_does_not_fit_is_left_out(tmp_path):
    write(tmp_path, entry((1,), b"x" * 60), entry((2,), b"x" * 60), entry((3,), b"x" * 30), most_bytes=100)
    assert set(found(tmp_path)) == {(1,), (3,)}


@pytest.mark.parametrize("damage", [b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x03abc", b"short"])
def test_a_damaged_file_is_removed_and_the_others_are_used(tmp_path, damage):
    write(tmp_path, entry((1,), b"x"))
    (tmp_path / "broken.kv").write_bytes(damage)
    assert found(tmp_path) == {(1,): b"x"}
    assert not (tmp_path / "broken.kv").exists()


def test_a_file_that_is_cut_short_later_costs_only_itself(tmp_path):
    write(tmp_path, entry((1,), b"x" * 100))
    (kept,) = states.read(tmp_path, "a")
    next(tmp_path.glob("*.kv")).unlink()
    assert kept.load() is None


def test_a_state_with_one_wrong_byte_is_not_used(tmp_path):
    write(tmp_path, entry((1,), b"x" * 100))
    (path,) = tmp_path.glob("*.kv")
    path.write_bytes(path.read_bytes()[:-1] + b"y")
    assert found(tmp_path) == {(1,): None}


def test_a_state_with_one_wrong_token_is_not_used(tmp_path):
    write(tmp_path, entry((1, 2, 3), b"x" * 100))
    (path,) = tmp_path.glob("*.kv")
    data = path.read_bytes()
    at = data.index(bytes([1, 2, 3]))
    path.write_bytes(data[:at] + bytes([1, 2, 4]) + data[at + 3 :])
    assert found(tmp_path) == {(1, 2, 4): None}


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_only_the_user_can_read_them(tmp_path):
    write(tmp_path / "kv", entry((1,), b"x"))
    assert stat.S_IMODE((tmp_path / "kv").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kv").iterdir()] == [0o600]


def test_a_folder_that_cannot_be_made_costs_the_states_and_no_more(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    write(tmp_path / "file" / "kv", entry((1,), b"x"))
    assert "could not be kept" in caplog.text
    assert states.read(tmp_path / "file" / "kv", "a") == []


def test_what_nobody_came_back_to_for_long_goes(tmp_path):
    write(tmp_path, entry((1,), b"x"), scope="old")
    (old,) = tmp_path.glob("*.kv")
    long_ago = time.time() - 30 * 86_400
    os.utime(old, (long_ago, long_ago))
    write(tmp_path, entry((2,), b"y"))
    assert not old.exists()
    assert found(tmp_path) == {(2,): b"y"}


@pytest.mark.skipif(sys.platform == "win32", reason="limits are of POSIX")
def test_a_disk_that_is_full_in_the_middle_costs_the_states_and_no_more(tmp_path, caplog):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        write(tmp_path, entry((1,), b"x" * 900))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "could not be kept" in caplog.text
    assert list(tmp_path.iterdir()) == []
    write(tmp_path, entry((1,), b"x" * 900))
    assert found(tmp_path) == {(1,): b"x" * 900}
