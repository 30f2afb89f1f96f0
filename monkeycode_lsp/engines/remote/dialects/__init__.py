"""What each kind of server speaks: one small module per API.  All pure but for `identify`, which is handed a way to ask."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects.base import Dialect
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI


def by_name(api: str) -> Dialect:
    """The one that a word of the setting `api` means."""
    return LlamaServer() if api == "llama-server" else OpenAI()


def choose(endpoint: config.Endpoint, address: Address) -> Dialect | None:
    """By the setting, else by the address; None: only the server itself can tell."""
    if endpoint.api != "auto":
        return by_name(endpoint.api)
    return LlamaServer() if address.llama_server else None
