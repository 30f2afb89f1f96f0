from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from monkeycode_lsp.models import build
from monkeycode_lsp.models.hardware import Compiler, Gpu, Hardware

GCC12 = Compiler(kind="gcc", version=(12, 2, 0), command="c++")
GCC13 = Compiler(kind="gcc", version=(13, 3, 0), command="c++")
CLANG = Compiler(kind="clang", version=(14, 0, 6), command="c++")
MSVC = Compiler(kind="msvc", version=(), command="cl")
LEAN = "-DLLAVA_BUILD=OFF -DLLAMA_BUILD_MTMD=OFF -DLLAMA_OPENSSL=OFF"
PIP = ("python", "-m", "pip", "install")


def machine(*, compiler=GCC13, gpu="", tools=(), features=("avx2",), system="linux", target="", cores=4):
    gpus = (Gpu(api=gpu, name="Card", target=target),) if gpu else ()
    return Hardware(
        system=system, machine="x86_64", cores=cores, compiler=compiler, gpus=gpus, tools=frozenset(tools), features=frozenset(features)
    )


@pytest.mark.parametrize(
    ("hardware", "options", "reason"),
    [
        (machine(), "", "Built for this processor"),
        (machine(gpu="cuda", tools=["nvcc"]), "-DGGML_CUDA=on", "built for CUDA"),
        (machine(tools=["nvcc"]), "", "Built for this processor"),
        (machine(gpu="metal", compiler=CLANG, system="macos"), "-DGGML_METAL=on", "built for Metal"),
        (machine(gpu="rocm", tools=["hipcc"], target="gfx1100"), "-DGGML_HIP=on -DGPU_TARGETS=gfx1100", "built for ROCm"),
        (machine(gpu="rocm", tools=["hipcc"]), "-DGGML_HIP=on", "built for ROCm"),
        (machine(gpu="sycl", tools=["icpx"]), "-DGGML_SYCL=on -DCMAKE_C_COMPILER=icx -DCMAKE_CXX_COMPILER=icpx", "built for SYCL"),
        (machine(gpu="vulkan", tools=["glslc"]), "-DGGML_VULKAN=on", "built for Vulkan"),
        (machine(compiler=MSVC, system="windows"), "", "Built for this processor"),
    ],
)
def test_each_hardware_gets_its_options(hardware, options, reason):
    built = build.command(hardware, installer=PIP)
    assert built.argv == (*PIP, build.REQUIREMENT)
    assert built.env == {"CMAKE_ARGS": f"{LEAN} {options}".strip(), "CMAKE_BUILD_PARALLEL_LEVEL": "4"}
    assert reason in built.reason
    assert built.notes == ()
    assert built.compiles


def test_a_cuda_compiler_that_is_not_on_path_is_named():
    hardware = Hardware(
        system="linux", machine="x86_64", compiler=GCC13, gpus=(Gpu(api="cuda", name="Card"),), tools=frozenset({"nvcc"}),
        nvcc="/usr/local/cuda/bin/nvcc",
    )  # fmt: skip
    assert build.command(hardware, installer=PIP).env["CUDACXX"] == "/usr/local/cuda/bin/nvcc"
    assert "CUDACXX=/usr/local/cuda/bin/nvcc" in build.render(build.command(hardware, installer=PIP), windows=False)
    without_gpu = Hardware(system="linux", machine="x86_64", compiler=GCC13, tools=frozenset({"nvcc"}), nvcc="/usr/local/cuda/bin/nvcc")
    assert "CUDACXX" not in build.command(without_gpu, installer=PIP).env


@pytest.mark.parametrize(("gpu", "tool"), [("cuda", "nvcc"), ("rocm", "hipcc"), ("sycl", "icpx"), ("vulkan", "glslc")])
def test_a_gpu_without_its_compiler_is_said_and_the_processor_used(gpu, tool):
    built = build.command(machine(gpu=gpu))
    assert built.env["CMAKE_ARGS"] == LEAN
    assert f"Card is here, but not {tool}" in built.notes[0]


def test_the_next_backend_is_used_when_the_better_ones_compiler_is_missing():
    gpus = (Gpu(api="cuda", name="Card"), Gpu(api="vulkan", name="Card"))
    hardware = Hardware(system="linux", machine="x86_64", compiler=GCC13, gpus=gpus, tools=frozenset({"glslc"}))
    built = build.command(hardware)
    assert built.env["CMAKE_ARGS"].endswith("-DGGML_VULKAN=on")
    assert "nvcc" in built.notes[0]


@pytest.mark.parametrize(
    ("compiler", "features", "cured"),
    [
        (GCC12, ("avx2", "amx"), True),
        (GCC12, ("avx2",), False),
        (GCC13, ("avx2", "amx"), False),
        (CLANG, ("avx2", "amx"), False),
    ],
)
def test_amx_under_an_old_gcc_is_cured(compiler, features, cured):
    built = build.command(machine(compiler=compiler, features=features))
    assert built.env.get("CXXFLAGS") == ("-fno-tree-dse -fno-dse" if cured else None)
    assert any("AMX" in note for note in built.notes) == cured


def test_a_portable_build_needs_no_cure():
    built = build.command(machine(compiler=GCC12, features=("amx",)), portable=True)
    assert built.env["CMAKE_ARGS"] == f"{LEAN} -DGGML_NATIVE=OFF"
    assert "CXXFLAGS" not in built.env


def test_a_rebuild_does_not_take_the_old_wheel_from_the_cache():
    built = build.command(machine(), installer=PIP, rebuild=True)
    assert built.argv == (*PIP, "--force-reinstall", "--no-cache-dir", "--no-deps", build.REQUIREMENT)


@pytest.mark.parametrize("system", ["linux", "macos", "windows", "other"])
def test_without_a_compiler_the_prebuilt_engine_is_installed(system):
    built = build.command(machine(compiler=None, system=system), installer=PIP)
    assert built.argv == (*PIP, "monkeycode-lsp[prebuilt]")
    assert built.env == {}
    assert not built.compiles
    assert "no C++ compiler" in built.reason
    assert "install" in built.notes[0]


def test_the_printed_line_is_what_a_shell_understands():
    built = build.command(machine(compiler=GCC12, features=("amx",)), installer=(sys.executable, "-m", "pip", "install"))
    line = build.render(built, windows=False)
    words = shlex.split(line)
    assert words[0] == "CXXFLAGS=-fno-tree-dse -fno-dse"
    assert words[1] == f"CMAKE_ARGS={LEAN}"
    assert tuple(words[3:]) == built.argv
    assert "\n" not in line


@pytest.mark.skipif(os.name != "posix", reason="asks a POSIX shell")
def test_a_real_shell_runs_the_printed_line_with_its_variables():
    shows = (sys.executable, "-c", "import os, sys; print(os.environ['CMAKE_ARGS'], sys.argv[1])", "a b'c")
    built = build.Command(argv=shows, env={"CMAKE_ARGS": "-DX='1 2'; $HOME"}, reason="")
    said = subprocess.run(["/bin/sh", "-c", build.render(built, windows=False)], capture_output=True, text=True, check=True)
    assert said.stdout == "-DX='1 2'; $HOME a b'c\n"


def test_the_printed_lines_for_windows_set_variables_first():
    built = build.command(
        machine(compiler=MSVC, system="windows"), installer=(r"C:\Program Files\Python\python.exe", "-m", "pip", "install")
    )
    assert build.render(built, windows=True).splitlines() == [
        f'set "CMAKE_ARGS={LEAN}"',
        'set "CMAKE_BUILD_PARALLEL_LEVEL=4"',
        rf'"C:\Program Files\Python\python.exe" -m pip install {build.REQUIREMENT}',
    ]


def test_running_hands_on_each_line_and_the_exit_code():
    script = "import os, sys; print('one'); print(os.environ['CMAKE_ARGS'], file=sys.stderr); sys.exit(3)"
    lines: list[str] = []
    built = build.Command(argv=(sys.executable, "-c", script), env={"CMAKE_ARGS": "two"}, reason="")
    assert build.run(built, on_line=lines.append) == 3
    assert sorted(lines) == ["one", "two"]


def test_stopping_a_build_stops_its_process():
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    script = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        build.run(build.Command(argv=(sys.executable, "-c", script), env={}, reason=""), on_line=stop)
    if os.name == "posix":
        with pytest.raises(ProcessLookupError):
            os.kill(int(lines[0]), 0)
