"""The lines for the settings file that keep the endpoint of a command line.  Invariant: no key or password is among them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_SECRET = frozenset({"apiKey", "headers"})
_HIDDEN = "# What is secret is left out here: "


def of(tree: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines, in TOML; none where `tree`, what the command line said, names no endpoint."""
    endpoints = [endpoint for endpoint in tree.get("remote", {}).get("endpoints", ()) if endpoint.get("url")]
    if not endpoints:
        return ()
    template = tree.get("template")
    return (
        *([f"template = {_word(template)}"] if template else ()),
        *(line for endpoint in endpoints for line in _one(endpoint)),
    )


def _one(endpoint: Mapping[str, Any]) -> Iterator[str]:
    yield "[[remote.endpoints]]"
    shown = _without_secrets(str(endpoint["url"]))
    yield f"url = {_word(shown)}"
    for name, value in endpoint.items():
        if value and name != "url" and name not in _SECRET:
            yield f"{name} = {_word(value)}"
    hidden = [name for name in endpoint if name in _SECRET and endpoint[name]]
    if shown != endpoint["url"]:
        hidden.append("a part of the url")
    if hidden:
        yield _HIDDEN + ", ".join(hidden)


def _word(value: Any) -> str:
    """As TOML writes it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # their strings differ in this alone
    return json.dumps(value)


def _without_secrets(url: str) -> str:
    """Names, passwords and queries may hold a key."""
    if "@" not in url and "?" not in url and "#" not in url:
        return url
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
