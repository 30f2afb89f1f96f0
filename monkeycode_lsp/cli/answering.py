"""Who answers under some settings, and whether what it needs is here."""

from __future__ import annotations

from urllib.parse import urlsplit

from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.cli import fetch
from monkeycode_lsp.engines.choose import endpoints, kind
from monkeycode_lsp.errors import EngineUnavailableError


def prepare(settings: config.Config, out: Console, *, yes: bool, again: str) -> str:
    """See that an engine can answer, fetching its model if the user agrees; one line that says who answers.

    Raises what is missing, with its remedy.
    """
    match kind(settings):
        case "scripted":
            return "The scripted engine answers: it says what it is told, and no model is at work."
        case "remote" if endpoints(settings):
            return f"{host(endpoints(settings)[0])} answers."
        case "remote":
            raise EngineUnavailableError("No endpoint is set.", remedy="Give its address: --url http://127.0.0.1:8000")
        case "off":
            raise EngineUnavailableError("The engine is switched off (setting engine).", remedy="Choose one: --engine local")
        case "local":
            require_runtime(settings.local)
            path = fetch.local_model(settings.local, out, yes=yes, again=again)
            return f"{fetch.title(path)} answers, on this machine."


def require_runtime(local: config.Local) -> None:
    """Raises `EngineUnavailableError` where nothing is installed that could run a model."""
    from monkeycode_lsp.engines.local import engine, managed, selftest  # noqa: PLC0415 - only when a local engine answers

    native = local.runtime != "managed" and selftest.is_installed()
    prebuilt = local.runtime != "native" and managed.is_installed()
    if not (native or prebuilt):
        raise engine.no_runtime(local)


def host(endpoint: config.Endpoint) -> str:
    """The endpoint's address without a password that may stand in it, and the model's name if it is set."""
    parts = urlsplit(endpoint.url if "://" in endpoint.url else f"http://{endpoint.url}")
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
    return f"{endpoint.model} at {address}" if endpoint.model else address
