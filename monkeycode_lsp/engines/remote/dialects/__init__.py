"""What each kind of server speaks: one small module per API.  All pure but for `identify`, which is handed a way to ask."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects.base import Dialect
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI


def choose(endpoint: config.Endpoint, address: Address) -> Dialect:
    """By the setting, else by the address.  Servers whose own API we do not speak are asked by the common one."""
    if endpoint.api == "llama-server" or (endpoint.api == "auto" and address.llama_server):
        return LlamaServer()
    return OpenAI()
