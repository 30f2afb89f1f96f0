"""What this machine has that matters to a local model: cores, memory, processor features, GPUs, compilers.

Every probe is bounded in time and never raises; what cannot be found out is empty or None.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.models import hardware_output as output

Api = Literal["cuda", "metal", "rocm", "sycl", "vulkan"]

Run = Callable[[Sequence[str]], str]
"""Runs a command and gives what it printed; empty when it failed or took too long."""

_PROBE_S = 4.0
_TOOLS = ("cmake", "ninja", "git", "nvcc", "hipcc", "glslc", "icpx", "nvidia-smi", "rocminfo", "rocm-smi", "vulkaninfo", "sycl-ls", "uv")
_BESIDE_PATH = {
    "nvcc": ("$CUDA_HOME/bin", "$CUDA_PATH/bin", "/usr/local/cuda/bin"),
    "hipcc": ("$ROCM_PATH/bin", "/opt/rocm/bin"),
    "rocminfo": ("$ROCM_PATH/bin", "/opt/rocm/bin"),
    "rocm-smi": ("$ROCM_PATH/bin", "/opt/rocm/bin"),
}
"""Where these are installed without being put on PATH."""


class Gpu(msgspec.Struct, frozen=True):
    """One graphics processor, by the interface through which llama.cpp can use it."""

    api: Api
    name: str
    memory_bytes: int | None = None
    """Its own memory; on Apple silicon the part of the machine's memory that it may use."""
    target: str = ""
    """What compilers call it: `gfx1100`."""


class Compiler(msgspec.Struct, frozen=True):
    """The C++ compiler that a build would use."""

    kind: Literal["gcc", "clang", "msvc"]
    version: tuple[int, ...]
    command: str


class Hardware(msgspec.Struct, frozen=True):
    """One machine."""

    system: Literal["linux", "macos", "windows", "other"]
    machine: str
    """`x86_64`, `arm64`"""
    cpu: str = ""
    cores: int = 1
    """Physical cores that this process may use."""
    memory_bytes: int | None = None
    features: frozenset[str] = frozenset()
    """Of avx2, fma, f16c, avx512, amx."""
    gpus: tuple[Gpu, ...] = ()
    compiler: Compiler | None = None
    tools: frozenset[str] = frozenset()
    """Programs that a build may need: cmake, ninja, nvcc, hipcc, glslc, icpx, …"""
    nvcc: str = ""
    """Its path, where it is not on PATH; a build must be told."""

    def gpu(self, api: Api) -> Gpu | None:
        """The first GPU of that kind, the one with the most memory first."""
        return max((gpu for gpu in self.gpus if gpu.api == api), key=lambda gpu: gpu.memory_bytes or 0, default=None)


def run_bounded(argv: Sequence[str], *, within_s: float = _PROBE_S) -> str:
    """What `argv` prints, or nothing."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed list of well-known programs
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=within_s, check=False
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    # A compiler says its version on either stream; a failing probe's words are of no use.
    return (done.stdout or done.stderr).decode("utf-8", "replace") if done.returncode == 0 else ""


def probe(
    run: Run = run_bounded,
    *,
    which: Callable[[str], str | None] = shutil.which,
    environ: Mapping[str, str] = os.environ,
    beside_path: Mapping[str, Sequence[str]] = _BESIDE_PATH,
) -> Hardware:
    """Look at this machine.  The slow questions are asked side by side."""
    beside = {tool: path for tool, folders in beside_path.items() if not which(tool) and (path := _in_folders(tool, folders, environ))}

    def ask_there(argv: Sequence[str]) -> str:
        return run((beside.get(argv[0], argv[0]), *argv[1:]))

    system = _system()
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    tools = frozenset(tool for tool in _TOOLS if tool in beside or which(tool))
    with ThreadPoolExecutor(max_workers=8, thread_name_prefix="probe") as pool:
        gpus = [pool.submit(ask, ask_there) for tool, ask in _GPU_PROBES if tool in tools]
        processor = pool.submit(_PROCESSORS[system], run)
        compiler = pool.submit(_compiler, run, which, environ, system)
        cpu = processor.result()
        found = [gpu for answer in gpus for gpu in answer.result()]
        memory = cpu.memory_bytes
        if system == "macos" and machine == "arm64":
            found.append(Gpu(api="metal", name=cpu.name, memory_bytes=memory and memory * 2 // 3))
        return Hardware(
            system=system,
            machine=machine,
            cpu=cpu.name,
            cores=max(1, min(cpu.cores or 1, _usable_cpus())),
            memory_bytes=memory,
            features=cpu.features,
            gpus=tuple(found),
            compiler=compiler.result(),
            tools=tools,
            nvcc=beside.get("nvcc", ""),
        )


def _in_folders(tool: str, folders: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The first of these folders that has the program; one that begins with a variable that is not set is passed over."""
    for folder in folders:
        variable, slash, rest = folder.partition("/")
        head = environ.get(variable[1:], "") if variable.startswith("$") else variable
        if (head or not variable) and (path := shutil.which(tool, path=f"{head}{slash}{rest}")):
            return path
    return None


def _system() -> Literal["linux", "macos", "windows", "other"]:
    if sys.platform == "darwin":
        return "macos"
    if sys.platform == "win32":
        return "windows"
    return "linux" if sys.platform.startswith("linux") else "other"


def _usable_cpus() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Processor(msgspec.Struct, frozen=True):
    name: str = ""
    cores: int | None = None
    memory_bytes: int | None = None
    features: frozenset[str] = frozenset()


def _linux(_run: Run) -> _Processor:
    info = output.cpuinfo(_text("/proc/cpuinfo"))
    total = output.meminfo(_text("/proc/meminfo"))
    # A container may have less than the machine.
    limits = [output.number(_text(path)) for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")]
    memory = min((size for size in (total, *limits) if size), default=None)
    return _Processor(name=info.name, cores=info.cores or _usable_cpus(), memory_bytes=memory, features=info.features)


def _macos(run: Run) -> _Processor:
    said = output.sysctl(run(("sysctl", "-a")))
    cores = output.number(said.get("hw.perflevel0.physicalcpu", "")) or output.number(said.get("hw.physicalcpu", ""))
    words = " ".join(said.get(key, "") for key in ("machdep.cpu.features", "machdep.cpu.leaf7_features")).lower().split()
    return _Processor(
        name=said.get("machdep.cpu.brand_string", ""),
        cores=cores,
        memory_bytes=output.number(said.get("hw.memsize", "")),
        features=output.features(words),
    )


def _windows(run: Run) -> _Processor:
    query = "$c=Get-CimInstance Win32_Processor; ($c|Measure-Object NumberOfCores -Sum).Sum; (Get-CimInstance Win32_ComputerSystem).TotalPhysicalMemory; @($c)[0].Name"
    lines = [line.strip() for line in run(("powershell", "-NoProfile", "-NonInteractive", "-Command", query)).splitlines() if line.strip()]
    cores, memory, name = (*lines, "", "", "")[:3]
    return _Processor(
        name=name,
        cores=output.number(cores) or max(1, _usable_cpus() // 2),
        memory_bytes=output.number(memory),
        features=_windows_features(),
    )


def _other(_run: Run) -> _Processor:
    return _Processor(name=platform.processor(), cores=_usable_cpus())


_PROCESSORS: dict[str, Callable[[Run], _Processor]] = {"linux": _linux, "macos": _macos, "windows": _windows, "other": _other}


def _windows_features() -> frozenset[str]:
    if sys.platform != "win32":
        return frozenset()
    import ctypes  # noqa: PLC0415 - only this system needs it

    present = ctypes.windll.kernel32.IsProcessorFeaturePresent
    avx2, avx512 = 40, 41  # PF_AVX2_INSTRUCTIONS_AVAILABLE, PF_AVX512F_INSTRUCTIONS_AVAILABLE
    found = {"avx2", "fma", "f16c"} if present(avx2) else set()
    return frozenset(found | {"avx512"} if present(avx512) else found)


def _cuda(run: Run) -> list[Gpu]:
    said = run(("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"))
    return [Gpu(api="cuda", name=name, memory_bytes=memory) for name, memory in output.nvidia_smi(said)]


def _rocm(run: Run) -> list[Gpu]:
    memory = output.rocm_smi(run(("rocm-smi", "--showmeminfo", "vram", "--csv")))
    found = output.rocminfo(run(("rocminfo",)))
    return [
        Gpu(api="rocm", name=name, target=target, memory_bytes=memory[n] if n < len(memory) else None)
        for n, (name, target) in enumerate(found)
    ]


def _vulkan(run: Run) -> list[Gpu]:
    return [Gpu(api="vulkan", name=name) for name in output.vulkaninfo(run(("vulkaninfo", "--summary")))]


def _sycl(run: Run) -> list[Gpu]:
    return [Gpu(api="sycl", name=name) for name in output.sycl_ls(run(("sycl-ls",)))]


_GPU_PROBES: tuple[tuple[str, Callable[[Run], list[Gpu]]], ...] = (
    ("nvidia-smi", _cuda),
    ("rocminfo", _rocm),
    ("sycl-ls", _sycl),
    ("vulkaninfo", _vulkan),
)


def _compiler(run: Run, which: Callable[[str], str | None], environ: Mapping[str, str], system: str) -> Compiler | None:
    if system == "windows" and which("cl"):
        # It tells its version without any argument, on the error stream and with an exit code of its own.
        return Compiler(kind="msvc", version=(), command="cl")
    asked = environ.get("CXX", "").split()
    for command in (*asked[:1], "c++", "g++", "clang++"):
        if which(command):
            kind, version = output.compiler(run((command, "--version")))
            if kind is not None:
                return Compiler(kind=kind, version=version, command=command)
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
