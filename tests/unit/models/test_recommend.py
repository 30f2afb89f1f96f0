from __future__ import annotations

import pytest

from monkeycode_lsp.models import catalogue
from monkeycode_lsp.models.hardware import Gpu, Hardware
from monkeycode_lsp.models.recommend import needed_bytes, recommend

GB = 10**9


def machine(cores=4, memory_gb=16, gpus=(), features=("avx2",), kind="x86_64"):
    memory = None if memory_gb is None else int(memory_gb * GB)
    return Hardware(system="linux", machine=kind, cores=cores, memory_bytes=memory, gpus=gpus, features=frozenset(features))


def card(memory_gb, api="cuda"):
    return Gpu(api=api, name="Card", memory_bytes=None if memory_gb is None else int(memory_gb * GB))


@pytest.mark.parametrize(
    ("hardware", "size", "precision", "words"),
    [
        (machine(cores=2), "0.5B", "Q4_K_M", "2 processor cores can answer in time with 0.5B only"),
        (machine(cores=1), "0.5B", "Q4_K_M", "1 processor core can"),
        (machine(cores=2, memory_gb=256), "0.5B", "Q4_K_M", "a larger model would come too late"),
        (machine(cores=8), "1.5B", "Q4_K_M", "8 processor cores can answer with 1.5B while you type"),
        (machine(cores=8, features=()), "0.5B", "Q4_K_M", "0.5B only"),
        (machine(cores=8, features=(), kind="arm64"), "1.5B", "Q4_K_M", "1.5B while you type"),
        (machine(cores=8, memory_gb=None), "1.5B", "Q4_K_M", "1.5B"),
        (machine(cores=8, memory_gb=2.5), "0.5B", "Q4_K_M", "memory for 0.5B only"),
        (machine(cores=2, memory_gb=1.9), "0.5B", "Q3_K_M", "Q4_K_M, which is better, does not fit"),
        (machine(gpus=(card(24),)), "7B", "Q8_0", "plenty for 7B in Q8_0"),
        (machine(gpus=(card(12),)), "7B", "Q4_K_M", "the largest that fits"),
        (machine(gpus=(card(8),)), "7B", "Q4_K_M", "the largest that fits"),
        (machine(gpus=(card(6),)), "1.5B", "Q8_0", "plenty for 1.5B"),
        (machine(gpus=(card(4),)), "1.5B", "Q4_K_M", "the largest that fits"),
        (machine(gpus=(card(10.7, "metal"),)), "7B", "Q4_K_M", "Card has 10.7 GB"),
        (machine(gpus=(card(4), card(24, "rocm"))), "7B", "Q8_0", "24.0 GB"),
        (
            machine(cores=2, gpus=(card(None, "vulkan"),)),
            "0.5B",
            "Q4_K_M",
            "How much memory Card has is not known; without it, 2 processor cores",
        ),
    ],
)
def test_each_machine_gets_what_it_runs_well_and_the_reason(hardware, size, precision, words):
    found = recommend(hardware)
    assert (found.entry.size, found.entry.quantization) == (size, precision)
    assert words in found.reason
    assert found.fits


@pytest.mark.parametrize("hardware", [machine(memory_gb=0.5), machine(gpus=(card(0.5),))])
def test_a_machine_too_small_for_any_gets_the_smallest_and_is_told(hardware):
    found = recommend(hardware)
    assert found.entry == min(catalogue.entries(), key=needed_bytes)
    assert not found.fits
    assert "less" in found.reason


def test_a_model_with_a_restricted_licence_is_never_proposed():
    sizes = {recommend(machine(gpus=(card(n / 4),))).entry.size for n in range(2, 200)}
    assert sizes == {"0.5B", "1.5B", "7B"}


@pytest.mark.parametrize("n", range(4, 100, 3))
def test_what_is_proposed_for_a_gpu_fits_it(n):
    found = recommend(machine(gpus=(card(n / 4),)))
    assert not found.fits or needed_bytes(found.entry) < n / 4 * GB
