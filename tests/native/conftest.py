from __future__ import annotations

import pytest

from monkeycode_lsp.engines.local.decoder import Options


@pytest.fixture(autouse=True)
def own_home(model_path, tmp_path, monkeypatch):
    """The model is the user's; what the engine writes beside it is not."""
    monkeypatch.setenv("MONKEYCODE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def llama(model_path):
    """The model with four KV caches."""
    build = pytest.importorskip("monkeycode_lsp.engines.local.llama.build", reason="needs the native engine")
    context = pytest.importorskip("monkeycode_lsp.engines.local.llama.context", reason="needs the native engine")
    build.LOG.install()
    llama = context.Llama(Options(model=model_path, context_tokens=1024, slots=4, threads=1))
    yield llama
    llama.close()


@pytest.fixture
def runtime(llama):
    """The same, holding nothing."""
    for sequence in range(llama.n_sequences):
        llama.keep(sequence, 0)
    return llama
