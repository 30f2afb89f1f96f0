"""Which engine answers: by the settings, by what is installed and by what survives its self-test."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.engines.absent import AbsentEngine
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import EngineError, EngineUnavailableError, MonkeyCodeError

Kind = Literal["local", "remote", "scripted", "off"]
Report = Callable[[MonkeyCodeError], None]


def kind(settings: config.Config) -> Kind:
    """Which engine the settings mean; `auto` is remote where an endpoint is set."""
    if settings.engine != "auto":
        return settings.engine
    return "remote" if endpoints(settings) else "local"


def endpoints(settings: config.Config) -> tuple[config.Endpoint, ...]:
    """The endpoints that have an address."""
    return tuple(endpoint for endpoint in settings.remote.endpoints if endpoint.url.strip())


def engine(settings: config.Config, report: Report) -> Engine:
    """The engine of these settings.  Starts nothing; the heavy parts are imported when they are needed."""

    def notify(message: str) -> None:
        report(EngineError(message))

    match kind(settings):
        case "off":
            return AbsentEngine(EngineUnavailableError("The engine is switched off (setting engine)."))
        case "scripted":
            from monkeycode_lsp.engines import scripted  # noqa: PLC0415 - only when asked for

            try:
                return scripted.from_settings(settings.scripted)
            except EngineUnavailableError as exc:
                return AbsentEngine(exc)
        case "remote" if not endpoints(settings):
            return AbsentEngine(
                EngineUnavailableError(
                    "The setting engine says remote, but no endpoint is set.",
                    remedy='Add one to remote.endpoints, such as {"url": "http://127.0.0.1:8000"}.',
                )
            )
        case "remote":
            return _remote(settings, notify)
        case "local":
            from monkeycode_lsp.engines.local.engine import LocalEngine  # noqa: PLC0415 - heavy

            return LocalEngine(settings=settings.local, notify=notify)


def _remote(settings: config.Config, notify: Callable[[str], None]) -> Engine:
    from monkeycode_lsp.engines.failover import Failover  # noqa: PLC0415 - only when asked for
    from monkeycode_lsp.engines.remote.engine import RemoteEngine  # noqa: PLC0415 - heavy

    remote = RemoteEngine(
        settings=msgspec.structs.replace(settings.remote, endpoints=endpoints(settings)), notify=notify, environ=os.environ
    )
    return remote if settings.engine == "remote" else Failover(remote, lambda: _stand_in(settings.local, notify), notify=notify)


def _stand_in(settings: config.Local, notify: Callable[[str], None]) -> Engine:
    """The local engine, if its model is on this machine already.  Blocking; raises what is missing."""
    from monkeycode_lsp.engines.local.engine import LocalEngine, find_model  # noqa: PLC0415 - heavy

    find_model(settings)
    return LocalEngine(settings=settings, notify=notify)


def same_engine(a: config.Config, b: config.Config) -> bool:
    """Whether a running engine can go on under the other settings."""
    return (a.engine, a.local, a.remote, a.scripted) == (b.engine, b.local, b.remote, b.scripted)


def pull_model(name: str, mirror: str, progress: Callable[[str, int, int | None], None]) -> None:
    """Fetch a catalogue model.  Blocking; raises `DownloadError`."""
    from monkeycode_lsp.models import catalogue, pull  # noqa: PLC0415 - only when asked for

    pull.pull(catalogue.find(name), progress=progress, sources=pull.default_sources(mirror=mirror))
