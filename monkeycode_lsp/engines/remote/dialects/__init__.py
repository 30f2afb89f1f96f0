"""What each kind of server speaks: one small module per API.  All pure but for `identify`, which is handed a way to ask."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects.base import Dialect
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI
from monkeycode_lsp.errors import EngineUnavailableError

_OLLAMA_PORT = ":11434"
_COMMON = frozenset({"auto", "openai", "vllm", "sglang", "tensorrt-llm"})
"""Servers that are asked by `/v1/completions`."""


def choose(endpoint: config.Endpoint, address: Address) -> Dialect:
    """By the setting, else by the address.  Raises `EngineUnavailableError` for an API that we do not speak yet."""
    if endpoint.api == "llama-server" or (endpoint.api == "auto" and address.llama_server):
        return LlamaServer()
    if endpoint.api == "ollama":
        return OpenAI(wraps="yes")
    if endpoint.api == "auto" and (address.base.endswith(_OLLAMA_PORT) or ":" in endpoint.model):
        return OpenAI(wraps="ask")
    if endpoint.api not in _COMMON:
        raise EngineUnavailableError(
            f"The API {endpoint.api} (setting remote.endpoints[].api) is not spoken yet.",
            remedy="Use a server with an OpenAI-compatible /v1/completions (api openai) or a llama-server (api llama-server).",
        )
    return OpenAI()
