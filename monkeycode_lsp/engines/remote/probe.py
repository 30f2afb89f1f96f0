"""Which API a server speaks, where the settings leave that open: asked once, by routes that cost it nothing.

Two round trips at most: the list of models, which nearly every server has and most sign, then side by side the pages
that only one kind of server has.
"""

from __future__ import annotations

import asyncio

import msgspec

from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects import by_name
from monkeycode_lsp.engines.remote.dialects.base import Dialect, Fetch
from monkeycode_lsp.engines.remote.dialects.openai import MODELS, cards
from monkeycode_lsp.errors import EngineError, EngineFaultError

_COMMON = "openai"
_COMMON_HOSTS = frozenset({"api.openai.com"})
"""Known without asking; a key can be good for completions and be refused the list."""
_BY_OWNER = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt-llm",
    "llamacpp": "llama-server",
    "library": "ollama",
    # Known to speak nothing better than the common form: OpenAI, llama-cpp-python's server, LM Studio, KoboldCpp, TabbyAPI.
    **dict.fromkeys(("openai", "openai-internal", "system", "me", "organization_owner", "koboldcpp", "tabbyAPI"), _COMMON),
}
"""How servers sign their list of models."""


class _Page(msgspec.Struct):
    """What tells servers apart on the pages below; each has a page with some of it, and nobody else."""

    default_generation_settings: dict[str, msgspec.Raw] | None = None
    model_path: str | None = None
    version: str | None = None


_PAGE_S = 1.0
"""How long a page may take: a server has such facts at hand, and one that hangs on a page may complete all the same."""
_PAGES = (
    ("/props", "llama-server", "default_generation_settings"),
    ("/get_model_info", "sglang", "model_path"),
    ("/api/version", "ollama", "version"),
)
"""SGLang and llama-server have some of Ollama's pages too, so that one comes last."""


async def find(fetch: Fetch, address: Address) -> Dialect:
    """The dialect of the server at `address`; the common one where nothing tells.

    Raises an `EngineError` if it is not there or refuses its list of models: a wrong key, above all, or that it is still loading.
    """
    if address.host in _COMMON_HOSTS:
        return by_name(_COMMON)
    try:
        body = await fetch(MODELS, None)
    except EngineFaultError:
        body = None  # it is there, and may complete all the same
    known = (_BY_OWNER.get(card.owned_by) for card in cards(body))
    owner = next(filter(None, known), None)
    return by_name(owner or await _by_pages(fetch) or _COMMON)


async def _by_pages(fetch: Fetch) -> str | None:
    found = await asyncio.gather(*(_shows(fetch, path, field) for path, _, field in _PAGES))
    return next((api for (_, api, _), shown in zip(_PAGES, found, strict=True) if shown), None)


async def _shows(fetch: Fetch, path: str, field: str) -> bool:
    """Whether the page is there and has the field.  Many servers answer what they do not know with a page all the same."""
    try:
        async with asyncio.timeout(_PAGE_S):
            body = await fetch(path, None)
    except (EngineError, TimeoutError):
        return False
    page = facts.read(body, _Page)
    return page is not None and getattr(page, field) is not None
