from __future__ import annotations

import json

import pytest

from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import catalogue, receipt, resolve
from monkeycode_lsp.models.sources.local_files import Places
from tests.unit.models import samples

Q05 = catalogue.find("0.5b")
Q15 = catalogue.find("1.5b")
Q7 = catalogue.find("7b")


def never():
    raise AssertionError("nobody needs to look at the hardware")


def put(path, content=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(samples.gguf() if content is None else content)
    return path


def check(setting, folder, places=None, recommended=never):
    return resolve.resolve(setting, folder=folder, places=places or Places(), recommended=recommended)


def test_empty_means_the_one_model_that_is_here(tmp_path):
    path = put(tmp_path / Q15.file)
    assert check("", tmp_path) == path
    assert check("  ", tmp_path) == path


def test_of_several_the_recommended_one_is_taken(tmp_path):
    paths = {entry.id: put(tmp_path / entry.file) for entry in (Q05, Q15, Q7)}
    assert check("", tmp_path, recommended=lambda: Q15) == paths[Q15.id]


@pytest.mark.parametrize(("here", "wish", "taken"), [((Q05, Q7), Q15, Q05), ((Q05, Q15), Q7, Q15), ((Q15, Q7), Q05, Q15)])
def test_without_the_recommended_one_the_largest_that_runs_well_is_taken(tmp_path, here, wish, taken):
    for entry in here:
        put(tmp_path / entry.file)
    assert check("", tmp_path, recommended=lambda: wish) == tmp_path / taken.file


def test_with_nothing_here_the_remedy_is_a_command(tmp_path):
    with pytest.raises(ModelError, match=r"No model is here yet: the setting local\.model is empty") as caught:
        check("", tmp_path)
    assert caught.value.remedy == "Run `monkeycode model pull`."


def test_another_programs_copy_is_found_when_ours_is_empty(tmp_path):
    theirs = put(tmp_path / "theirs" / Q7.file)
    theirs_size = Places(folders=(theirs.parent,))
    with pytest.raises(ModelError):  # a file of that name and another size is not it
        check("", tmp_path / "ours", theirs_size)
    unknown_size = catalogue.find("7b q8")
    path = put(tmp_path / "theirs" / unknown_size.file)
    assert check("", tmp_path / "ours", theirs_size) == path
    assert check("7b-q8_0", tmp_path / "ours", theirs_size) == path


@pytest.mark.parametrize("name", ["0.5b", Q05.id, "qwen2.5-coder:0.5b", Q05.file])
def test_a_catalogue_name_means_its_file(tmp_path, name):
    path = put(tmp_path / Q05.file)
    assert check(name, tmp_path) == path


def test_a_known_model_that_is_not_here_has_its_pull_command(tmp_path):
    with pytest.raises(ModelError, match=rf"local\.model names 1\.5b, and {Q15.file} is not on this machine") as caught:
        check("1.5b", tmp_path)
    assert caught.value.remedy == f"Run `monkeycode model pull {Q15.id}`."


def test_an_unknown_name_is_said(tmp_path):
    with pytest.raises(ModelError, match=r"local\.model names gpt-9, which is neither a file nor a model that we know"):
        check("gpt-9", tmp_path)


def test_an_ollama_tag_comes_before_the_catalogue(tmp_path):
    ollama = tmp_path / "ollama"
    blob = put(ollama / "blobs" / "sha256-abc")
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc"}]
    for name in ("qwen2.5-coder", "starcoder2"):
        put(ollama / "manifests/registry.ollama.ai/library" / name / "3b", json.dumps({"layers": layers}).encode())
    put(ollama / "manifests/registry.ollama.ai/library/mine/latest", json.dumps({"layers": layers}).encode())
    where = Places(ollama=(ollama,))
    assert check("qwen2.5-coder:3b", tmp_path / "ours", where) == blob
    assert check("starcoder2:3b", tmp_path / "ours", where) == blob
    assert check("mine", tmp_path / "ours", where) == blob


def test_a_path_is_taken_as_it_is(tmp_path, monkeypatch):
    path = put(tmp_path / "somewhere" / "my.gguf")
    assert check(str(path), tmp_path / "ours") == path
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert check("~/somewhere/my.gguf", tmp_path / "ours") == path


def test_a_bare_file_name_is_looked_for_in_our_folder(tmp_path):
    path = put(tmp_path / "my.gguf")
    assert check("my.gguf", tmp_path) == path


@pytest.mark.parametrize("name", ["/nowhere/model.gguf", "./model.gguf", "C:\\models\\model.gguf"])
def test_a_path_without_a_file_names_setting_and_file(tmp_path, name):
    with pytest.raises(ModelError) as caught:
        check(name, tmp_path)
    assert f"local.model names {name}, and there is no such file" in caught.value.message
    assert "monkeycode model pull" in caught.value.remedy


def test_a_name_that_is_no_setting_is_called_what_it_is(tmp_path):
    put(tmp_path / "broken.gguf", b"text")
    for name in ("none.gguf", str(tmp_path / "none.gguf"), "1.5b", "broken.gguf"):
        with pytest.raises(ModelError, match=r"SOURCE (names|is)") as caught:
            resolve.resolve(name, folder=tmp_path, places=Places(), called="SOURCE")
        assert resolve.SETTING not in caught.value.message


def test_a_folder_and_a_broken_file_name_the_setting_too(tmp_path):
    with pytest.raises(ModelError, match=r"is a folder, not a model file\. The setting local\.model is"):
        check(str(tmp_path), tmp_path)
    broken = put(tmp_path / "broken.gguf", b"<html>")
    with pytest.raises(ModelError, match=rf"{broken} is not a GGUF model: .* The setting local\.model is broken\.gguf"):
        check("broken.gguf", tmp_path)


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-this-name/model.gguf", "a\0b"])
def test_names_that_no_system_allows_are_only_errors(tmp_path, name):
    with pytest.raises(ModelError, match=r"local\.model"):
        check(name, tmp_path)


def test_installed_lists_ours_in_catalogue_order_then_the_others(tmp_path):
    put(tmp_path / "aaa.gguf")
    put(tmp_path / Q15.file)
    put(tmp_path / Q05.file)
    theirs = put(tmp_path / "theirs" / "blob")
    receipt.write(tmp_path, Q7.file, theirs, Q7.sha256)
    found = resolve.installed(tmp_path)
    assert [model.name for model in found] == [Q05.id, Q15.id, Q7.id, "aaa.gguf"]
    assert [model.in_place for model in found] == [False, False, True, False]
    assert [model.checked for model in found] == [False, False, True, False]
    assert found[2].path == theirs
    assert check("7b", tmp_path) == theirs
    theirs.unlink()
    assert Q7.id not in {model.name for model in resolve.installed(tmp_path)}


def test_verify_finds_a_file_that_is_not_what_its_name_says(tmp_path):
    put(tmp_path / Q05.file)
    receipt.write(tmp_path, Q05.file, tmp_path / Q05.file, Q05.sha256)
    heard = []
    verdict = resolve.verify("0.5b", folder=tmp_path, progress=lambda *numbers: heard.append(numbers))
    assert not verdict.ok
    assert f"monkeycode model pull {Q05.id}" in verdict.message
    assert heard[-1] == (len(samples.gguf()),) * 2
    assert receipt.read(tmp_path, Q05.file) is None


def test_verify_says_when_no_hash_is_known(tmp_path):
    verdict = resolve.verify(put(tmp_path / "mine.gguf"), folder=tmp_path)
    assert verdict.ok
    assert "no published hash" in verdict.message


def test_verify_refuses_what_is_no_model(tmp_path):
    with pytest.raises(ModelError, match="is not a GGUF model"):
        resolve.verify(put(tmp_path / "mine.gguf", b"junk"), folder=tmp_path)


def test_remove_takes_the_file_its_parts_and_its_receipt(tmp_path):
    put(tmp_path / Q05.file)
    put(tmp_path / f"{Q05.file}.part", b"123")
    receipt.write(tmp_path, Q05.file, tmp_path / Q05.file, Q05.sha256)
    other = put(tmp_path / Q15.file)
    removed = resolve.remove("0.5b", folder=tmp_path)
    assert removed.bytes == len(samples.gguf()) + 3
    assert set(removed.paths) == {tmp_path / Q05.file, tmp_path / f"{Q05.file}.part"}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [other]


def test_remove_leaves_another_programs_file(tmp_path):
    theirs = put(tmp_path / "theirs" / "blob")
    receipt.write(tmp_path / "ours", Q05.file, theirs, Q05.sha256)
    removed = resolve.remove("0.5b", folder=tmp_path / "ours")
    assert removed.left == theirs
    assert theirs.exists()
    assert resolve.installed(tmp_path / "ours") == ()


def test_remove_takes_a_file_name_exactly_and_never_leaves_the_folder(tmp_path):
    outside = put(tmp_path / "qwen.gguf")
    inside = put(tmp_path / "ours" / "qwen.gguf")
    put(tmp_path / "ours" / Q05.file)
    assert resolve.remove("qwen.gguf", folder=tmp_path / "ours").paths == (inside,)
    with pytest.raises(ModelError, match=r"No model called \.\./qwen\.gguf"):
        resolve.remove("../qwen.gguf", folder=tmp_path / "ours")
    assert outside.exists()
    with pytest.raises(ModelError, match=r"No model called 1\.5b"):
        resolve.remove("1.5b", folder=tmp_path / "ours")
