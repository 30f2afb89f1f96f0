"""What was learnt of the user: kept as counts, shared by all windows, lost without harm."""

import msgspec
import pytest

from monkeycode_lsp.silence.history import FILE, MOST, MOST_MODELS, N_BINS, Counts, History


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / FILE


def loaded(file):
    history = History(file)
    history.load()
    return history


def test_nothing_is_known_at_first(file):
    assert loaded(file).counts("m") == Counts()


def test_what_was_learnt_is_known_at_once_and_after_a_new_start(file):
    history = loaded(file)
    history.learn("m", 3, taken=1.0, left=0.0)
    history.learn("m", 3, taken=0.0, left=0.25)
    assert history.counts("m").bins[3] == (1.0, 0.25)
    history.save()
    assert history.counts("m").bins[3] == (1.0, 0.25)
    assert loaded(file).counts("m").bins[3] == (1.0, 0.25)
    assert loaded(file).counts("another") == Counts()


def test_two_windows_add_up(file):
    one, other = loaded(file), loaded(file)
    one.learn("m", 0, taken=1.0, left=0.0)
    other.learn("m", 0, taken=0.0, left=1.0)
    one.save()
    other.save()
    one.save()
    assert loaded(file).counts("m").bins[0] == (1.0, 1.0)
    assert other.counts("m").bins[0] == (1.0, 1.0), "and the second knows of the first"


def test_what_is_learnt_before_the_file_is_read_is_not_lost(file):
    before = loaded(file)
    before.learn("m", 1, taken=1.0, left=0.0)
    before.save()
    history = History(file)
    history.learn("m", 1, taken=1.0, left=0.0)
    history.load()
    assert history.counts("m").bins[1] == (2.0, 0.0)
    history.save()
    assert loaded(file).counts("m").bins[1] == (2.0, 0.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b'{"models": {"a": {"bins": [[1, 2]]}}}',
        b'{"models": {"a": {"bins": [[-1, 2], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]}}}',
        b'{"models": {"a": {"bins": [[1e300, 2], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]}}}',
        b'{"models": ' + b"[" * 100_000,
        b" " * 300_000 + b"{}",
    ],
)
def test_a_damaged_file_is_begun_anew(file, data):
    file.parent.mkdir()
    file.write_bytes(data)
    history = loaded(file)
    history.learn("m", 2, taken=1.0, left=0.0)
    history.save()
    assert loaded(file).counts("m").bins[2] == (1.0, 0.0)
    assert len(msgspec.json.decode(file.read_bytes())["models"]) == 1


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    blocked = tmp_path / "state"
    blocked.write_text("a file where the folder should be")
    history = loaded(blocked / FILE)
    history.learn("m", 2, taken=1.0, left=0.0)
    history.save()
    assert history.counts("m").bins[2] == (1.0, 0.0)
    assert loaded(None).counts("m") == Counts()


def test_nothing_is_written_while_nothing_was_learnt(file):
    loaded(file).save()
    assert not file.exists()


def test_the_file_holds_no_address_and_no_path(file):
    history = loaded(file)
    history.learn("remote:openai:https://code.example.org:secret-model:", 0, taken=1.0, left=0.0)
    history.save()
    assert b"example" not in file.read_bytes()
    assert b"secret" not in file.read_bytes()


def test_old_experience_fades_and_the_file_stays_small(file):
    history = loaded(file)
    for _ in range(2 * int(MOST)):
        history.learn("m", 0, taken=0.0, left=1.0)
    for _ in range(int(MOST)):
        history.learn("m", 0, taken=1.0, left=0.0)
    taken, left = history.counts("m").bins[0]
    assert taken + left <= MOST + 1e-6
    assert taken > left, "what was long ago weighs less"
    for number in range(3 * MOST_MODELS):
        history.learn(f"m{number}", N_BINS - 1, taken=1.0, left=0.0)
    history.save()
    assert history.counts("m") == Counts(), "the model that was not met for the longest time is forgotten"
    assert loaded(file).counts(f"m{3 * MOST_MODELS - 1}").bins[-1] == (1.0, 0.0)
    assert file.stat().st_size < 20_000
