"""`monkeycode doctor`'s look at an endpoint, with a real llama-server and the real model behind it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.engines.local.host import control, registry
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.engines.local.managed.engine import ManagedEngine
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.examination import examining
from monkeycode_lsp.engines.remote.stream.reading import Limits

pytestmark = [
    pytest.mark.model,
    pytest.mark.managed,
    pytest.mark.skipif(not managed_library.has_package(), reason="xllamacpp is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals"),
]

PATIENCE_S = 120.0
"""A busy machine reads a thousand tokens slowly."""


@pytest.fixture
async def serving(model_path):
    """A server of its own: where it is, and its key."""
    settings = config.Local(context_tokens=2048, slots=1, linger_seconds=0)
    made = ManagedEngine(settings=settings, model=model_path, notify=print, pauses_s=(0.0,))
    try:
        await made.ready()
        yield made._tenant.running.link.serving
    finally:
        await made.aclose()
        await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))


async def examined(serving, **settings):
    endpoint = Endpoint(
        config.Endpoint(url=serving.url, api_key=serving.key, **settings),
        limits=Limits(first_s=PATIENCE_S, stall_s=PATIENCE_S),
        notify=print,
        environ={},
        proved=proofs.unproved,
    )
    try:
        return await examining.examine(endpoint, template="auto", within_s=PATIENCE_S)
    finally:
        await endpoint.aclose()


@pytest.mark.parametrize(("api", "model"), [("auto", ""), ("openai", "qwen2.5-coder")])
async def test_qwen_fills_every_hole_in_its_own_order(serving, model_path, api, model):
    found = await examined(serving, api=api, model=model)
    assert found.error is None
    told_by = "name" if prompt.by_name(model or model_path.name) else "server"  # a file may be called anything
    assert (found.api, found.family.name, found.family_from) == ("llama-server" if api == "auto" else api, "qwen2.5-coder", told_by)
    assert [(attempt.form, attempt.score) for attempt in found.filling.attempts] == [("psm", 1.0)]
    assert (found.proof.order, found.asked_as) == ("psm", found.family)
    assert found.stops == "many"
    assert found.pace.delivery == "stream"
    assert found.pace.reuses
    if api == "auto":
        assert 800 < found.pace.prompt_tokens < 1_400
        assert found.pace.reused_tokens > 500
        assert found.context_tokens == 2048


async def test_qwen_knows_no_other_familys_markers(serving):
    found = await examined(serving, api="openai", model="starcoder2")
    assert not found.filling.fills
    assert found.filling.order is None
    assert found.proof.order is None
