from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_home(model_path, tmp_path, monkeypatch):
    """The model is the user's; what the engine writes beside it is not."""
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "home"))
