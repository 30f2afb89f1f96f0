"""From `Options` to a loaded model, its adapters and a context of several sequences."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any

import llama_cpp

from monkeycode_lsp.engines.local import explain, fit, hardware
from monkeycode_lsp.engines.local.decoder import LoadError, Options
from monkeycode_lsp.engines.local.llama import devices
from monkeycode_lsp.engines.local.llama.build import LOG

_KV_TYPES = {"f16": (llama_cpp.GGML_TYPE_F16, 2.0), "q8_0": (llama_cpp.GGML_TYPE_Q8_0, 34 / 32)}
"""llama.cpp's number of the type, and the bytes of one number."""
_LOAD_MODES = {
    (True, True): llama_cpp.LLAMA_LOAD_MODE_MMAP_MLOCK,
    (True, False): llama_cpp.LLAMA_LOAD_MODE_MMAP,
    (False, True): llama_cpp.LLAMA_LOAD_MODE_MLOCK,
    (False, False): llama_cpp.LLAMA_LOAD_MODE_NONE,
}
"""By mmap and mlock."""
_MOST_OUTPUTS = 64
"""Enough for a draft, and for one row of every slot; each takes memory as long as the vocabulary."""
_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def load_model(options: Options, n_gpu_layers: int) -> Any:
    """The model.  Raises `LoadError`."""
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = options.extra_buffers
    params.load_mode = _LOAD_MODES[options.mmap, options.mlock]
    params.n_gpu_layers = n_gpu_layers
    if n_gpu_layers:
        _spread(params, options)
    model = llama_cpp.llama_model_load_from_file(os.fsencode(options.model), params)
    if not model:
        raise _failed("llama.cpp cannot load the file.")
    return model


def load_adapters(model: Any, options: Options) -> list[Any]:
    """The LoRA adapters, in order; they live as long as the model.  Raises `LoadError`."""
    adapters = []
    for path, _ in options.lora:
        adapter = llama_cpp.llama_adapter_lora_init(model, os.fsencode(path))
        if not adapter:
            raise _failed(f"The adapter {path} cannot be used with this model.")
        adapters.append(adapter)
    return adapters


def new_context(model: Any, options: Options, use: fit.Use, *, on_gpu: bool, abort: Any) -> Any:
    """One KV cache for each slot.  Raises `LoadError`."""
    params = llama_cpp.llama_context_default_params()
    params.n_seq_max = use.slots
    params.n_ctx = use.slots * use.context_tokens
    params.kv_unified = False
    params.n_batch = params.n_ubatch = use.batch_tokens
    params.n_outputs_max = params.n_outputs_max_per_seq = use.n_outputs
    params.n_threads = params.n_threads_batch = options.threads or hardware.physical_cores()
    params.type_k = params.type_v = _KV_TYPES[options.kv_type][0]
    params.flash_attn_type = _flash_attention(options, on_gpu=on_gpu)
    params.abort_callback = abort
    params.no_perf = True
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        raise LoadError("memory", f"There is no room for {use.slots} KV caches of {use.context_tokens} tokens.")
    return context


def apply_adapters(context: Any, adapters: list[Any], options: Options) -> None:
    """Put the adapters over the model's weights, each at its strength.  Raises `LoadError`."""
    if not adapters:
        return
    handles = (llama_cpp.llama_adapter_lora_p_ctypes * len(adapters))(*adapters)
    strengths = (ctypes.c_float * len(adapters))(*(strength for _, strength in options.lora))
    if llama_cpp.llama_set_adapters_lora(context, handles, len(adapters), strengths):
        raise LoadError("model", f"llama.cpp cannot apply the adapters {', '.join(path for path, _ in options.lora)}.")


def gpu_layers(options: Options) -> int:
    """Layers that go to the GPU, where the output counts as one more.  Raises `LoadError`."""
    if options.gpu_layers == 0 or not llama_cpp.llama_supports_gpu_offload():
        return 0
    shape = read_shape(options.model)
    if options.gpu_layers > 0:
        wanted = min(options.gpu_layers, shape.n_layers + 1)
    else:
        free = devices.free_memory()
        if _is_one_gpu(options):
            free = free[options.main_gpu : options.main_gpu + 1]
        wanted = fit.layers(shape, use_of(options, options.context_tokens), free=free, split=options.tensor_split)
    return int(wanted * options.gpu_share)


def use_of(options: Options, n_trained: int) -> fit.Use:
    """What the context will hold: no more tokens than the model was trained for, and a row for each slot in a batch."""
    context_tokens = min(options.context_tokens, n_trained or options.context_tokens)
    batch_tokens = max(min(options.batch_tokens, context_tokens), options.slots)
    return fit.Use(
        slots=options.slots,
        context_tokens=context_tokens,
        batch_tokens=batch_tokens,
        n_outputs=min(batch_tokens, max(_MOST_OUTPUTS, options.slots)),
        kv_number_bytes=_KV_TYPES[options.kv_type][1],
    )


def read_shape(path: Path) -> fit.Shape:
    """What a model's header says, without its weights.  Raises `LoadError`."""
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise _failed("llama.cpp cannot read the file's header.")
    # Without weights the library's own functions know no layers, only the metadata does.
    n_heads = _number(model, "attention.head_count") or 1
    n_kv_heads = _number(model, "attention.head_count_kv") or n_heads
    head = _number(model, "embedding_length") // n_heads
    lengths = (_number(model, f"attention.{name}_length") or head for name in ("key", "value"))
    shape = fit.Shape(
        file_bytes=_file_bytes(path),
        n_layers=_number(model, "block_count"),
        n_vocabulary=int(llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))),
        n_heads=n_heads,
        kv_numbers=n_kv_heads * sum(lengths),
    )
    llama_cpp.llama_model_free(model)
    return shape


def metadata(model: Any, key: str) -> str:
    """One value of the file's header as text; empty where it has none."""
    buffer = ctypes.create_string_buffer(256)
    n_bytes = llama_cpp.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", errors="replace") if n_bytes > 0 else ""


def _failed(message: str) -> LoadError:
    """Files are not to blame where llama.cpp complains of memory: it says so of a whole file too."""
    return LoadError("memory" if explain.speaks_of_memory("\n".join(LOG.complaints)) else "model", message)


def _number(model: Any, key: str) -> int:
    """A number about the architecture; where there is one for each layer, the largest; 0 where there is none."""
    text = metadata(model, f"{metadata(model, 'general.architecture')}.{key}")
    return max(map(int, re.findall(r"\d+", text)), default=0)


def _file_bytes(path: Path) -> int:
    """Of the file, or of all parts of a split one."""
    part = _PART.search(path.name)
    parts = path.parent.glob(f"{path.name[: part.start()]}-*-of-{part[1]}.gguf") if part else [path]
    return sum(each.stat().st_size for each in parts)


def _is_one_gpu(options: Options) -> bool:
    """Whether the user has chosen one GPU for everything."""
    return options.main_gpu > 0 and not options.tensor_split


def _spread(params: Any, options: Options) -> None:
    params.main_gpu = options.main_gpu
    if _is_one_gpu(options):
        params.split_mode = llama_cpp.LLAMA_SPLIT_MODE_NONE
    if options.tensor_split:
        most = int(llama_cpp.llama_max_devices())
        if len(options.tensor_split) > most:
            raise LoadError("runtime", f"tensorSplit has {len(options.tensor_split)} shares; this build can use {most} devices.")
        params.tensor_split = (ctypes.c_float * most)(*options.tensor_split)


def _flash_attention(options: Options, *, on_gpu: bool) -> int:
    if options.kv_type != "f16":
        return int(llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED)  # llama.cpp reads quantized values in no other way
    if on_gpu and options.flash_attention:
        return int(llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO)
    return int(llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED)
