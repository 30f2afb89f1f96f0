"""The remote engine: completions from a server that the user or the team runs."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncGenerator, Mapping

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.endpoint import Endpoint, Limits
from monkeycode_lsp.engines.remote.terms import Notify
from monkeycode_lsp.errors import EngineError, EngineUnavailableError


class RemoteEngine:
    """Asks the first endpoint of the settings.

    The mutable state is that endpoint, made at first use, so that a wrong address is told to who asks.
    """

    def __init__(self, *, settings: config.Remote, notify: Notify, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._notify = notify
        self._environ = environ
        self._endpoint: Endpoint | None = None

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        return await self._first().ready()

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        return self._first().stream(prompt)

    async def reachable(self) -> bool:
        """Whether a server answers now, whatever it says.  Raises nothing; see `failover.Reachable`."""
        try:
            await self._first().healthy()
        except EngineUnavailableError:
            return False
        except EngineError:
            return True
        return True

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        if self._endpoint is not None:
            await self._endpoint.aclose()

    def _first(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = self._make()
        return self._endpoint

    def _make(self) -> Endpoint:
        if not self._settings.endpoints:
            raise EngineUnavailableError(
                "No server is set that could complete code.", remedy="Add one to `remote.endpoints`, or set `engine` to `local`."
            )
        http2 = self._settings.http2
        if http2 and importlib.util.find_spec("h2") is None:
            http2 = False
            self._notify("`remote.http2` needs the package h2 (pip install h2); HTTP/1.1 is used.")
        limits = Limits(first_s=self._settings.timeout_ms / 1e3, stall_s=self._settings.stall_ms / 1e3)
        return Endpoint(self._settings.endpoints[0], limits=limits, http2=http2, notify=self._notify, environ=self._environ)
