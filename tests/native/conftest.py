from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp", reason="needs the native engine: pip install 'monkeycode-lsp[local]'")


@pytest.fixture(autouse=True)
def own_home(model_path, tmp_path, monkeypatch):
    """The model is the user's; what the engine writes beside it is not."""
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "home"))
