"""The engine on this machine: finds the model, and the runtime that is installed and lives.

native (llama-cpp-python, the full engine) is preferred; where it is missing or dies, managed (a
prebuilt llama-server) takes over.  Both run in processes that all windows share; nothing native is loaded into this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.engines.counting import Counting
from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.engines.local.native import NativeEngine
from monkeycode_lsp.errors import EngineUnavailableError, ModelError, ModelMissingError
from monkeycode_lsp.models import catalogue, package_client, resolve

logger = logging.getLogger(__name__)


class LocalEngine:
    """See `Engine`."""

    # The mutable state is the runtime that was chosen; it changes in `_choose` only, which runs once at a time.

    def __init__(self, *, settings: Local, notify: Callable[[str], None]) -> None:
        self._settings = settings
        self._notify = notify
        self._chosen: Engine | None = None
        self._choosing = asyncio.Lock()

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        async with self._choosing:
            if self._chosen is None:
                return await self._choose()
        return await self._chosen.ready()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        if self._chosen is None:
            await self.ready()
        if self._chosen is None:
            raise EngineUnavailableError("The engine has been closed.")
        async with aclosing(self._chosen.stream(prompt)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def count(self, texts: Sequence[str]) -> list[int] | None:
        """See `Counting`."""
        if isinstance(self._chosen, Counting):
            return await self._chosen.count(texts)
        return None

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            await chosen.aclose()

    async def _choose(self) -> Model:
        """The first runtime that gets ready.  Nothing is remembered of a failure: what was mended works with the next ask."""
        makers = self._installed()
        if not makers:
            raise no_runtime(self._settings)
        path = await asyncio.to_thread(find_model, self._settings)
        failure: EngineUnavailableError | None = None
        for name, make in makers.items():
            engine = make(settings=self._settings, model=path, notify=self._notify)
            try:
                model = await engine.ready()
            except EngineUnavailableError as exc:
                await engine.aclose()
                logger.warning("The %s runtime cannot be used: %s", name, exc)
                failure = failure or exc
            except BaseException:
                await engine.aclose()
                raise
            else:
                self._chosen = engine
                if failure is not None:
                    self._notify(f"{failure} The prebuilt llama-server is used instead.")
                return model
        raise failure or no_runtime(self._settings)

    def _installed(self) -> dict[str, Callable[..., Engine]]:
        """The runtimes that are here and wanted, the preferred one first."""
        found: dict[str, Callable[..., Engine]] = {}
        if self._settings.runtime != "managed" and selftest.is_installed():
            found["native"] = NativeEngine
        if self._settings.runtime != "native" and managed_library.is_installed():
            found["managed"] = _managed
        return found


def _managed(**how: Any) -> Engine:
    from monkeycode_lsp.engines.local.managed.engine import ManagedEngine  # noqa: PLC0415 - its HTTP client costs every window memory

    return ManagedEngine(**how)


def find_model(settings: Local) -> Path:
    """The model's file.  Blocking.  Raises `ModelMissingError`, with an offer where one can be fetched."""
    try:
        return resolve.resolve(settings.model)
    except ModelError as exc:
        entry = catalogue.lookup(settings.model) if settings.model.strip() else catalogue.default()
        offer = entry.id if entry is not None else ""
        size = f"Download {entry.title} ({entry.about_bytes / 1e6:.0f} MB)?" if entry is not None else ""
        raise ModelMissingError(exc.message, remedy=exc.remedy, offer=offer, offer_text=size) from exc


def no_runtime(settings: Local) -> EngineUnavailableError:
    """Nothing that could run a model is installed."""
    wanted = "" if settings.runtime == "auto" else f" of the kind {settings.runtime} (setting local.runtime)"
    return EngineUnavailableError(
        f"No engine{wanted} is installed on this machine.",
        remedy=f"Run `{package_client.install_line('prebuilt')}` (seconds) or `monkeycode engine install` (the full engine), "
        "or set an endpoint in remote.endpoints.",
    )
