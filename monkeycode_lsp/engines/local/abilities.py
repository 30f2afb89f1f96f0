"""What a llama.cpp was built for, read from what it says of itself.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_BACKENDS = {
    "cuda": "CUDA", "mtl": "Metal", "metal": "Metal", "rocm": "ROCm", "hip": "ROCm", "vulkan": "Vulkan", "sycl": "SYCL",
    "musa": "MUSA", "opencl": "OpenCL", "cann": "CANN", "blas": "BLAS",
}  # fmt: skip
_FEATURES = {"AVX": "AVX", "AVX2": "AVX2", "AVX512": "AVX512", "AMX_INT8": "AMX", "NEON": "NEON", "SVE": "SVE"}
_BESIDE_GPUS = frozenset({"BLAS"})


class Abilities(msgspec.Struct, frozen=True):
    """What it can use, if the machine has it."""

    backends: frozenset[str] = frozenset()
    """Beside the plain processor: CUDA, Metal, ROCm, Vulkan, SYCL, …, BLAS."""
    features: frozenset[str] = frozenset()
    """Of the processor: AVX, AVX2, AVX512, AMX, NEON, SVE."""

    @property
    def gpu_backends(self) -> frozenset[str]:
        """Those that put layers on a GPU."""
        return self.backends - _BESIDE_GPUS

    def words(self) -> tuple[str, ...]:
        """For people, the most telling first."""
        telling = ("AMX", "AVX512", "AVX2", "NEON", "SVE") if self.features - {"AVX"} else ("AVX",)
        processor = [name for name in telling if name in self.features]
        return (*(sorted(self.gpu_backends) or ["processor only"]), *sorted(self.backends & _BESIDE_GPUS), *processor)


def read(system: str, names: Iterable[str] = ()) -> Abilities:
    """From llama.cpp's line of features, `CPU : AVX = 1 | AVX2 = 1`, and the names of back ends that were found otherwise."""
    enabled = re.findall(r"\b(\w+) = (?!0\b)\w+", system)
    heads = re.findall(r"\b(\w+) :", system)
    backends = {_BACKENDS[key] for name in (*heads, *enabled, *names) for key in [name.lower().rstrip("0123456789")] if key in _BACKENDS}
    features = {_FEATURES[name] for name in (*enabled, *names) if name in _FEATURES}
    return Abilities(frozenset(backends), frozenset(features | ({"AMX"} if "AMX" in names else set())))
