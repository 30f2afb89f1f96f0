"""What llama.cpp says of itself, read."""

from __future__ import annotations

import pytest

from monkeycode_lsp.engines.local import abilities

CPU = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | AVX512 = 1 | AVX512_VNNI = 1 | LLAMAFILE = 1 | OPENMP = 1 | REPACK = 1"


@pytest.mark.parametrize(
    ("system", "names", "words"),
    [
        (CPU, (), ("processor only", "AVX512", "AVX2")),
        (CPU + " | AMX_INT8 = 1", (), ("processor only", "AMX", "AVX512", "AVX2")),
        (CPU, ("CUDA", "AVX2"), ("CUDA", "AVX512", "AVX2")),
        ("CUDA : ARCHS = 890 | USE_GRAPHS = 1 | " + CPU, (), ("CUDA", "AVX512", "AVX2")),
        ("CPU : NEON = 1 | ARM_FMA = 1 | SVE = 1", ("MTL", "BLAS"), ("Metal", "BLAS", "NEON", "SVE")),
        ("Metal : EMBED_LIBRARY = 1 | CPU : NEON = 1", (), ("Metal", "NEON")),
        (CPU, ("ROCm0",), ("ROCm", "AVX512", "AVX2")),
        (CPU, ("Vulkan0", "BLAS"), ("Vulkan", "BLAS", "AVX512", "AVX2")),
        (CPU, ("SYCL",), ("SYCL", "AVX512", "AVX2")),
        ("CPU : AVX = 1 | AVX2 = 0", (), ("processor only", "AVX")),
        ("", (), ("processor only",)),
    ],
)
def test_back_ends_come_first_then_the_processors_features(system, names, words):
    assert abilities.read(system, names).words() == words


def test_blas_puts_nothing_on_a_gpu():
    assert abilities.read(CPU, ("BLAS", "CUDA")).gpu_backends == {"CUDA"}
