"""The decoder of the engine process: the batch loop over a model of llama.cpp, with what it keeps from one life to the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import llama_cpp
import msgspec

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local import verdict
from monkeycode_lsp.engines.local.batch import states
from monkeycode_lsp.engines.local.batch.batcher import Batcher
from monkeycode_lsp.engines.local.batch.model_drafts import ModelDrafts
from monkeycode_lsp.engines.local.batch.shelf import Shelf
from monkeycode_lsp.engines.local.decoder import LoadError, Options, Step
from monkeycode_lsp.engines.local.llama.build import LOG, installed_build
from monkeycode_lsp.engines.local.llama.context import Llama
from monkeycode_lsp.engines.local.wire import Build, Generate, Ready, Totals


class LlamaDecoder:
    """See `decoder.Decoder`."""

    def __init__(self, options: Options) -> None:
        # The mutable state is the models and the batch loop: all of it is there from `load` to `close`.
        self._options = options
        self._shelf = Shelf(options.state_bytes)
        self._models: list[Llama] = []
        self._proposer: ModelDrafts | None = None
        self._batcher: Batcher | None = None
        self._counting = threading.Lock()
        """Held while the vocabulary is used beside the decode thread: the model must not be freed meanwhile."""

    @property
    def busy(self) -> bool:
        """See `decoder.Decoder`."""
        return self._batcher is not None and self._batcher.busy

    @property
    def totals(self) -> Totals:
        """See `decoder.Decoder`."""
        return self._batcher.totals if self._batcher is not None else Totals()

    def build(self) -> Build:
        """See `decoder.Decoder`."""
        LOG.install()
        llama_cpp.llama_backend_init()
        return installed_build()

    def load(self) -> Ready:
        """See `decoder.Decoder`."""
        options = self._options
        llama = self._load(options)
        if options.drafts and options.draft_model:
            # It follows one answer at a time, and applies no adapter: those were made for the larger model.
            small = msgspec.structs.replace(options, model=Path(options.draft_model), slots=1, lora=())
            self._proposer = ModelDrafts(self._load(small), clock=time.perf_counter)
        if options.state_folder:
            for entry in states.read(Path(options.state_folder), scope(options)):
                self._shelf.put(entry)
        self._batcher = Batcher(llama, shelf=self._shelf, drafts=options.drafts, proposer=self._proposer)
        return llama.describe()

    def begin(self, job: Hashable, ask: Generate, is_cancelled: Callable[[], bool]) -> None:
        """See `decoder.Decoder`."""
        self._loop().begin(job, ask, is_cancelled)

    def step(self, is_urgent: Callable[[Priority], bool]) -> list[Step]:
        """See `decoder.Decoder`."""
        return self._loop().step(is_urgent)

    def count(self, texts: Sequence[str]) -> list[int]:
        """See `decoder.Decoder`."""
        with self._counting:
            return [len(self._models[0].tokenize(text)) for text in texts] if self._batcher is not None else []

    def drop(self, job: Hashable) -> None:
        """See `decoder.Decoder`."""
        self._loop().drop(job)

    def close(self) -> None:
        """See `decoder.Decoder`."""
        if self._batcher is not None and self._options.state_folder:
            self._batcher.put_all_away()
            folder = Path(self._options.state_folder)
            states.write(folder, scope(self._options), self._shelf, most_bytes=self._options.state_bytes)
        with self._counting:
            self._batcher = None
        if self._proposer is not None:
            self._proposer.close()
            self._proposer = None
        while self._models:
            self._models.pop().close()

    def _load(self, options: Options) -> Llama:
        LOG.complaints.clear()
        try:
            llama = Llama(options)
            self._models.append(llama)
            llama.warm_up()
        except LoadError as exc:
            raise LoadError(exc.kind, " ".join([exc.message, *LOG.complaints])) from exc
        return llama

    def _loop(self) -> Batcher:
        if self._batcher is None:
            raise RuntimeError("no model is loaded")
        return self._batcher


def scope(options: Options) -> str:
    """What a saved KV state depends on beside its tokens."""
    adapters = [(path, strength, Path(path).stat().st_mtime_ns) for path, strength in options.lora]
    computed = (options.kv_type, options.flash_attention, options.gpu_layers, adapters)
    return f"{verdict.key(options.model, gpu_layers=options.gpu_layers)} {computed}"
