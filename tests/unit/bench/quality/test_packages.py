"""The packages of the cross-file tasks."""

from __future__ import annotations

import hashlib
import zipfile

import pytest

from monkeycode_lsp.bench.quality import packages
from monkeycode_lsp.errors import MonkeyCodeError


def wheel(folder, metadata="License-Expression: MIT\n", name="some_package-1.0-py3-none-any.whl", files=()):
    path = folder / name
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("some_package-1.0.dist-info/METADATA", f"Name: some-package\n{metadata}\nText\n")
        for file, text in ({"some/b.py": "b = 1\n", "some/a.py": "a = 1\n", "some/data.txt": "x"} | dict(files)).items():
            made.writestr(file, text)
    return path


def pinned(folder, path):
    pins = folder / "pins.txt"
    pins.write_text(f"some-package==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    return pins


def test_each_package_is_one_version_with_one_hash():
    pins = packages.pins(packages.PINS.read_text(encoding="utf-8"))
    assert 8 <= len(pins) <= 12
    assert len({pin.name for pin in pins}) == len(pins)
    assert all(line.startswith("#") or "==" in line for line in packages.PINS.read_text(encoding="utf-8").splitlines())
    assert pins[0].file.endswith("-py3-none-any.whl")


def test_what_is_there_and_right_is_not_fetched_again(tmp_path):
    said = []
    packages.fetch(tmp_path, say=said.append, pins_file=pinned(tmp_path, wheel(tmp_path)))
    assert said == []


def test_a_file_that_cannot_be_fetched_is_told_with_what_else_can_be_done(tmp_path, monkeypatch):
    pins = pinned(tmp_path, wheel(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MonkeyCodeError, match="pip could not get the packages") as caught:
        packages.fetch(tmp_path / "cache", say=lambda _words: None, pins_file=pins)
    assert "--only gold,infilling,multiline" in caught.value.remedy


@pytest.mark.parametrize(
    "metadata",
    [
        "License: MIT\n",
        "License-Expression: Apache-2.0\n",
        "License-Expression: BSD-3-Clause\n",
        "Classifier: License :: OSI Approved :: MIT License\n",
        "Classifier: Programming Language :: Python\nClassifier: License :: OSI Approved :: Apache Software License\n",
    ],
)
def test_permissive_licences_are_taken(tmp_path, metadata):
    packages.check_licence(wheel(tmp_path, metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "License: GPL-3.0\n",
        "License-Expression: MIT AND GPL-3.0-only\n",
        "Classifier: License :: OSI Approved :: GNU Affero GPL\n",
        "License: MITRE\n",
    ],
)
def test_others_are_refused(tmp_path, metadata):
    with pytest.raises(MonkeyCodeError, match="permissive"):
        packages.check_licence(wheel(tmp_path, metadata))


def test_only_python_files_are_unpacked_and_none_outside(tmp_path):
    path = wheel(tmp_path, files={"../evil.py": "x", "some/deep/c.py": "c"}.items())
    assert packages.unpack(path, tmp_path / "to") == ["some/a.py", "some/b.py", "some/deep/c.py"]
    assert not (tmp_path / "evil.py").exists()
    assert not (tmp_path / "to" / "some" / "data.txt").exists()
