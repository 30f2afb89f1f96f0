"""The floor of the local engine: llama-cpp-python's own class, called directly.

Run as `python -m monkeycode_lsp.bench.direct OPTIONS`; reads `[prompt, n_tokens]` as JSON lines and answers
each with `[ms to the first token, ms in all, tokens generated, reused, read]`, measured in here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import takewhile
from typing import Any


def main() -> None:
    """Answer each line on standard input until it closes."""
    options = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import llama_cpp  # noqa: PLC0415 - prints while it loads

    gpu = options["gpu_layers"] != 0 and llama_cpp.llama_supports_gpu_offload()
    model: Any = llama_cpp.Llama(
        model_path=options["model"],
        n_ctx=options["context_tokens"],
        n_threads=options["threads"],
        n_threads_batch=options["threads"],
        n_gpu_layers=options["gpu_layers"],
        flash_attn=bool(gpu and options["flash_attention"]),
        verbose=False,
    )
    vocabulary = llama_cpp.llama_model_get_vocab(model.model)
    held: list[int] = []
    print(json.dumps(llama_cpp.__version__), file=answers, flush=True)
    for line in sys.stdin:
        prompt, n_tokens = json.loads(line)
        began = time.perf_counter()
        tokens = model.tokenize(prompt.encode(), add_bos=True, special=True)
        said: list[int] = []
        first = 0.0
        for token in model.generate(tokens, temp=0.0, repeat_penalty=1.0):
            first = first or time.perf_counter() - began
            said.append(token)
            if len(said) >= n_tokens or llama_cpp.llama_vocab_is_eog(vocabulary, token):
                break
        total = time.perf_counter() - began
        # What stayed in its KV cache; the last token of a prompt is always read.
        reused = min(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(held, tokens, strict=False))), len(tokens) - 1)
        held = tokens + said[:-1]
        print(json.dumps([first * 1e3, total * 1e3, len(said), reused, len(tokens) - reused]), file=answers, flush=True)


if __name__ == "__main__":
    main()
