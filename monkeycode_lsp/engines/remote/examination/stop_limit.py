"""How many stop strings a server takes: one request of one token, and a second one where that is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from monkeycode_lsp.engines.remote.dialects.base import Call, Dialect
from monkeycode_lsp.engines.remote.http.head import Head

Ask = Callable[[str, bytes | None], Awaitable[Head]]
"""POST a body to a path, and read the answer to its end."""

StopLimit = Literal["none", "four", "many"]

_MANY = 5
"""One more than servers take that have a limit."""
_FOUR = 4
_OK = range(200, 300)
_MAY_BE_ABOUT_STOPS = frozenset({400, 422})


async def find(ask: Ask, dialect: Dialect, *, model: str, without: frozenset[str]) -> StopLimit | None:
    """None: stop strings stand nowhere that we know, or something else is refused.  Raises an `EngineError`."""
    call = Call("a = 1\n", stop=_stops(_MANY), max_tokens=1, model=model)
    path, body = dialect.path(call), msgspec.json.decode(dialect.body(call, without))
    if not isinstance(body.get("stop"), list):
        return None
    taken = await _takes(ask, path, body, _MANY)
    if taken is not False:
        return "many" if taken else None
    if await _takes(ask, path, body, _FOUR):
        return "four"
    return "none" if await _takes(ask, path, body, 0) else None


async def _takes(ask: Ask, path: str, body: dict[str, Any], n_stops: int) -> bool | None:
    """None: it says nothing about stop strings."""
    asked = {key: value for key, value in body.items() if key != "stop"}
    if n_stops:
        asked["stop"] = _stops(n_stops)
    status = (await ask(path, msgspec.json.encode(asked))).status
    if status in _OK:
        return True
    return False if status in _MAY_BE_ABOUT_STOPS else None


def _stops(count: int) -> tuple[str, ...]:
    return tuple(f"<end-{number}>" for number in range(count))
