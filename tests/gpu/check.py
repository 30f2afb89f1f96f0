"""One model on the GPU: is it there, how fast is it, do aborts and drafts reach their goals?  `check.py MODEL OUT`; see check.sh."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench import engine
from monkeycode_lsp.bench.engine_report import DIRECT
from monkeycode_lsp.bench.engine_stage import Plan
from monkeycode_lsp.cli import benchmark_tables, terminal
from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host.launch import WORKER

# The prebuilt llama-server has no CUDA, so it is no comparison; servers and kills have nothing to do with a GPU.
PARTS = ("cold", "warm", "letter", "edit", "documents", "windows", "abort", "drafts", "parallel", "ipc")
JUDGED = ("abort", "drafts")


def on_the_gpu(model: Path) -> bool:
    """Whether a throw-away engine process puts the model there."""
    options = msgspec.json.encode({"model": str(model), "gpu_layers": -1}).decode()
    done = subprocess.run([*WORKER, "--self-test", "--options", options], stdout=subprocess.PIPE, check=False, timeout=100)
    told = [msgspec.json.decode(line, type=wire.FromWorker) for line in done.stdout.splitlines()]
    for message in told:
        if isinstance(message, wire.Ready):
            print(f"{message.name} {message.quantization}: {message.n_gpu_layers} of {message.n_layers} layers on the GPU")
            return message.on_gpu
    print(f"The engine process did not load {model}: exit status {done.returncode}, {told}")
    return False


def main() -> int:
    model, out = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    if not on_the_gpu(model):
        print("The model is not on the GPU; nothing was measured.")
        return 1
    settings = config.Local(runtime="native", gpu_layers=-1)
    report = asyncio.run(engine.run(model, settings=settings, plan=Plan(), only=PARTS, against=(DIRECT,)))
    (out / f"{model.stem}.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    benchmark_tables.show_engine(report, terminal.console())
    judged = [part for part in report.parts if part.name in JUDGED]
    return int(any(part.left_out or any(figure.ok is False for figure in part.figures) for part in judged))


if __name__ == "__main__":
    raise SystemExit(main())
