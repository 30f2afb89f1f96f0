"""`FILE:LINE:COL`."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from monkeycode_lsp.cli import indexes, place
from monkeycode_lsp.cli.place import Place
from monkeycode_lsp.errors import MonkeyCodeError


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "app.py"
    file.write_bytes("é = '🐒'\r\nend".encode())
    return file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py:1:2", Place(Path("a.py"), 1, 2)),
        ("a.py:12", Place(Path("a.py"), 12)),
        ("C:\\a.py:1:2", Place(Path("C:\\a.py"), 1, 2)),
        ("a:b.py:1:2", Place(Path("a:b.py"), 1, 2)),
    ],
)
def test_a_place_is_read_from_its_end(text, expected):
    assert place.parse(text) == expected


@pytest.mark.parametrize("text", ["a.py", "a.py:", "a.py:0:1", "a.py:1:0", "a.py:x:y", ":1", "a.py:" + "9" * 5000])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(click.BadParameter, match="FILE:LINE:COL"):
        place.parse(text)


def test_columns_count_characters_from_1(file):
    snapshot, n_nuls = place.snapshot(Place(file, 1, 7))
    assert snapshot.line_before == "é = '🐒"
    assert snapshot.line_after == "'"
    assert snapshot.language == "python"
    assert snapshot.eol == "\r\n"
    assert n_nuls == 0


def test_without_a_column_it_is_the_lines_end(file):
    assert place.snapshot(Place(file, 1))[0].line_before == "é = '🐒'"
    assert place.snapshot(Place(file, 2))[0].line_before == "end"


@pytest.mark.parametrize(("line", "column", "words"), [(3, 1, "has 2 lines"), (2, 5, "ends at column 4")])
def test_a_place_behind_the_end_is_an_error(file, line, column, words):
    with pytest.raises(MonkeyCodeError, match=words):
        place.snapshot(Place(file, line, column))


def test_a_missing_file_and_one_that_is_no_text_are_errors(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(MonkeyCodeError, match="cannot be read"):
        place.snapshot(Place(tmp_path / "none.py", 1, 1))
    with pytest.raises(MonkeyCodeError, match="cannot be read"):
        place.snapshot(Place(tmp_path, 1, 1))
    with pytest.raises(MonkeyCodeError, match="UTF-8"):
        place.snapshot(Place(tmp_path / "latin.txt", 1, 1))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file")
def test_a_file_without_end_is_an_error():
    with pytest.raises(MonkeyCodeError, match="too large"):
        place.snapshot(Place(Path("/dev/zero"), 1, 1))


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.py", "python"), ("A.TS", "typescript"), ("Dockerfile", "dockerfile"), ("x.unknown", "plaintext"), ("x", "plaintext")],
)
def test_the_language_follows_the_name(name, language):
    assert place.language(Path(name)) == language


def test_the_workspace_is_the_nearest_project(tmp_path):
    (tmp_path / "p" / "src").mkdir(parents=True)
    (tmp_path / "p" / "go.mod").touch()
    assert place.workspace(tmp_path / "p" / "src" / "main.go") == tmp_path / "p"


def test_of_nested_projects_the_one_that_an_editor_has_opened_is_the_workspace(tmp_path):
    inner = tmp_path / "p" / "packages" / "a"
    inner.mkdir(parents=True)
    for file in (tmp_path / "p" / "package.json", inner / "package.json", tmp_path / "package.json"):
        file.touch()
    assert place.workspace(inner / "a.ts") == inner
    for opened in (tmp_path, tmp_path / "p"):
        indexes.database(opened).parent.mkdir(parents=True, exist_ok=True)
        indexes.database(opened).touch()
    assert place.workspace(inner / "a.ts") == tmp_path / "p"


def test_settings_are_those_of_the_nearest_folder_that_has_some_or_is_a_repository(tmp_path):
    inner = tmp_path / "p" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "p" / "src" / "go.mod").touch()
    assert place.settings_folder(inner) == inner
    (tmp_path / "p" / ".monkeycode.toml").touch()
    assert place.settings_folder(inner) == tmp_path / "p"
    (tmp_path / "p" / "src" / ".git").mkdir()
    assert place.settings_folder(inner) == tmp_path / "p" / "src"
