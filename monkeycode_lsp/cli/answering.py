"""Who answers under some settings, and whether what it needs is here."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.cli import fetch
from monkeycode_lsp.engines.choose import endpoints, kind
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError

_PROBE_S = 15.0
_URL = "`url` in `remote.endpoints`"
_OPTIONS = {
    _URL: "--url",
    "`apiKey` or `apiKeyEnv` in `remote.endpoints`": "--api-key-env",
    "`model` in `remote.endpoints`": "--model",
}


def prepare(settings: config.Config, out: Console, *, yes: bool, again: str, typed_url: bool) -> str:
    """See that an engine can answer, fetching its model if the user agrees; one line that says who answers.

    Raises what is missing, with its remedy, which names options where the user typed the address (`typed_url`).
    """
    match kind(settings):
        case "scripted":
            return "The scripted engine answers: it says what it is told, and no model is at work."
        case "remote" if len(endpoints(settings)) > 1:
            name = asyncio.run(_probe_all(msgspec.structs.replace(settings.remote, endpoints=endpoints(settings))))
            return f"{name} answers, at one of {len(endpoints(settings))} endpoints at least."
        case "remote" if endpoints(settings):
            endpoint = endpoints(settings)[0]
            try:
                asyncio.run(probe(endpoint))
            except EngineError as exc:
                raise _in_options(exc) if typed_url else exc from exc
            return f"{host(endpoint)} answers."
        case "remote":
            raise EngineUnavailableError("No endpoint is set.", remedy="Give its address: --url http://127.0.0.1:8000")
        case "off":
            raise EngineUnavailableError("The engine is switched off (setting engine).", remedy="Choose one: --engine local")
        case "local":
            require_runtime(settings.local)
            path = fetch.local_model(settings.local, out, yes=yes, again=again)
            return f"{fetch.title(path)} answers, on this machine."


async def probe(endpoint: config.Endpoint) -> None:
    """Raises an `EngineError` where nothing answers at the endpoint; one that is still loading its model is fine."""
    from monkeycode_lsp.engines.remote.endpoint import Endpoint  # noqa: PLC0415 - only where there is one
    from monkeycode_lsp.engines.remote.stream.reading import Limits  # noqa: PLC0415 - as above

    limits = Limits(first_s=_PROBE_S, stall_s=_PROBE_S)
    asked = Endpoint(endpoint, limits=limits, http2=False, notify=lambda _message: None, environ=os.environ)
    try:
        async with asyncio.timeout(_PROBE_S):
            await asked.healthy()  # a server that has no such page answers too
            await asked.ready()
    except EngineBusyError:
        return
    except TimeoutError:
        raise EngineUnavailableError(
            f"{host(endpoint)} did not answer within {_PROBE_S:g} seconds.",
            remedy=f"Is the server up? If not, start it, or correct {_URL}.",
        ) from None
    finally:
        await asked.aclose()


async def _probe_all(remote: config.Remote) -> str:
    """The model that one of several endpoints serves.  Raises an `EngineError` where none can be used."""
    from monkeycode_lsp.engines.remote.engine import RemoteEngine  # noqa: PLC0415 - only where there is one

    asked = RemoteEngine(settings=remote, notify=lambda message: click.echo(message, err=True), environ=os.environ)
    try:
        async with asyncio.timeout(_PROBE_S):
            return (await asked.ready()).name
    except TimeoutError:
        raise EngineUnavailableError(
            f"None of the endpoints in `remote.endpoints` answered within {_PROBE_S:g} seconds.",
            remedy="`monkeycode doctor` looks at each.",
        ) from None
    finally:
        await asked.aclose()


def _in_options(error: EngineError) -> EngineError:
    """The same with the names of options in place of those of settings."""
    remedy = error.remedy
    for setting, option in _OPTIONS.items():
        remedy = remedy.replace(setting, option)
    return EngineError(error.message, remedy=remedy)


def require_runtime(local: config.Local) -> None:
    """Raises `EngineUnavailableError` where nothing is installed that could run a model."""
    from monkeycode_lsp.engines.local import engine, selftest  # noqa: PLC0415 - only when a local engine answers
    from monkeycode_lsp.engines.local.managed import library as managed_library  # noqa: PLC0415 - only when a local engine answers

    native = local.runtime != "managed" and selftest.is_installed()
    prebuilt = local.runtime != "native" and managed_library.is_installed()
    if not (native or prebuilt):
        raise engine.no_runtime(local)


def host(endpoint: config.Endpoint) -> str:
    """The endpoint's address without a password that may stand in it, and the model's name if it is set."""
    parts = urlsplit(endpoint.url if "://" in endpoint.url else f"http://{endpoint.url}")
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
    return f"{endpoint.model} at {address}" if endpoint.model else address
