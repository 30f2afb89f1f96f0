"""Which API a server speaks, where the settings leave that open: asked once, by routes that cost it nothing."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects import by_name
from monkeycode_lsp.engines.remote.dialects.base import Dialect, Fetch


class _Card(msgspec.Struct):
    owned_by: str = ""


class _Cards(msgspec.Struct):
    data: list[_Card] = []


_BY_OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama-server", "library": "ollama"}


async def find(fetch: Fetch, address: Address) -> Dialect:
    """The dialect of the server at `address`; the common one where nothing tells.  Raises an `EngineError` if it is not there."""
    body = await fetch("/v1/models", None)
    try:
        cards = msgspec.json.decode(body, type=_Cards).data if body else []
    except msgspec.DecodeError:
        cards = []
    return by_name(next((_BY_OWNER[card.owned_by] for card in cards if card.owned_by in _BY_OWNER), "openai"))
