"""How a llama-server is told what to load: by the package in a process of ours, or by a program's command line.  Pure but for `threads`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

import msgspec

from monkeycode_lsp.engines.local import hardware
from monkeycode_lsp.engines.local.decoder import Options

SERVER = "monkeycode_lsp.engines.local.managed.server"
PYTHON = (sys.executable, "-P", "-m")
"""`-P`: what lies in the user's working folder is never imported."""

_MOST_BATCH_TOKENS = 128
"""Only between batches does the server notice that nobody waits for a prompt any more."""
_FEWEST_CONNECTIONS = 32
"""Each waiting ask holds one, in every window; with fewer the server would seem dead when it is only busy."""
_MIB = 1 << 20


class About(msgspec.Struct, frozen=True):
    """What the installed library says of itself."""

    version: str
    build: str
    system: str
    devices: tuple[str, ...] = ()
    gpu: bool = False


class Server(msgspec.Struct, frozen=True):
    """`Options` in llama-server's own terms."""

    model: str
    slots: int
    context_tokens: int
    """Of one slot."""
    batch_tokens: int
    threads: int
    connections: int
    gpu_layers: int
    """-1: what fits."""
    main_gpu: int
    one_gpu: bool
    """Everything goes to the main GPU."""
    tensor_split: tuple[float, ...]
    extra_buffers: bool
    flash_attention: bool
    kv_type: str
    mmap: bool
    mlock: bool
    lora: tuple[tuple[str, float], ...]
    state_mib: int
    """Memory for the KV states of prompts that lost their slot."""


def server(options: Options, *, n_layers: int) -> Server:
    """`n_layers`: of the model; 0 where nobody knows, and then half of them is none."""
    return Server(
        model=str(options.model),
        slots=options.slots,
        context_tokens=options.context_tokens,
        batch_tokens=max(min(options.batch_tokens, _MOST_BATCH_TOKENS), options.slots),
        threads=options.threads or hardware.physical_cores(),
        connections=max(_FEWEST_CONNECTIONS, 4 * options.slots),
        gpu_layers=_layers(options, n_layers),
        main_gpu=options.main_gpu,
        one_gpu=options.main_gpu > 0 and not options.tensor_split,
        tensor_split=options.tensor_split,
        extra_buffers=options.extra_buffers,
        flash_attention=options.flash_attention,
        kv_type=options.kv_type,
        mmap=options.mmap,
        mlock=options.mlock,
        lora=options.lora,
        state_mib=options.state_bytes // _MIB,
    )


def command(wanted: Server, program: str) -> list[str]:
    """Starts `program`, or the package where that is empty."""
    if program:
        return [program, *_arguments(wanted)]
    return [*PYTHON, SERVER, "serve", json.dumps(msgspec.to_builtins(wanted))]


def bound(command: list[str]) -> list[str]:
    """The same, dying with us."""
    return [*PYTHON, SERVER, "bound", str(os.getpid()), *command]


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours without what would overrule a command line."""
    return {name: value for name, value in ours.items() if not name.startswith("LLAMA_ARG_")}


def _layers(options: Options, n_layers: int) -> int:
    if options.gpu_share == 1 or options.gpu_layers == 0:
        return options.gpu_layers
    n_all = n_layers + 1 if n_layers else 0
    return int((min(options.gpu_layers, n_all) if options.gpu_layers > 0 else n_all) * options.gpu_share)


def _arguments(wanted: Server) -> list[str]:
    words = ["--model", wanted.model, "--host", "127.0.0.1", "--port", "0"]
    words += ["--ctx-size", str(wanted.context_tokens * wanted.slots), "--parallel", str(wanted.slots)]
    words += ["--batch-size", str(wanted.batch_tokens), "--ubatch-size", str(wanted.batch_tokens)]
    words += ["--threads", str(wanted.threads), "--threads-http", str(wanted.connections)]
    if wanted.gpu_layers >= 0:
        words += ["--n-gpu-layers", str(wanted.gpu_layers)]
    if wanted.main_gpu:
        words += ["--main-gpu", str(wanted.main_gpu)]
    if wanted.one_gpu:
        words += ["--split-mode", "none"]
    if wanted.tensor_split:
        words += ["--tensor-split", ",".join(map(str, wanted.tensor_split))]
    if wanted.kv_type != "f16":
        words += ["--cache-type-k", wanted.kv_type, "--cache-type-v", wanted.kv_type]
    for path, strength in wanted.lora:
        words += ["--lora", path] if strength == 1 else ["--lora-scaled", f"{path}:{strength}"]
    words += ["--no-repack"] * (not wanted.extra_buffers) + ["--no-mmap"] * (not wanted.mmap) + ["--mlock"] * wanted.mlock
    flash = "on" if wanted.kv_type != "f16" else "auto" if wanted.flash_attention and wanted.gpu_layers else "off"
    return [*words, "--flash-attn", flash]
