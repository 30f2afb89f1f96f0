from __future__ import annotations

import json
from pathlib import Path

import pytest

from monkeycode_lsp.models.sources import local_files
from monkeycode_lsp.models.sources.local_files import Places
from tests.unit.models import samples

ENTRY = samples.entry()
HOME = Path("/home/me")


@pytest.mark.parametrize(
    ("environ", "system", "places"),
    [
        (
            {},
            "linux",
            Places(
                ollama=(HOME / ".ollama/models", Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama/models")),
                hub_caches=(HOME / ".cache/huggingface/hub",),
                folders=(HOME / ".lmstudio/models", HOME / ".cache/lm-studio/models", HOME / ".cache/llama.cpp"),
            ),
        ),
        (
            {},
            "darwin",
            Places(
                ollama=(HOME / ".ollama/models",),
                hub_caches=(HOME / ".cache/huggingface/hub",),
                folders=(HOME / ".lmstudio/models", HOME / ".cache/lm-studio/models", HOME / "Library/Caches/llama.cpp"),
            ),
        ),
        (
            {"LOCALAPPDATA": "/local"},
            "win32",
            Places(
                ollama=(HOME / ".ollama/models",),
                hub_caches=(HOME / ".cache/huggingface/hub",),
                folders=(HOME / ".lmstudio/models", HOME / ".cache/lm-studio/models", Path("/local/llama.cpp")),
            ),
        ),
        (
            {"OLLAMA_MODELS": "/o", "HF_HOME": "/hf", "LLAMA_CACHE": "/l", "XDG_CACHE_HOME": "/x"},
            "darwin",
            Places(
                ollama=(Path("/o"), HOME / ".ollama/models"),
                hub_caches=(Path("/hf/hub"),),
                folders=(HOME / ".lmstudio/models", HOME / ".cache/lm-studio/models", Path("/l")),
            ),
        ),
        (
            {"HF_HUB_CACHE": "/cache", "HF_HOME": "/hf", "XDG_CACHE_HOME": "/x", "OLLAMA_MODELS": " "},
            "linux",
            Places(
                ollama=(HOME / ".ollama/models", Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama/models")),
                hub_caches=(Path("/cache"),),
                folders=(HOME / ".lmstudio/models", HOME / ".cache/lm-studio/models", Path("/x/llama.cpp")),
            ),
        ),
    ],
)
def test_the_folders_of_other_programs_are_known_on_each_system(environ, system, places):
    assert local_files.places(environ, home=HOME, system=system) == places


def test_lm_studios_own_settings_are_followed(tmp_path):
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'moved'}\n")
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "settings.json").write_text(json.dumps({"downloadsFolder": "/big/disk", "other": 1}))
    folders = local_files.places({}, home=tmp_path, system="linux").folders
    assert folders[:2] == (Path("/big/disk"), tmp_path / "moved" / "models")


def test_broken_settings_of_other_programs_do_no_harm(tmp_path):
    (tmp_path / ".lmstudio-home-pointer").write_bytes(b"\xff\xfe")
    (tmp_path / ".lmstudio").mkdir()
    (tmp_path / ".lmstudio" / "settings.json").write_text("{")
    assert local_files.places({}, home=tmp_path, system="linux").folders[0] == tmp_path / ".lmstudio" / "models"


def put(path, content=samples.CONTENT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_likeliest_file_comes_first(tmp_path):
    where = Places(ollama=(tmp_path / "o",), hub_caches=(tmp_path / "h",), folders=(tmp_path / "f", tmp_path / "none"))
    other = put(tmp_path / "f" / "a.gguf")
    named = put(tmp_path / "f" / "publisher" / "repository" / f"Tiny_Tiny-Coder-GGUF_{ENTRY.file.upper()[:-5]}.gguf")
    snapshot = put(tmp_path / "h" / "models--Tiny--Tiny-Coder-GGUF" / "snapshots" / "main" / ENTRY.file)
    blob = put(tmp_path / "h" / "models--Tiny--Tiny-Coder-GGUF" / "blobs" / ENTRY.sha256)
    ollama = put(tmp_path / "o" / "blobs" / f"sha256-{ENTRY.sha256}")
    assert list(local_files.candidates(ENTRY, where)) == [ollama, blob, snapshot, named, other]


def test_files_of_another_size_are_never_read(tmp_path):
    put(tmp_path / ENTRY.file, b"short")
    (tmp_path / "folder.gguf").mkdir()
    assert list(local_files.candidates(ENTRY, Places(folders=(tmp_path,)))) == []


@pytest.mark.parametrize(
    ("tag", "manifest"),
    [
        ("qwen2.5-coder:1.5b", "registry.ollama.ai/library/qwen2.5-coder/1.5b"),
        ("qwen2.5-coder", "registry.ollama.ai/library/qwen2.5-coder/latest"),
        ("someone/model:q4", "registry.ollama.ai/someone/model/q4"),
        ("hf.co/owner/model:q8", "hf.co/owner/model/q8"),
    ],
)
def test_an_ollama_tag_leads_to_its_file(tmp_path, tag, manifest):
    blob = put(tmp_path / "blobs" / "sha256-abc")
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:tmpl", "size": 1},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc", "size": 2},
    ]
    put(tmp_path / "manifests" / manifest, json.dumps({"schemaVersion": 2, "layers": layers}).encode())
    assert local_files.ollama_model(tag, Places(ollama=(tmp_path / "empty", tmp_path))) == blob


@pytest.mark.parametrize("tag", ["nothing:here", "../../etc:passwd", "a:../../b", "", ":", "a//b"])
def test_a_tag_that_ollama_does_not_have_is_none(tmp_path, tag):
    assert local_files.ollama_model(tag, Places(ollama=(tmp_path,))) is None


def test_a_broken_manifest_is_passed_over(tmp_path):
    put(tmp_path / "manifests" / "registry.ollama.ai" / "library" / "m" / "latest", b"{not json")
    assert local_files.ollama_model("m", Places(ollama=(tmp_path,))) is None
