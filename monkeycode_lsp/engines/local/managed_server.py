"""The processes behind the managed engine.  Standard library only; started as `python -m`, never imported by us.

    keep COMMAND…    runs COMMAND and ends it when stdin closes: when whoever started us is gone, however he went
    serve OPTIONS    loads a model with xllamacpp and serves it; OPTIONS is JSON, the key is in LLAMA_API_KEY
    about            prints what is installed, as JSON

`keep` is a process of its own because loading a model holds Python's lock from beginning to end: a
thread beside it could not notice that stdin was closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

ANNOUNCEMENT = "listening on "
KEY_VARIABLE = "LLAMA_API_KEY"
CANNOT_LOAD = 3
"""Exit status when the model cannot be loaded."""

_N_BATCH = 128
"""Tokens read at once.  Only between batches does the server notice that nobody waits for a prompt any more."""
_HOST_CACHE_MIB = 256
_ERRORS_AND_WARNINGS = 2


def main(arguments: list[str]) -> int:
    """The exit status."""
    action, *rest = arguments
    if action == "keep":
        return keep(rest)
    if action == "serve":
        return serve(json.loads(rest[0]))
    if action == "about":
        print(json.dumps(about()))  # noqa: T201 - this is what it is for
        return 0
    return 2


def keep(command: list[str]) -> int:
    """Run `command` until it ends or our stdin does.  A death by signal is told as 128 + its number."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the command is our parent's

    def end_with_stdin() -> None:
        while os.read(0, 4096):
            pass
        process.kill()

    threading.Thread(target=end_with_stdin, daemon=True).start()
    status = process.wait()
    return 128 - status if status < 0 else status


def serve(options: dict[str, Any]) -> int:
    """Serve until we are killed."""
    os.dup2(2, 1)  # whatever the library prints is log
    import xllamacpp  # noqa: PLC0415 - heavy native code that may kill the process

    try:
        server = xllamacpp.Server(_parameters(xllamacpp, options))
    except RuntimeError as exc:
        print(exc, file=sys.stderr)  # noqa: T201 - read by the engine
        return CANNOT_LOAD
    print(f"{ANNOUNCEMENT}{server.listening_address}", file=sys.stderr, flush=True)  # noqa: T201 - read by the engine
    threading.Event().wait()
    return 0


def _parameters(xllamacpp: Any, options: dict[str, Any]) -> Any:
    gpus = [device for device in xllamacpp.get_device_info() if "GPU" in device["type"].name]
    flash = xllamacpp.llama_flash_attn_type
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["model"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [os.environ.pop(KEY_VARIABLE)]
    parameters.cors_origins = ""
    parameters.n_parallel = options["slots"]
    parameters.n_ctx = options["context_tokens"] * options["slots"]
    parameters.n_batch = parameters.n_ubatch = _N_BATCH
    parameters.n_gpu_layers = options["gpu_layers"]
    if options["threads"]:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options["threads"]
    # On a CPU flash attention slows generation down.
    wanted = options["flash_attention"] and gpus and options["gpu_layers"]
    parameters.flash_attn_type = flash.LLAMA_FLASH_ATTN_TYPE_AUTO if wanted else flash.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if not options["mmap"]:
        parameters.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    parameters.cache_ram_mib = _HOST_CACHE_MIB
    parameters.ui = False
    parameters.verbosity = _ERRORS_AND_WARNINGS
    return parameters


def llama_server(binary: str, options: dict[str, Any]) -> list[str]:
    """The command line by which a llama-server binary does the same."""
    command = [binary, "--model", options["model"], "--host", "127.0.0.1", "--port", "0"]
    command += ["--ctx-size", str(options["context_tokens"] * options["slots"]), "--parallel", str(options["slots"])]
    command += ["--batch-size", str(_N_BATCH), "--ubatch-size", str(_N_BATCH)]
    if options["gpu_layers"] >= 0:
        command += ["--n-gpu-layers", str(options["gpu_layers"])]
    if options["threads"]:
        command += ["--threads", str(options["threads"])]
    if not options["mmap"]:
        command += ["--no-mmap"]
    return [*command, "--flash-attn", "auto" if options["flash_attention"] and options["gpu_layers"] else "off"]


def about() -> dict[str, Any]:
    """Version, build and devices of the installed library."""
    import xllamacpp  # noqa: PLC0415 - heavy native code that may kill the process

    return {
        "version": xllamacpp.__version__,
        "build": ", ".join(f"{name} {value}" for name, value in xllamacpp.BUILD_INFO.items()),
        "system": xllamacpp.get_system_info().strip(" |"),
        "devices": [device["description"] or device["name"] for device in xllamacpp.get_device_info()],
    }


if __name__ == "__main__":
    # Not sys.exit: native threads of a library that could not load a model need not end in order.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
