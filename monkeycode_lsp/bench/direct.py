"""The floor of the local engine: llama-cpp-python's own class, called directly.

Run as `python -m monkeycode_lsp.bench.direct MODEL THREADS`; reads `[prompt, n_tokens]` as JSON lines
and writes `[ms to the first token, ms in all, tokens]` for each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    """Answer each line on standard input until it closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import llama_cpp  # noqa: PLC0415 - prints while it loads

    model: Any = llama_cpp.Llama(
        model_path=sys.argv[1], n_ctx=4096, n_threads=int(sys.argv[2]), n_threads_batch=int(sys.argv[2]), verbose=False
    )
    for line in sys.stdin:
        prompt, n_tokens = json.loads(line)
        began = time.perf_counter()
        first = 0.0
        n = 0
        tokens = model.tokenize(prompt.encode(), add_bos=False, special=True)
        for _ in model.generate(tokens, temp=0.0, repeat_penalty=1.0):
            n += 1
            first = first or time.perf_counter() - began
            if n >= n_tokens:
                break
        print(json.dumps([first * 1e3, (time.perf_counter() - began) * 1e3, n]), file=answers, flush=True)


if __name__ == "__main__":
    main()
