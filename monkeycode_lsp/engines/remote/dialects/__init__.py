"""What each kind of server speaks: one small module per API.  All pure but for `identify`, which is handed a way to ask."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects import deepseek, mistral
from monkeycode_lsp.engines.remote.dialects.base import Dialect
from monkeycode_lsp.engines.remote.dialects.chat import Chat
from monkeycode_lsp.engines.remote.dialects.deepseek import DeepSeek
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.engines.remote.dialects.mistral import Mistral
from monkeycode_lsp.engines.remote.dialects.ollama import Ollama
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI
from monkeycode_lsp.engines.remote.dialects.sglang import SGLang
from monkeycode_lsp.engines.remote.dialects.tensorrt_llm import TensorRT
from monkeycode_lsp.engines.remote.dialects.vllm import VLLM

_HOSTS = dict.fromkeys(mistral.HOSTS, "mistral") | dict.fromkeys(deepseek.HOSTS, "deepseek")
"""Those that are of one kind only and need not be asked which."""


def by_name(api: str) -> Dialect:
    """The one that a word of the setting `api` means."""
    dialects: tuple[Dialect, ...] = (OpenAI(), VLLM(), SGLang(), TensorRT(), LlamaServer(), Ollama(), Mistral(), DeepSeek(), Chat())
    return next(dialect for dialect in dialects if dialect.name in (api, "chat"))


def choose(endpoint: config.Endpoint, address: Address) -> Dialect | None:
    """By the setting, else by the address; None: only the server itself can tell."""
    api = _HOSTS.get(address.host, address.api) if endpoint.api == "auto" else endpoint.api
    return by_name(api) if api else None
