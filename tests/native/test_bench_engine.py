"""The engine benchmark with the real model: its cheap parts, and one quantization."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("llama_cpp", reason="needs the native engine")

from monkeycode_lsp import config
from monkeycode_lsp.bench import engine
from monkeycode_lsp.bench.engine_report import DIRECT, OURS
from monkeycode_lsp.bench.engine_stage import QUICK
from monkeycode_lsp.bench.quality import quant

pytestmark = [pytest.mark.model, pytest.mark.native]

SETTINGS = config.Local(slots=2, context_tokens=1024)


async def test_the_warm_part_measures_both_with_the_same_tokens(model_path):
    home = os.environ["MONKEYCODE_HOME"]
    report = await engine.run(model_path, settings=SETTINGS, plan=QUICK, only=["warm"], against=[DIRECT])
    (part,) = report.parts
    assert part.name == "warm"
    assert part.systems.keys() == {OURS, DIRECT}
    ours, direct = part.systems[OURS], part.systems[DIRECT]
    assert ours.read == direct.read == QUICK.warm
    assert ours.reused == direct.reused > 100
    assert ours.generated == direct.generated
    assert 0 < ours.first_ms.p50 <= ours.total_ms.p50
    assert {figure.name for figure in part.figures if figure.goal is not None} == {
        "prompt tokens reused",
        f"time to first token / {DIRECT}",
        f"tokens per second / {DIRECT}",
    }
    assert os.environ["MONKEYCODE_HOME"] == home


async def test_a_file_is_measured_with_its_size_speed_and_quality(model_path):
    report = await quant.compare([model_path], settings=SETTINGS, n=2)
    (file,) = report.files
    assert file.size_bytes == model_path.stat().st_size
    assert file.fills
    assert file.read_tokens_per_second > file.asks_per_second > 0
    assert file.write_tokens_per_second > 0
    assert 0 <= file.exact <= file.similarity <= 1
