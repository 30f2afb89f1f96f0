"""A llama-server to compare with: the one inside xllamacpp, with its own defaults beside the model's settings.

Run as `python -m monkeycode_lsp.bench.llama_server OPTIONS`; prints `[version, address]` and serves until
standard input closes.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve on a free port of 127.0.0.1."""
    options = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import xllamacpp  # noqa: PLC0415 - heavy native code

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["model"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = options["slots"]
    parameters.n_ctx = options["context_tokens"] * options["slots"]
    parameters.n_gpu_layers = options["gpu_layers"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options["threads"]
    kinds = xllamacpp.llama_flash_attn_type
    gpu = options["gpu_layers"] != 0 and any("GPU" in device["type"].name for device in xllamacpp.get_device_info())
    wanted = gpu and options["flash_attention"]
    # On a processor flash attention slows generation down; with `auto` it would be on.
    parameters.flash_attn_type = kinds.LLAMA_FLASH_ATTN_TYPE_AUTO if wanted else kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    print(json.dumps([xllamacpp.__version__, server.listening_address]), file=answers, flush=True)
    while os.read(0, 4096):
        pass
    # Native threads need not end in order.
    os._exit(0)


if __name__ == "__main__":
    main()
