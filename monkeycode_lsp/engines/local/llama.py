"""llama.cpp through llama-cpp-python's low-level functions.  The only module that imports `llama_cpp`.

Owns one model and one context with one sequence.  What llama.cpp has to say goes to our log.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llama_cpp
import numpy as np

from monkeycode_lsp.engines.local import hardware
from monkeycode_lsp.engines.local.decoder import GenerationError, LoadError, Options
from monkeycode_lsp.engines.local.sampling import at_temperature
from monkeycode_lsp.engines.local.sequence import KvSequence, Sampler
from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Generate, Ready
from monkeycode_lsp.prompt import Markers

logger = logging.getLogger(__name__)

_CHUNK_TOKENS = 128
"""A cancelled prompt keeps its finished chunks, and a GPU that cannot be interrupted is free after one."""
_CONTINUED = 5
"""llama.cpp's log level of a line that goes on."""
_LEVELS = {3: logging.WARNING, 4: logging.ERROR}
_MARKERS = {
    "prefix": llama_cpp.llama_vocab_fim_pre,
    "suffix": llama_cpp.llama_vocab_fim_suf,
    "middle": llama_cpp.llama_vocab_fim_mid,
    "pad": llama_cpp.llama_vocab_fim_pad,
    "repository": llama_cpp.llama_vocab_fim_rep,
    "separator": llama_cpp.llama_vocab_fim_sep,
}
_NOTABLE_FEATURES = ("AMX_INT8", "AVX512", "AVX2", "NEON", "SVE")


class _Log:
    """Takes what llama.cpp says.  One for the process, as the library has one callback and keeps its bare pointer."""

    def __init__(self) -> None:
        # The mutable state is the last errors; they are cleared before a model is loaded.
        self.complaints: deque[str] = deque(maxlen=3)
        self._callback = llama_cpp.llama_log_callback(self._on_line)

    def install(self) -> None:
        self.complaints.clear()
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _on_line(self, level: int, text: bytes | None, _data: object) -> None:
        line = (text or b"").decode("utf-8", errors="replace").strip()
        if not line or level == _CONTINUED:
            return
        number = _LEVELS.get(level, logging.DEBUG)
        if number >= logging.ERROR:
            self.complaints.append(line)
        logger.log(number, "%s", line)


_LOG = _Log()


class LlamaDecoder:
    """See `Decoder`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._llama: Llama | None = None
        self._sequence: KvSequence | None = None

    def build(self) -> Build:
        _LOG.install()
        llama_cpp.llama_backend_init()
        return installed_build()

    def load(self) -> Ready:
        try:
            self._llama = Llama(self._options)
        except LoadError as exc:
            raise LoadError(exc.kind, " ".join([exc.message, *_LOG.complaints])) from exc
        self._sequence = KvSequence(self._llama)
        self._llama.warm_up()
        return self._llama.describe()

    def generate(self, ask: Generate, is_cancelled: Callable[[], bool]) -> Iterator[Delta | Done]:
        if self._sequence is None:
            raise GenerationError("internal", "No model is loaded.")
        return self._sequence.generate(ask, is_cancelled)

    def close(self) -> None:
        self._sequence = None
        if self._llama is not None:
            self._llama.close()
            self._llama = None


def installed_build() -> Build:
    """What the installed library can do; loads no model."""
    system = llama_cpp.llama_print_system_info().decode("utf-8", errors="replace").strip(" |\n")
    groups = [group.strip() for group in system.split("|")]
    backends = [group.partition(" : ")[0] for group in groups if " : " in group]
    features = {group.rpartition(" : ")[2].partition(" = ")[0] for group in groups if not group.endswith("= 0")}
    return Build(
        version=str(llama_cpp.__version__),
        system=system,
        accelerators=(*(name for name in backends if name != "CPU"), *(name for name in _NOTABLE_FEATURES if name in features)),
        gpu=bool(llama_cpp.llama_supports_gpu_offload()),
    )


class Vocabulary:
    """A model's tokens: text to tokens and back."""

    def __init__(self, model: Any) -> None:
        # The mutable state is the control tokens found so far; it grows in `control` only.
        self._vocabulary = llama_cpp.llama_model_get_vocab(model)
        self.n_tokens = int(llama_cpp.llama_vocab_n_tokens(self._vocabulary))
        bos, eos = int(llama_cpp.llama_vocab_bos(self._vocabulary)), int(llama_cpp.llama_vocab_eos(self._vocabulary))
        self.bos = bos if bos >= 0 and llama_cpp.llama_vocab_get_add_bos(self._vocabulary) else None
        self.filler = next((token for token in (bos, eos) if token >= 0), 0)
        found = {name: int(find(self._vocabulary)) for name, find in _MARKERS.items()}
        texts = {
            name: llama_cpp.llama_vocab_get_text(self._vocabulary, token).decode("utf-8") for name, token in found.items() if token >= 0
        }
        self.markers = Markers(**texts)
        self._controls = {text: found[name] for name, text in texts.items()}
        # Some tokenizers put a blank before every text.  Behind a line end they do not.
        line_end = self._tokenize("\n", parse_special=False)
        self._line_end = line_end if b"".join(map(self.piece, line_end)) != b"\n" else []

    def tokenize(self, text: str) -> list[int]:
        """See `Runtime`."""
        if self._line_end and text:
            tokens = self._tokenize("\n" + text, parse_special=False)
            n_lead = len(self._line_end)
            if tokens[:n_lead] == self._line_end:
                return tokens[n_lead:]
        return self._tokenize(text, parse_special=False)

    def control(self, text: str) -> int:
        """See `Runtime`."""
        if text not in self._controls:
            tokens = self._tokenize(text, parse_special=True)
            if len(tokens) != 1 or not self._is_special(tokens[0]):
                raise GenerationError("template", f"The model's vocabulary has no control token {text!r}.")
            self._controls[text] = tokens[0]
        return self._controls[text]

    def piece(self, token: int) -> bytes:
        """See `Runtime`."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            n_bytes = int(llama_cpp.llama_token_to_piece(self._vocabulary, token, buffer, size, 0, False))  # noqa: FBT003 - positional only
            if n_bytes >= 0:
                return buffer.raw[:n_bytes]
            size = -n_bytes

    def ends(self, token: int) -> bool:
        """See `Runtime`."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocabulary, token) or llama_cpp.llama_vocab_is_control(self._vocabulary, token))

    def _tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        # A lone surrogate would be a C++ exception, and so the end of the process.
        data = text.encode("utf-8", errors="replace")
        size = len(data) + 8
        buffer = (llama_cpp.llama_token * size)()
        n_tokens = int(llama_cpp.llama_tokenize(self._vocabulary, data, len(data), buffer, size, False, parse_special))  # noqa: FBT003 - positional only
        return list(buffer[: max(n_tokens, 0)])

    def _is_special(self, token: int) -> bool:
        special = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
        return bool(llama_cpp.llama_vocab_get_attr(self._vocabulary, token) & special)


class Llama(Vocabulary):
    """See `Runtime`: a vocabulary with its model and a context of one sequence."""

    def __init__(self, options: Options) -> None:
        # The mutable state is inside llama.cpp, and `_is_cancelled`, which changes in `evaluate` only.
        self._options = options
        self._is_cancelled: Callable[[], bool] = _never
        self._random = np.random.default_rng()
        self.on_gpu = bool(llama_cpp.llama_supports_gpu_offload()) and options.gpu_layers != 0
        self._model = _load_model(options, on_gpu=self.on_gpu)
        super().__init__(self._model)
        self.context_tokens = min(options.context_tokens, int(llama_cpp.llama_model_n_ctx_train(self._model)) or options.context_tokens)
        self.chunk_tokens = min(_CHUNK_TOKENS, options.batch_tokens, self.context_tokens)
        self._abort = llama_cpp.ggml_abort_callback(lambda _data: self._is_cancelled())
        self._context = self._new_context()
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(self.chunk_tokens, 0, 1)
        for n in range(self.chunk_tokens):
            self._batch.n_seq_id[n] = 1
            self._batch.seq_id[n][0] = 0

    def evaluate(self, tokens: Sequence[int], at: int, is_cancelled: Callable[[], bool]) -> bool:
        """See `Runtime`."""
        batch, last = self._batch, len(tokens) - 1
        batch.n_tokens = len(tokens)
        for n, token in enumerate(tokens):
            batch.token[n] = token
            batch.pos[n] = at + n
            batch.logits[n] = n == last
        self._is_cancelled = is_cancelled
        try:
            code = int(llama_cpp.llama_decode(self._context, batch))
        finally:
            self._is_cancelled = _never
        if code not in (0, 2):
            raise GenerationError("decode", f"llama.cpp could not decode {len(tokens)} tokens at {at} (code {code}).")
        return code == 0

    def keep(self, n_tokens: int) -> bool:
        """See `Runtime`."""
        if n_tokens and llama_cpp.llama_memory_seq_rm(self._memory, 0, n_tokens, -1):
            return True
        llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003 - positional only
        return n_tokens == 0

    def sampler(self, temperature: float) -> Sampler:
        """See `Runtime`."""
        draw = at_temperature(temperature, self._random)
        shape = (self.n_tokens,)
        return lambda: draw(np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self._context, -1), shape=shape))

    def warm_up(self) -> None:
        """Read a few tokens, then one: a build that cannot run here dies now, and the first ask finds warm pages."""
        for tokens in ([self.filler] * min(16, self.chunk_tokens), [self.filler]):
            self.keep(0)
            try:
                self.evaluate(tokens, 0, _never)
            except GenerationError as exc:
                raise LoadError("internal", exc.message) from exc
        self.keep(0)

    def describe(self) -> Ready:
        """What clients are told."""
        ftype = llama_cpp.llama_ftype_name(llama_cpp.llama_model_ftype(self._model))
        return Ready(
            name=_metadata(self._model, "general.name") or self._options.model.stem,
            architecture=_metadata(self._model, "general.architecture"),
            context_tokens=self.context_tokens,
            markers=self.markers,
            add_bos=self.bos is not None,
            on_gpu=self.on_gpu,
            n_layers=int(llama_cpp.llama_model_n_layer(self._model)),
            n_parameters=int(llama_cpp.llama_model_n_params(self._model)),
            quantization=ftype.decode("utf-8", errors="replace") if ftype else "",
        )

    def close(self) -> None:
        """Free what llama.cpp holds; the object is of no use afterwards."""
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def _new_context(self) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = self.context_tokens
        params.n_batch = params.n_ubatch = self.chunk_tokens
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = self._options.threads or hardware.physical_cores()
        params.flash_attn_type = (
            llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO
            if self.on_gpu and self._options.flash_attention
            else llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        params.abort_callback = self._abort
        params.no_perf = True
        context = llama_cpp.llama_init_from_model(self._model, params)
        if not context:
            raise LoadError("memory", f"There is no room for a context of {self.context_tokens} tokens.")
        return context


def _never() -> bool:
    return False


def _load_model(options: Options, *, on_gpu: bool) -> Any:
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = options.extra_buffers
    params.load_mode = llama_cpp.LLAMA_LOAD_MODE_MMAP if options.mmap else llama_cpp.LLAMA_LOAD_MODE_NONE
    params.n_gpu_layers = _layers_on_gpu(options) if on_gpu else 0
    model = llama_cpp.llama_model_load_from_file(os.fsencode(options.model), params)
    if not model:
        raise LoadError("model", "llama.cpp cannot load the file.")
    return model


def _layers_on_gpu(options: Options) -> int:
    if options.gpu_share >= 1:
        return options.gpu_layers
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(os.fsencode(options.model), params)
    if not model:
        raise LoadError("model", "llama.cpp cannot read the file's header.")
    # A model without weights does not know its layers; the output counts as one more.
    n_layers = int(_metadata(model, f"{_metadata(model, 'general.architecture')}.block_count") or 0) + 1
    llama_cpp.llama_model_free(model)
    asked = n_layers if options.gpu_layers < 0 else min(options.gpu_layers, n_layers)
    return int(asked * options.gpu_share)


def _metadata(model: Any, key: str) -> str:
    buffer = ctypes.create_string_buffer(256)
    n_bytes = llama_cpp.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", errors="replace") if n_bytes > 0 else ""
