"""What the managed engine makes of an engine process: see `tenant.Kind`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import explain
from monkeycode_lsp.engines.local.decoder import Options, as_text
from monkeycode_lsp.engines.local.host.launch import Running
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.engines.local.options import load_options
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.models import package_client

WORKER = (sys.executable, "-P", "-m", "monkeycode_lsp.engines.local.managed.worker")


class Reached(msgspec.Struct, frozen=True):
    """A server that answers."""

    endpoint: Endpoint
    model: Model


class Managed:
    """See `Kind`."""

    name: Literal["native", "managed"] = "managed"

    def __init__(self, *, settings: config.Local, model: Path, notify: Callable[[str], None], program: str, limits: Limits) -> None:
        self.command: tuple[str, ...] = (*WORKER, f"--program={program}")
        self._settings = settings
        self._model = model
        self._notify = notify
        self._program = program
        self._limits = limits

    def check(self) -> None:
        """See `Kind.check`."""
        if not self._program and not managed_library.has_package():
            raise managed_library.not_installed()
        if not self._program and as_text(str(self._model)) != str(self._model):
            raise EngineUnavailableError(
                f"The prebuilt engine cannot open {self._model}: its name is no text.",
                remedy="Rename the file or its folder, or set local.runtime to native.",
            )

    def library(self) -> list[str]:
        """See `Kind.library`."""
        return managed_library.names(self._program)

    def options(self, attempt: Attempt) -> Options:
        """See `Kind.options`.  What no llama-server does makes no difference."""
        wanted = load_options(self._settings, self._model, attempt)
        return msgspec.structs.replace(wanted, drafts=False, draft_model="", state_folder="")

    async def attach(self, running: Running, fingerprint: str) -> Reached:
        """See `Kind.attach`."""
        serving = running.link.serving
        if serving is None:
            raise EngineUnavailableError("The engine process does not say where its server listens.")
        settings = config.Endpoint(url=serving.url, api="llama-server", api_key=serving.key)
        endpoint = Endpoint(settings, limits=self._limits, notify=self._notify, environ={}, proved=proofs.unproved)
        told: Model | None = None
        try:
            told = await endpoint.ready()
        finally:
            if told is None:
                await endpoint.aclose()
        name = f"{running.ready.name} {running.ready.quantization}".strip()
        return Reached(endpoint, msgspec.structs.replace(told, name=name, fingerprint=fingerprint))

    async def detach(self, attached: Reached) -> None:
        """See `Kind.detach`."""
        await attached.endpoint.aclose()

    def unavailable(self, fall: Fall) -> EngineUnavailableError:
        """See `Kind.unavailable`."""
        name = self._model.name
        if fall.failed is None:
            return EngineUnavailableError(
                f"The prebuilt engine cannot run {name}: its process {explain.how(fall)} while it loaded the model. {fall.last_words}".strip(),
                remedy="`monkeycode doctor` looks for the cause; memory may be short, or the build does not suit this processor.",
            )
        if fall.failed.kind == "runtime":
            again = f"Install it again: {package_client.install_line('prebuilt')}"
            remedy = explain.MORE_MEMORY if explain.speaks_of_memory(fall.failed.message) else again
            return EngineUnavailableError(f"The prebuilt engine cannot be started: {fall.failed.message}", remedy=remedy)
        if fall.failed.kind == "memory":
            return explain.unavailable(fall, self._model)
        return EngineUnavailableError(
            f"The model file {self._model} cannot be loaded.",
            remedy="It may be damaged or of a newer format: `monkeycode model verify` checks it; `local.model` chooses another.",
        )

    def fell_back(self, first: Fall, attempt: Attempt) -> str:
        """See `Kind.fell_back`."""
        how = explain.how(first)
        if attempt.gpu_share == 0:
            way = "without the GPU, which is slower. To keep it so, set local.gpuLayers to 0"
        elif attempt.gpu_share < 1:
            way = "with half of its layers on the GPU, which is slower. A smaller model or a lower local.gpuLayers fits the GPU"
        else:
            way = "without extra CPU buffers, which is slower. `monkeycode engine install` builds one for this processor"
        is_lasting = first.is_illegal_instruction and attempt.gpu_share >= 1
        message = f"The engine process {how} while it loaded the model. It now runs {way}."
        return message if is_lasting else f"{message} {explain.TRIED_AGAIN}"
