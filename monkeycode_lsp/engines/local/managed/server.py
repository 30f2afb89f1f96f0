"""The llama-server behind the managed engine.  Standard library only; started as `python -m`, never imported by us.

bound PARENT COMMAND…   becomes COMMAND (elsewhere than on Linux: runs it), which dies with its parent, however that dies
serve OPTIONS           loads a model with xllamacpp and serves it; OPTIONS is JSON, the key is in LLAMA_API_KEY
about                   prints what is installed, as JSON
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

KEY_VARIABLE = "LLAMA_API_KEY"
LISTENS = "listening on "
BUILT = "built as "
"""Begins the line that tells `about`, as JSON."""
CANNOT_LOAD = 3
"""Exit status when the model cannot be loaded …"""
CANNOT_START = 127
"""… and when there is no such program, or the library cannot be imported: a shell's convention."""

_SIGNALLED = 128
"""A shell's convention: an exit status above this says which signal ended the process."""
_ERRORS_AND_WARNINGS = 2
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """The exit status."""
    action, *rest = arguments
    if action == "bound":
        try:
            return bound(int(rest[0]), rest[1:])
        except OSError as exc:
            _say(f"{rest[1]}: {exc.strerror}")
            return CANNOT_START
    if action == "serve":
        return serve(json.loads(rest[0]))
    if action == "about":
        import xllamacpp  # noqa: PLC0415 - heavy native code that may kill the process

        print(json.dumps(about(xllamacpp)))  # noqa: T201 - this is what it is for
        return 0
    return 2


def bound(parent: int, command: list[str]) -> int:
    """Run `command` as long as `parent` lives."""
    if sys.platform != "linux":
        return _run_while_stdin(command)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # One that died before we asked to be told is not our parent any more.
    if os.getppid() == parent:
        os.execvp(command[0], command)  # noqa: S606 - the command is our parent's
    return 1


def _run_while_stdin(command: list[str]) -> int:
    """Where the system ends no child with its parent, the pipe between them does.

    A process of its own, because loading a model holds Python's lock from beginning to end: a thread beside it could not notice.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the command is our parent's

    def end_with_stdin() -> None:
        while os.read(0, 4096):
            pass
        process.kill()

    threading.Thread(target=end_with_stdin, daemon=True).start()
    status = process.wait()
    return _SIGNALLED - status if status < 0 else status


def serve(options: dict[str, Any]) -> int:
    """Serve until we are killed."""
    os.dup2(2, 1)  # whatever the library prints is log
    try:
        import xllamacpp  # noqa: PLC0415 - heavy native code that may kill the process
    except ImportError as exc:
        _say(str(exc))
        return CANNOT_START
    _say(BUILT + json.dumps(about(xllamacpp)))
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, options))
    except RuntimeError as exc:
        _say(str(exc))
        return CANNOT_LOAD
    _say(LISTENS + server.listening_address)
    threading.Event().wait()
    return 0


def about(xllamacpp: Any) -> dict[str, Any]:
    """Version, build and devices of the installed library."""
    devices = xllamacpp.get_device_info()
    return {
        "version": xllamacpp.__version__,
        "build": ", ".join(f"{name} {value}" for name, value in xllamacpp.BUILD_INFO.items()),
        "system": xllamacpp.get_system_info().strip(" |"),
        "devices": [device["description"] or device["name"] for device in devices],
        "gpu": any("GPU" in device["type"].name for device in devices),
    }


def _parameters(xllamacpp: Any, options: dict[str, Any]) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["model"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [os.environ.pop(KEY_VARIABLE)]
    parameters.cors_origins = ""
    parameters.n_parallel = options["slots"]
    parameters.n_ctx = options["context_tokens"] * options["slots"]
    parameters.n_batch = parameters.n_ubatch = options["batch_tokens"]
    parameters.n_threads_http = options["connections"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options["threads"]
    parameters.no_extra_bufts = not options["extra_buffers"]
    parameters.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, scale) for path, scale in options["lora"]]
    parameters.cache_ram_mib = options["state_mib"]
    parameters.ui = False
    parameters.verbosity = _ERRORS_AND_WARNINGS
    _set_memory(xllamacpp, parameters, options)
    _set_gpu(xllamacpp, parameters, options)
    return parameters


def _set_memory(xllamacpp: Any, parameters: Any, options: dict[str, Any]) -> None:
    way = "_".join([*["MMAP"] * options["mmap"], *["MLOCK"] * options["mlock"]]) or "NONE"
    parameters.load_mode = xllamacpp.llama_load_mode[f"LLAMA_LOAD_MODE_{way}"]
    if options["kv_type"] == "q8_0":
        parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0


def _set_gpu(xllamacpp: Any, parameters: Any, options: dict[str, Any]) -> None:
    has_gpu = options["gpu_layers"] != 0 and about(xllamacpp)["gpu"]
    parameters.n_gpu_layers = options["gpu_layers"]
    parameters.main_gpu = options["main_gpu"]
    if options["one_gpu"]:
        parameters.split_mode = xllamacpp.llama_split_mode.LLAMA_SPLIT_MODE_NONE
    if options["tensor_split"]:
        n_shares = len(parameters.tensor_split)
        parameters.tensor_split = [*options["tensor_split"], *[0.0] * n_shares][:n_shares]
    # On a CPU flash attention slows generation down; without it llama.cpp reads no quantized KV cache.
    way = "ENABLED" if options["kv_type"] != "f16" else "AUTO" if has_gpu and options["flash_attention"] else "DISABLED"
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type[f"LLAMA_FLASH_ATTN_TYPE_{way}"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - read by our parent


if __name__ == "__main__":
    # Not sys.exit: native threads of a library that could not load a model need not end in order.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
