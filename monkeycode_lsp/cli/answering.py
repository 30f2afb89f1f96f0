"""Who answers under some settings, and whether what it needs is here."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.cli import fetch
from monkeycode_lsp.engines.choose import endpoints, kind
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, ModelError

_PROBE_S = 15.0
_URL = "`url` in `remote.endpoints`"
_HERE = r" (?:in|of) `remote\.endpoints`"
_OPTIONS = (
    (re.compile(rf"The `url` of an endpoint{_HERE}"), "The address in --url"),
    (re.compile(rf"`url`(?: and `api`)?{_HERE}"), "--url"),
    (re.compile(r"in `remote\.endpoints` whether `url`"), "whether --url"),
    (re.compile(rf"(?:`apiKey` or )?`apiKeyEnv`{_HERE}"), "--api-key-env"),
    (re.compile(rf"`model`{_HERE}"), "--model"),
)
"""What settings are called on the command line."""


def prepare(settings: config.Config, out: Console, *, yes: bool, again: str, typed_url: bool) -> str:
    """See that an engine can answer, fetching its model if the user agrees; one line that says who answers.

    Raises what is missing, with its remedy, which names options where the user typed the address (`typed_url`).
    """
    match kind(settings):
        case "scripted":
            return "The scripted engine answers: it says what it is told, and no model is at work."
        case "remote" if endpoints(settings):
            try:
                return asyncio.run(_remote(settings))
            except EngineError as exc:
                raise in_options(exc) if typed_url else exc from exc
        case "remote":
            raise EngineUnavailableError("No endpoint is set.", remedy="Give its address: --url http://127.0.0.1:8000")
        case "off":
            raise EngineUnavailableError("The engine is switched off (setting engine).", remedy="Choose one: --engine local")
        case "local":
            require_runtime(settings.local)
            path = fetch.local_model(settings.local, out, yes=yes, again=again)
            return f"{fetch.title(path)} answers, on this machine."


async def _remote(settings: config.Config) -> str:
    """Who answers: the endpoints, or the model here while they are gone.  Raises an `EngineError` where nobody does."""
    found = endpoints(settings)
    try:
        if len(found) > 1:
            name = await _probe_all(msgspec.structs.replace(settings.remote, endpoints=found))
            return f"{name} answers, at one of {len(found)} endpoints at least."
        await probe(found[0])
    except EngineUnavailableError:
        path = await _stand_in(settings)
        if path is None:
            raise
        return f"{fetch.title(path)} answers, on this machine, since no endpoint can be reached."
    return f"{host(found[0])} answers."


async def _stand_in(settings: config.Config) -> Path | None:
    """The model that stands in for endpoints that are gone; None: they are not gone, or nothing may or can stand in."""
    from monkeycode_lsp.engines.local.engine import find_model  # noqa: PLC0415 - only when a local engine answers
    from monkeycode_lsp.engines.remote.engine import RemoteEngine  # noqa: PLC0415 - only where there is an endpoint

    if settings.engine != "auto":
        return None
    remote = msgspec.structs.replace(settings.remote, endpoints=endpoints(settings))
    asked = RemoteEngine(settings=remote, notify=lambda _message: None, environ=os.environ)
    try:
        if await asked.reachable():
            return None
        require_runtime(settings.local)
        return await asyncio.to_thread(find_model, settings.local)
    except (EngineUnavailableError, ModelError):
        return None
    finally:
        await asked.aclose()


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

    notices: list[str] = []
    asked = RemoteEngine(settings=remote, notify=notices.append, environ=os.environ)
    try:
        async with asyncio.timeout(_PROBE_S):
            return (await asked.ready()).name  # what there is to say besides, whoever answers will say
    except TimeoutError:
        tell(notices)
        raise EngineUnavailableError(
            f"None of the endpoints in `remote.endpoints` answered within {_PROBE_S:g} seconds.",
            remedy="`monkeycode doctor` looks at each.",
        ) from None
    except EngineError as exc:
        tell(notices, besides=str(exc))
        raise
    finally:
        await asked.aclose()


def tell(notices: Iterable[str], *, besides: str = "", typed_url: bool = False) -> None:
    """What an engine had to say beside its answers, each once, on standard error; not what `besides` says already."""
    for notice in dict.fromkeys(notices):
        if notice not in besides:
            click.echo(options_for(notice) if typed_url else notice, err=True)


def in_options(error: EngineError) -> EngineError:
    """The same with the names of options in place of those of settings."""
    return EngineError(options_for(error.message), remedy=options_for(error.remedy))


def options_for(words: str) -> str:
    """The same words with the names of options in place of those of settings."""
    for setting, option in _OPTIONS:
        words = setting.sub(option, words)
    return words


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
