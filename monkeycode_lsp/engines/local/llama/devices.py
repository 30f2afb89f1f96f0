"""The back ends and GPUs that the installed ggml knows, by functions that the binding does not wrap.

Where they cannot be reached, nothing is known; that is never an error.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp.llama_cpp as binding
from llama_cpp._ctypes_extensions import load_shared_library

_GPU, _INTEGRATED_GPU = 1, 2
_LIBRARIES = ("ggml", "ggml-base")
_NAMES = {"MTL": "Metal", "HIP": "ROCm"}


def backends() -> tuple[str, ...]:
    """What was compiled in, such as CUDA, Metal, ROCm, Vulkan, SYCL, BLAS and always CPU."""
    try:
        count = _function("ggml_backend_reg_count", ctypes.c_size_t)
        get = _function("ggml_backend_reg_get", ctypes.c_void_p, ctypes.c_size_t)
        name = _function("ggml_backend_reg_name", ctypes.c_char_p, ctypes.c_void_p)
    except (AttributeError, OSError, RuntimeError):
        return ()
    names = (name(get(number)).decode("utf-8", errors="replace") for number in range(count()))
    return tuple(_NAMES.get(each, each) for each in names)


def free_memory() -> tuple[int, ...]:
    """Free bytes of every GPU that llama.cpp would use, in its order; 0: it does not say."""
    try:
        count = _function("ggml_backend_dev_count", ctypes.c_size_t)
        get = _function("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
        kind = _function("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
        memory = _function("ggml_backend_dev_memory", None, ctypes.c_void_p, *[ctypes.POINTER(ctypes.c_size_t)] * 2)
    except (AttributeError, OSError, RuntimeError):
        return ()
    found: dict[int, list[int]] = {_GPU: [], _INTEGRATED_GPU: []}
    for device in [get(number) for number in range(count())]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if (which := kind(device)) in found:
            memory(device, ctypes.byref(free), ctypes.byref(total))
            found[which].append(free.value)
    # Graphics inside the processor are used only where there is nothing better.
    return tuple(found[_GPU] or found[_INTEGRATED_GPU])


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """One of ggml's functions.  Raises `AttributeError`, `OSError` or `RuntimeError` where it is not to be had."""
    try:
        # The libraries that llama.cpp itself was linked with come first: loaded by path they could be others.
        return _typed(binding._lib, name, result, arguments)  # noqa: SLF001 - it has no other name
    except AttributeError:
        for library in _LIBRARIES:
            handle = load_shared_library(library, binding._base_path)  # noqa: SLF001 - it has no other name
            if hasattr(handle, name):
                return _typed(handle, name, result, arguments)
        raise


def _typed(library: ctypes.CDLL, name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
    # A prototype of our own: changing the types of the library's shared object would change them for everybody.
    return ctypes.CFUNCTYPE(result, *arguments)((name, library))
