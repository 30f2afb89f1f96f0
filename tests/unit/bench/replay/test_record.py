"""Recording what an editor sends."""

from __future__ import annotations

import asyncio
import errno
import gzip
import itertools
import json
import stat
import sys
import threading

import pytest

from monkeycode_lsp.bench.replay import record
from monkeycode_lsp.bench.replay.load import load
from monkeycode_lsp.bench.replay.record import Recorder
from monkeycode_lsp.bench.replay.recording import Recording, RecordingFile, Transaction
from monkeycode_lsp.bench.replay.trace import Patch
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.settings import Layers

URI = "file:///w/a.py"


class Heard:
    """A server that only listens."""

    def __init__(self):
        self.bodies = []

    def connected(self, writer, *, framed):
        self.writer = writer

    def receive(self, body):
        self.bodies.append(body)


class Scene:
    """A recorder with an editor in front of it."""

    def __init__(self, path, make=RecordingFile):
        self.path = path
        self.file = make(path)
        self.server = Heard()
        self.recorder = Recorder(self.server, self.file, Layers(environ={}))
        self._versions = itertools.count(1)

    def says(self, method, params):
        self.recorder.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def open(self, text, uri=URI, language="python"):
        self.says("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": 0, "text": text}})

    def types(self, *edits, uri=URI):
        """Each edit is (line, character, end line, end character, text), or a whole new text."""
        changes = [
            {"text": edit}
            if isinstance(edit, str)
            else {
                "range": {"start": {"line": edit[0], "character": edit[1]}, "end": {"line": edit[2], "character": edit[3]}},
                "text": edit[4],
            }
            for edit in edits
        ]
        self.says("textDocument/didChange", {"textDocument": {"uri": uri, "version": next(self._versions)}, "contentChanges": changes})

    def saved(self):
        self.recorder.save()
        return json.loads(self.path.read_bytes())


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path / "typing.json")


def test_edits_become_offsets_of_characters(scene):
    scene.open("ä = 1\n\U0001f600 = 2\n")
    scene.types((1, 2, 1, 2, "x"))  # behind a character of two units
    scene.types((0, 0, 1, 0, ""))
    saved = scene.saved()
    assert (saved["startContent"], saved["endContent"], saved["language"]) == ("ä = 1\n\U0001f600 = 2\n", "\U0001f600x = 2\n", "python")
    assert [txn["patches"] for txn in saved["txns"]] == [[[7, 0, "x"]], [[0, 6, ""]]]


def test_what_is_recorded_can_be_replayed(scene):
    scene.open("a\r\nb\r\n")
    scene.types((1, 1, 1, 1, "c"), (1, 2, 1, 2, "\r\nd"))
    scene.types((0, 0, 2, 1, "\U0001f600"))
    scene.types("e\r\nf")
    scene.recorder.save()
    trace = load(scene.path)
    assert trace.start == "a\nb\n"
    assert trace.language == "python"
    assert [len(key.patches) for key in trace.keys] == [2, 1, 1]


def test_times_have_milliseconds(scene):
    scene.open("")
    scene.types((0, 0, 0, 0, "a"))
    time = scene.saved()["txns"][0]["time"]
    assert time.endswith("Z")
    assert len(time) == len("2026-01-02T03:04:05.678Z")


def test_a_whole_new_text_is_recorded_as_what_changed(scene):
    scene.open("one two three")
    scene.types("one four three")
    scene.types("one four three")
    assert [txn["patches"] for txn in scene.saved()["txns"]] == [[[4, 3, "four"]]]


def test_the_server_gets_every_message_as_it_came(scene):
    bodies = [
        b"nonsense",
        b"[]",
        b'{"method": 1}',
        b'{"jsonrpc":"2.0","method":"initialize","params":null}',
        b'{"result":[1],"id":"x"}',
        b"\xff",
    ]
    for body in bodies:
        scene.recorder.receive(body)
    assert scene.server.bodies == bodies


def test_the_document_edited_most_is_the_one_written(scene):
    for name, n_edits in (("a", 1), ("b", 3), ("c", 2)):
        uri = f"file:///w/{name}.py"
        scene.open(name, uri)
        for _ in range(n_edits):
            scene.types((0, 0, 0, 0, "x"), uri=uri)
    assert scene.saved()["startContent"] == "b"


def test_a_closed_document_is_remembered(scene):
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.types((0, 0, 0, 0, "y"))
    scene.says("textDocument/didClose", {"textDocument": {"uri": URI}})
    scene.open("other", "file:///w/b.py")
    scene.types((0, 0, 0, 0, "z"), uri="file:///w/b.py")
    assert scene.saved()["endContent"] == "yxa"


@pytest.mark.parametrize("uri", ["file:///w/.env", "file:///w/id_rsa", "output:something"])
def test_nothing_is_recorded_of_what_is_not_served(scene, uri):
    scene.open("KEY=", uri)
    scene.types((0, 4, 0, 4, "secret"), uri=uri)
    scene.recorder.save()
    assert not scene.path.exists()


@pytest.mark.parametrize("how", ["folders", "root", "added"])
def test_patterns_are_relative_to_the_workspace(scene, how):
    mine = {"completion": {"disabledGlobs": ["/private/**"]}}
    told = {"folders": {"workspaceFolders": [{"uri": "file:///w", "name": "w"}]}, "root": {"rootUri": "file:///w"}, "added": {}}[how]
    scene.says("initialize", {"capabilities": {}, "initializationOptions": mine} | told)
    if how == "added":
        scene.says("workspace/didChangeWorkspaceFolders", {"event": {"added": [{"uri": "file:///w", "name": "w"}], "removed": []}})
    scene.open("a", "file:///w/private/a.py")
    scene.types((0, 0, 0, 0, "x"), uri="file:///w/private/a.py")
    scene.recorder.save()
    assert not scene.path.exists()


@pytest.mark.parametrize("how", ["initialize", "pushed", "pulled"])
def test_settings_of_the_editor_forbid_too(scene, how):
    mine = {"privacy": {"secretFiles": ["a.py"]}}
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    if how == "initialize":
        scene.says("initialize", {"capabilities": {}, "initializationOptions": mine})
    elif how == "pushed":
        scene.says("workspace/didChangeConfiguration", {"settings": {"monkeycode": mine}})
    else:
        scene.recorder.receive(json.dumps({"jsonrpc": "2.0", "id": "1", "result": [mine]}).encode())
    scene.recorder.save()
    assert not scene.path.exists()


WITH_PYTHON = {"settings": {"monkeycode": {"completion": {"disabledLanguages": []}}}}
WITHOUT_PYTHON = {"settings": {"monkeycode": {"completion": {"disabledLanguages": ["python"]}}}}


def test_switching_completion_off_takes_nothing_back(scene):
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.says("workspace/didChangeConfiguration", {"settings": {"monkeycode": {"enabled": False, "engine": "off"}}})
    assert scene.saved()["endContent"] == "xa"


def test_a_document_that_becomes_allowed_is_recorded_from_then_on(scene):
    scene.says("workspace/didChangeConfiguration", WITHOUT_PYTHON)
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.says("workspace/didChangeConfiguration", WITH_PYTHON)
    scene.types((0, 0, 0, 0, "y"))
    saved = scene.saved()
    assert (saved["startContent"], saved["endContent"], len(saved["txns"])) == ("xa", "yxa", 1)


def test_what_was_recorded_before_a_document_was_forbidden_is_forgotten(scene):
    scene.open("a")
    scene.types((0, 0, 0, 0, "secret"))
    scene.recorder.save()
    for settings, text in ((WITHOUT_PYTHON, "x"), (WITH_PYTHON, "y")):
        scene.says("workspace/didChangeConfiguration", settings)
        scene.types((0, 0, 0, 6, text) if text == "x" else (0, 0, 0, 0, text))
    saved = scene.saved()
    assert (saved["startContent"], len(saved["txns"])) == ("xa", 1)
    assert "secret" not in scene.path.read_text()


FORBIDDEN = {"privacy": {"secretFiles": ["a.py"]}}


def push(scene, mine):
    scene.says("workspace/didChangeConfiguration", {"settings": {"monkeycode": mine}})


@pytest.mark.parametrize("is_closed", [False, True])
def test_what_is_forbidden_later_is_taken_back_at_once(scene, is_closed):
    scene.open("KEY=")
    scene.types((0, 4, 0, 4, "secret"))
    if is_closed:
        scene.says("textDocument/didClose", {"textDocument": {"uri": URI}})
    scene.recorder.save()
    assert scene.path.exists()
    push(scene, FORBIDDEN)
    assert list(scene.path.parent.iterdir()) == []
    scene.recorder.save()
    assert list(scene.path.parent.iterdir()) == []


def test_a_document_that_closes_while_it_is_forbidden_leaves_nothing(scene):
    scene.open("KEY=")
    scene.types((0, 4, 0, 4, "secret"))
    scene.recorder.save()
    scene.types((0, 0, 0, 0, "\0" * 2000))  # a binary file
    scene.says("textDocument/didClose", {"textDocument": {"uri": URI}})
    scene.recorder.save()
    assert not scene.path.exists()


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_longest_recording_that_is_allowed_takes_its_place(scene, is_closed):
    for uri, n_edits in (("file:///w/b.py", 2), ("file:///w/c.py", 1), (URI, 3)):
        scene.open(uri, uri)
        for _ in range(n_edits):
            scene.types((0, 0, 0, 0, "x"), uri=uri)
        if is_closed and uri != URI:
            scene.says("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert scene.saved()["startContent"] == URI
    push(scene, FORBIDDEN)
    assert scene.saved()["startContent"] == "file:///w/b.py"


def test_a_file_that_came_where_the_recording_was_is_kept(scene):
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.recorder.save()
    push(scene, FORBIDDEN)
    scene.path.write_text("mine")
    push(scene, {})
    scene.types((0, 0, 0, 0, "y"))
    scene.recorder.save()
    assert scene.path.read_text() == "mine"
    assert json.loads((scene.path.parent / "typing-2.json").read_bytes())["endContent"] == "yxa"


class SlowFile(RecordingFile):
    """Takes as long to be written as the test wants."""

    def __init__(self, path):
        super().__init__(path)
        self.begun, self.go = threading.Event(), threading.Event()

    def save(self, recording):
        self.begun.set()
        assert self.go.wait(20)
        super().save(recording)


async def test_what_is_forbidden_while_it_is_written_is_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SAVE_EVERY_S", 0.0)
    scene = Scene(tmp_path / "typing.json", SlowFile)
    over = asyncio.Event()
    scene.open("KEY=")
    scene.types((0, 4, 0, 4, "secret"))
    saving = asyncio.create_task(scene.recorder.save_regularly(over))
    await asyncio.to_thread(scene.file.begun.wait, 20)
    push(scene, FORBIDDEN)
    over.set()
    scene.file.go.set()
    await saving
    assert list(tmp_path.iterdir()) == []


async def test_the_last_write_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SAVE_EVERY_S", 0.0)
    scene = Scene(tmp_path / "typing.json", SlowFile)
    over = asyncio.Event()
    scene.open("")
    scene.types((0, 0, 0, 0, "a"))
    saving = asyncio.create_task(scene.recorder.save_regularly(over))
    await asyncio.to_thread(scene.file.begun.wait, 20)
    scene.types((0, 1, 0, 1, "b"))
    over.set()
    await asyncio.sleep(0)
    assert not saving.done()
    scene.file.go.set()
    await saving
    assert scene.saved()["endContent"] == "ab"


class HeldFile(RecordingFile):
    """Cannot be removed as long as something holds it."""

    is_held = True

    def remove(self):
        if self.is_held:
            raise PermissionError(errno.EACCES, "it is held")
        super().remove()


def test_what_cannot_be_removed_is_told_and_tried_again(tmp_path, caplog):
    scene = Scene(tmp_path / "typing.json", HeldFile)
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.recorder.save()
    push(scene, FORBIDDEN)
    assert "could not be removed: it is held" in caplog.text
    scene.file.is_held = False
    scene.recorder.save()
    assert not scene.path.exists()


def test_an_edit_that_cannot_be_understood_ends_the_documents_recording(scene):
    scene.open("a")
    scene.types((0, 0, 0, 0, "x"))
    scene.says("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": None}]})
    scene.types((0, 0, 0, 0, "y"))
    assert scene.saved()["endContent"] == "xa"


def test_positions_count_what_was_agreed_on(scene):
    scene.says("initialize", {"capabilities": {"general": {"positionEncodings": ["utf-7", "utf-8", "utf-16"]}}})
    scene.open("ä1")
    scene.types((0, 2, 0, 3, ""))
    assert scene.saved()["endContent"] == "ä"


def test_a_recording_that_is_long_enough_stays_as_it_is(scene, monkeypatch):
    monkeypatch.setattr(record, "MOST_EDITS", 2)
    scene.open("")
    for text in "abc":
        scene.types((0, 0, 0, 0, text))
    saved = scene.saved()
    assert (len(saved["txns"]), saved["endContent"]) == (2, "ba")


# The file

A_RECORDING = Recording("", "a", "python", (Transaction("2026-01-02T03:04:05.678Z", (Patch(0, 0, "a"),)),))


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are those of Unix")
def test_only_the_user_can_read_it(tmp_path):
    file = RecordingFile(tmp_path / "a.json")
    file.save(A_RECORDING)
    file.save(A_RECORDING)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file.path]


def test_an_older_recording_is_kept(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(b"old")
    for name in ("a-2.json.gz", "a-3.json.gz"):
        file = RecordingFile(tmp_path / "a.json.gz")
        file.save(A_RECORDING)
        assert file.path.name == name
        assert json.loads(gzip.decompress(file.path.read_bytes()))["endContent"] == "a"
    assert (tmp_path / "a.json.gz").read_bytes() == b"old"


def test_where_nothing_can_be_written_it_says_so_at_once(tmp_path):
    with pytest.raises(MonkeyCodeError, match="Nothing can be written to"):
        RecordingFile(tmp_path / "none" / "a.json")
    with pytest.raises(MonkeyCodeError, match="it is a folder"):
        RecordingFile(tmp_path)


def test_a_write_that_fails_leaves_the_last_one_and_the_next_is_tried(scene, caplog):
    scene.open("")
    scene.types((0, 0, 0, 0, "a"))
    scene.recorder.save()
    before = scene.path.read_bytes()
    away = scene.path.parent.with_name("away")
    scene.path.parent.rename(away)
    scene.types((0, 1, 0, 1, "b"))
    scene.recorder.save()
    assert "could not be saved" in caplog.text
    away.rename(scene.path.parent)
    assert scene.path.read_bytes() == before
    assert scene.saved()["endContent"] == "ab"
