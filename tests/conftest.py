"""Fixtures that every test may use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.models import catalogue, pull

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    """The first test that needs the model also waits for its download."""
    for item in items:
        if "model_path" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(1_200))


@cache
def _default_model() -> Path | str:
    """The default model's file, or why there is none."""
    given = os.environ.get("MONKEYCODE_TEST_MODEL", "")
    if given:
        return Path(given)
    try:
        return pull.pull(catalogue.default(), progress=lambda stage, done, total: None)
    except MonkeyCodeError as exc:
        return f"the default model could not be had: {exc}"


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The default model's GGUF file; pulled once by the product's own code, or the test is skipped with the reason."""
    found = _default_model()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, request):
    """A home of its own for whatever a test makes the product write; model tests keep the user's model folder."""
    if "model_path" not in request.fixturenames:
        monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
