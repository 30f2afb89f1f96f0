"""One model with several KV caches: decode batches, and cut, save and restore what a cache holds.

Called from one thread.  A batch that is stopped or fails leaves the context usable.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import llama_cpp
import numpy as np

from monkeycode_lsp.engines.local.batch.runtime import Row
from monkeycode_lsp.engines.local.decoder import GenerationError, LoadError, Options, as_text
from monkeycode_lsp.engines.local.llama import loading
from monkeycode_lsp.engines.local.llama.build import LOG
from monkeycode_lsp.engines.local.llama.sampling import Logits, Sampler
from monkeycode_lsp.engines.local.llama.vocabulary import Vocabulary
from monkeycode_lsp.engines.local.wire import Generate, Ready

_POLL_S = 0.0005
"""llama.cpp asks hundreds of times in a decode whether to go on; the caller is asked so often."""
_NO_ROOM, _ABORTED = 1, 2
_WARM_UP_TOKENS = 16


class Llama(Vocabulary):
    """See `runtime.Runtime`."""

    def __init__(self, options: Options) -> None:
        """Raises `LoadError`."""
        # The mutable state is inside llama.cpp; in the batch, which `decode` fills; and in `_stop`, which is
        # whoever can stop the decode that is running.
        self._options = options
        self._n_gpu_layers = loading.gpu_layers(options)
        self._stop = _Stop()
        self._abort = llama_cpp.ggml_abort_callback(self._stop.poll)
        with ExitStack() as opened:
            self._model = loading.load_model(options, self._n_gpu_layers)
            opened.callback(llama_cpp.llama_model_free, self._model)
            super().__init__(self._model)
            adapters = loading.load_adapters(self._model, options)
            use = loading.use_of(options, int(llama_cpp.llama_model_n_ctx_train(self._model)))
            on_gpu = self._n_gpu_layers > 0
            self._context = loading.new_context(self._model, options, use, on_gpu=on_gpu, abort=self._abort)
            opened.callback(llama_cpp.llama_free, self._context)
            loading.apply_adapters(self._context, adapters, options)
            self._opened = opened.pop_all()
        self.n_sequences = use.slots
        self.context_tokens = use.context_tokens
        self.batch_tokens = use.batch_tokens
        self._most_wanted = use.n_outputs
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = _Batch(use.batch_tokens)

    def decode(self, rows: Sequence[Row], should_stop: Callable[[], bool]) -> bool:
        """See `runtime.Runtime`."""
        n_wanted = sum(row.wanted for row in rows)
        if not 0 < len(rows) <= self.batch_tokens or n_wanted > self._most_wanted:
            # llama.cpp would end the process.
            raise GenerationError("internal", f"A batch of {len(rows)} tokens with {n_wanted} logits cannot be decoded.")
        batch = self._batch.filled(rows)
        self._stop.watch(should_stop)
        code = int(llama_cpp.llama_decode(self._context, batch))
        LOG.expects_errors = False
        if code == _NO_ROOM:
            raise GenerationError("decode", f"There is no room in the KV cache for {len(rows)} tokens.")
        if code not in (0, _ABORTED):
            raise GenerationError("decode", f"llama.cpp could not decode {len(rows)} tokens (code {code}).")
        return code == 0

    def keep(self, sequence: int, n_tokens: int) -> bool:
        """See `runtime.Runtime`."""
        if n_tokens and llama_cpp.llama_memory_seq_rm(self._memory, sequence, n_tokens, -1):
            return True
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        return n_tokens == 0

    def save(self, sequence: int) -> bytes:
        """See `runtime.Runtime`."""
        size = int(llama_cpp.llama_state_seq_get_size(self._context, sequence))
        state = np.empty(size, dtype=np.uint8)
        pointer = state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        n_bytes = int(llama_cpp.llama_state_seq_get_data(self._context, pointer, size, sequence))
        return state[:n_bytes].tobytes()

    def restore(self, sequence: int, state: bytes) -> bool:
        """See `runtime.Runtime`."""
        pointer = ctypes.cast(ctypes.c_char_p(state), ctypes.POINTER(ctypes.c_uint8))
        if state and llama_cpp.llama_state_seq_set_data(self._context, pointer, len(state), sequence):
            return True
        self.keep(sequence, 0)
        return False

    def sampler(self, ask: Generate) -> Sampler:
        """See `runtime.Runtime`."""
        return Sampler(ask, self, self.logits)

    def logits(self, row: int) -> Logits:
        """A row of the last batch, in llama.cpp's own memory: good until the next one.  It must have been wanted."""
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self._context, row), shape=(self.n_tokens,))

    def warm_up(self) -> None:
        """Decode a few tokens in all ways: a build that cannot run here dies now, and the first ask finds warm pages."""
        chunk = [Row(self.filler, n, 0, wanted=False) for n in range(min(_WARM_UP_TOKENS, self.batch_tokens))]
        one = Row(self.filler, len(chunk), 0, wanted=True)
        beside = [Row(self.filler, 0, sequence, wanted=True) for sequence in range(1, min(2, self.n_sequences))]
        try:
            for rows in (chunk, [one], [one._replace(position=len(chunk) + 1), *beside]):
                self.decode(rows, _never)
        except GenerationError as exc:
            raise LoadError("internal", exc.message) from exc
        for sequence in range(self.n_sequences):
            self.keep(sequence, 0)

    def describe(self) -> Ready:
        """What clients are told."""
        ftype = llama_cpp.llama_ftype_name(llama_cpp.llama_model_ftype(self._model))
        n_layers = int(llama_cpp.llama_model_n_layer(self._model))
        return Ready(
            name=loading.metadata(self._model, "general.name") or as_text(self._options.model.stem),
            architecture=loading.metadata(self._model, "general.architecture"),
            context_tokens=self.context_tokens,
            markers=self.markers,
            add_bos=self.bos is not None,
            on_gpu=self._n_gpu_layers > 0,
            n_layers=n_layers,
            n_parameters=int(llama_cpp.llama_model_n_params(self._model)),
            quantization=ftype.decode("utf-8", errors="replace") if ftype else "",
            n_slots=self.n_sequences,
            n_gpu_layers=min(self._n_gpu_layers, n_layers),
        )

    def close(self) -> None:
        """Free what llama.cpp holds; the object is of no use afterwards."""
        self._opened.close()


class _Stop:
    """What llama.cpp's abort callback asks."""

    def __init__(self) -> None:
        # The mutable state is who is asked, what he has said, and when he is asked next.
        self._ask: Callable[[], bool] = _never
        self._stopped = False
        self._next_s = 0.0

    def watch(self, should_stop: Callable[[], bool]) -> None:
        """From now on ask this one."""
        self._ask, self._stopped, self._next_s = should_stop, False, 0.0

    def poll(self, _data: object) -> bool:
        now_s = time.perf_counter()
        if not self._stopped and now_s >= self._next_s:
            self._next_s = now_s + _POLL_S
            self._stopped = LOG.expects_errors = self._ask()
        return self._stopped


class _Batch:
    """A `llama_batch` over arrays of our own, which a list fills in one go."""

    def __init__(self, n_tokens: int) -> None:
        # The mutable state is the arrays; they change in `filled` only.
        integers = ctypes.c_int32 * n_tokens
        self._tokens, self._positions, self._sequences = integers(), integers(), integers()
        self._wanted = (ctypes.c_int8 * n_tokens)()
        one = ctypes.sizeof(ctypes.c_int32)
        sequence = ctypes.POINTER(ctypes.c_int32)
        start = ctypes.addressof(self._sequences)
        self._lists = (sequence * n_tokens)(*(ctypes.cast(start + n * one, sequence) for n in range(n_tokens)))
        self._counts = integers(*[1] * n_tokens)
        self._batch = llama_cpp.llama_batch(
            token=ctypes.cast(self._tokens, sequence),
            pos=ctypes.cast(self._positions, sequence),
            n_seq_id=ctypes.cast(self._counts, sequence),
            seq_id=self._lists,
            logits=ctypes.cast(self._wanted, ctypes.POINTER(ctypes.c_int8)),
        )

    def filled(self, rows: Sequence[Row]) -> llama_cpp.llama_batch:
        """These rows as llama.cpp wants them; good until the next call."""
        n = len(rows)
        tokens, positions, sequences, wanted = map(list, zip(*rows, strict=True))
        self._tokens[:n], self._positions[:n], self._sequences[:n], self._wanted[:n] = tokens, positions, sequences, wanted
        self._batch.n_tokens = n
        return self._batch


def _never() -> bool:
    return False
