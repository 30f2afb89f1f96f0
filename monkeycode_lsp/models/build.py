"""The command that builds llama-cpp-python for a machine.  `command` and `render` are pure; `run` runs it.

Facts behind the choices: gcc before 13 tells its optimizer too little about AMX tile set-up, so a default build
for such a processor dies of an illegal instruction at the first token; switching dead-store elimination off
cures it and keeps AMX.  The multimodal and TLS parts are left out: we use neither, and they cost minutes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from monkeycode_lsp.models.hardware import Hardware

REQUIREMENT = "llama-cpp-python==0.3.36"
PREBUILT = "monkeycode-lsp[prebuilt]"

_LEAN = ("-DLLAVA_BUILD=OFF", "-DLLAMA_BUILD_MTMD=OFF", "-DLLAMA_OPENSSL=OFF")
_CUDA = "-DGGML_CUDA=on"
_AMX_CURE = "-fno-tree-dse -fno-dse"
_FIXED_GCC = (13,)


class Command(msgspec.Struct, frozen=True):
    """What to run, with which variables, and why."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Variables to add to the user's own."""
    reason: str
    """One sentence for the user."""
    notes: tuple[str, ...] = ()
    """What the user should know besides: a missing toolkit, a workaround that is in use."""
    compiles: bool = True
    """False: the prebuilt engine is installed instead."""


class _Backend(msgspec.Struct, frozen=True):
    """How llama.cpp is told to use one kind of hardware."""

    options: tuple[str, ...]
    reason: str


def command(
    hardware: Hardware,
    *,
    installer: Sequence[str] = (sys.executable, "-P", "-m", "pip", "install"),
    portable: bool = False,
    rebuild: bool = False,
) -> Command:
    """The line that gives `hardware` its best engine.

    `portable`: a build that other machines of this kind can run too.  `rebuild`: replace what is installed, and do
    not take an earlier build from the package client's cache.
    """
    if hardware.compiler is None:
        return Command(
            argv=(*installer, PREBUILT),
            env={},
            reason="There is no C++ compiler here, so the prebuilt engine is the way: no compilation, and all completions work.",
            notes=(_compiler_hint(hardware),),
            compiles=False,
        )
    backend, notes = _backend(hardware)
    options = [*_LEAN, *backend.options]
    env: dict[str, str] = {}
    if portable:
        options.append("-DGGML_NATIVE=OFF")
        notes.append("Portable build: it runs on other processors of this kind and is slower on this one.")
    elif _needs_amx_cure(hardware):
        env["CXXFLAGS"] = _AMX_CURE
        notes.append("This processor has AMX and the compiler is gcc before 13: CXXFLAGS keeps it from breaking the AMX code.")
    if hardware.nvcc and _CUDA in backend.options:
        env["CUDACXX"] = hardware.nvcc
    env["CMAKE_ARGS"] = " ".join(options)
    env["CMAKE_BUILD_PARALLEL_LEVEL"] = str(hardware.cores)
    fresh = ("--force-reinstall", "--no-cache-dir", "--no-deps") if rebuild else ()
    return Command(argv=(*installer, *fresh, REQUIREMENT), env=env, reason=backend.reason, notes=tuple(notes))


def render(built: Command, *, windows: bool = sys.platform == "win32") -> str:
    """The command as a user would type it, quoted for the system's shell."""
    if windows:
        sets = [f'set "{name}={value}"' for name, value in built.env.items()]
        return "\n".join([*sets, subprocess.list2cmdline(built.argv)])
    sets = [f"{name}={shlex.quote(value)}" for name, value in built.env.items()]
    return " ".join([*sets, *(shlex.quote(word) for word in built.argv)])


def run(built: Command, *, on_line: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> int:
    """Run it, hand on what it prints line by line, and return its exit code."""
    process = subprocess.Popen(  # noqa: S603 - the command that `render` shows, made from our own words
        built.argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environ, **built.env},
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        try:
            for line in process.stdout or ():
                on_line(line.rstrip("\r\n"))
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def _backend(hardware: Hardware) -> tuple[_Backend, list[str]]:
    """The best backend whose compiler is here; a note for each better one whose compiler is missing."""
    notes: list[str] = []
    cuda, metal, rocm, sycl, vulkan = (hardware.gpu(api) for api in ("cuda", "metal", "rocm", "sycl", "vulkan"))
    if metal:
        return _Backend(("-DGGML_METAL=on",), f"{metal.name or 'Apple silicon'}: built for Metal."), notes
    if cuda and "nvcc" in hardware.tools:
        return _Backend((_CUDA,), f"{cuda.name}: built for CUDA."), notes
    if cuda:
        notes.append(f"{cuda.name} is here, but not nvcc: install NVIDIA's CUDA toolkit and run this again to use the GPU.")
    if rocm and "hipcc" in hardware.tools:
        target = (f"-DGPU_TARGETS={rocm.target}",) if rocm.target else ()
        return _Backend(("-DGGML_HIP=on", *target), f"{rocm.name or 'AMD GPU'}: built for ROCm."), notes
    if rocm:
        notes.append(f"{rocm.name or 'An AMD GPU'} is here, but not hipcc: install ROCm's HIP SDK and run this again to use the GPU.")
    if sycl and "icpx" in hardware.tools:
        options = ("-DGGML_SYCL=on", "-DCMAKE_C_COMPILER=icx", "-DCMAKE_CXX_COMPILER=icpx")
        return _Backend(options, f"{sycl.name or 'Intel GPU'}: built for SYCL."), notes
    if sycl:
        notes.append(
            f"{sycl.name or 'An Intel GPU'} is here, but not icpx: load oneAPI's setvars script and run this again to use the GPU."
        )
    if vulkan and "glslc" in hardware.tools:
        return _Backend(("-DGGML_VULKAN=on",), f"{vulkan.name or 'GPU'}: built for Vulkan."), notes
    if vulkan:
        notes.append(
            f"{vulkan.name or 'A GPU'} is here, but not glslc: install the Vulkan SDK and run this again to use it through Vulkan."
        )
    return _Backend((), "Built for this processor."), notes


def _needs_amx_cure(hardware: Hardware) -> bool:
    compiler = hardware.compiler
    return "amx" in hardware.features and compiler is not None and compiler.kind == "gcc" and compiler.version < _FIXED_GCC


def _compiler_hint(hardware: Hardware) -> str:
    hints = {
        "linux": "For the full engine install a compiler first: `sudo apt install g++ cmake`, or your system's like.",
        "macos": "For the full engine install a compiler first: `xcode-select --install`.",
        "windows": "For the full engine install the C++ build tools of Visual Studio first and open their command prompt.",
    }
    return hints.get(hardware.system, "For the full engine install a C++ compiler first.")
