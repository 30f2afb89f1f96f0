from __future__ import annotations

import sys
import time

import pytest

from monkeycode_lsp.models import hardware, hardware_output
from monkeycode_lsp.models.hardware import Gpu, Hardware

CPUINFO = """processor\t: 0
model name\t: Big CPU
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu avx2 fma f16c avx512f avx512_vnni amx_tile amx_int8

processor\t: 1
model name\t: Big CPU
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu avx2

processor\t: 2
model name\t: Big CPU
physical id\t: 0
core id\t\t: 1

processor\t: 3
model name\t: Big CPU
physical id\t: 1
core id\t\t: 0
"""

ROCMINFO = """
Agent 1
*******
  Name:                    AMD Ryzen 9 7950X
  Marketing Name:          AMD Ryzen 9 7950X
  Device Type:             CPU
*******
Agent 2
*******
  Name:                    gfx1100
  Marketing Name:          AMD Radeon RX 7900 XTX
  Device Type:             GPU
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx1100
"""

VULKANINFO = """
Devices:
========
GPU0:
\tapiVersion         = 1.3.277
\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
\tdeviceName         = NVIDIA GeForce RTX 3060
GPU1:
\tdeviceType         = PHYSICAL_DEVICE_TYPE_CPU
\tdeviceName         = llvmpipe (LLVM 15.0.6, 256 bits)
"""

SYCL_LS = """[opencl:cpu][opencl:0] Intel(R) OpenCL, 13th Gen Intel(R) Core(TM) i7
[opencl:gpu][opencl:1] Intel(R) OpenCL Graphics, Intel(R) Arc(TM) A770 Graphics
[level_zero:gpu][level_zero:0] Intel(R) oneAPI Unified Runtime over Level-Zero, Intel(R) Arc(TM) A770 Graphics 12.55.8
"""

GCC = "g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
UBUNTU_CPP = "c++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\nCopyright (C) 2023 Free Software Foundation, Inc.\n"
FEDORA = "g++ (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)\nCopyright (C) 2024 Free Software Foundation, Inc.\n"
CLANG = "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n"
APPLE = "Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23.4.0\n"


def test_cores_are_counted_once_and_features_named():
    info = hardware_output.cpuinfo(CPUINFO)
    assert info.name == "Big CPU"
    assert info.cores == 3
    assert info.features == {"avx2", "fma", "f16c", "avx512", "amx"}


def test_an_arm_processor_does_not_say_its_cores():
    info = hardware_output.cpuinfo("processor\t: 0\nFeatures\t: fp asimd\n\nprocessor\t: 1\n")
    assert (info.name, info.cores, info.features) == ("", None, frozenset())


@pytest.mark.parametrize(
    ("said", "kind", "version"),
    [
        (GCC, "gcc", (12, 2, 0)),
        (UBUNTU_CPP, "gcc", (13, 3, 0)),
        (FEDORA, "gcc", (14, 2, 1)),
        (CLANG, "clang", (14, 0, 6)),
        (APPLE, "clang", (15, 0, 0)),
        ("", None, ()),
        ("command not found", None, ()),
    ],
)
def test_compilers_are_told_apart(said, kind, version):
    assert hardware_output.compiler(said) == (kind, version)


def test_gpu_programs_are_understood():
    assert hardware_output.nvidia_smi("NVIDIA RTX 4090, 24564\nTesla T4, [N/A]\n") == [("NVIDIA RTX 4090", 24564 << 20), ("Tesla T4", None)]
    assert hardware_output.rocminfo(ROCMINFO) == [("AMD Radeon RX 7900 XTX", "gfx1100")]
    assert hardware_output.rocm_smi("device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,25753026560,1\n") == [25753026560]
    assert hardware_output.vulkaninfo(VULKANINFO) == ["NVIDIA GeForce RTX 3060"]
    assert len(hardware_output.sycl_ls(SYCL_LS)) == 1
    assert "Arc" in hardware_output.sycl_ls(SYCL_LS)[0]


@pytest.mark.parametrize("text", ["", "\n", "No devices were found", "a,b,c\n:\n=\n", "GPU0:\n", "Agent 1\n", "\0"])
def test_unexpected_words_are_no_hardware(text):
    assert hardware_output.rocminfo(text) == []
    assert hardware_output.rocm_smi(text) == []
    assert hardware_output.sycl_ls(text) == []
    assert hardware_output.compiler(text) == (None, ())
    assert hardware_output.meminfo(text) is None
    assert hardware_output.number(text) is None


def test_container_limits_are_numbers_or_nothing():
    assert hardware_output.number("max\n") is None
    assert hardware_output.number("4294967296\n") == 4 << 30


def test_what_programs_say_becomes_hardware():
    said = {"nvidia-smi": "NVIDIA RTX 4090, 24564\n", "rocminfo": ROCMINFO, "rocm-smi": "card0,25753026560,1\n", "my-g++": GCC}
    found = hardware.probe(
        lambda argv: said.get(argv[0], ""), which=lambda tool: tool if tool in {*said, "cmake"} else None, environ={"CXX": "my-g++ -O2"}
    )
    assert Gpu(api="cuda", name="NVIDIA RTX 4090", memory_bytes=24564 << 20) in found.gpus
    assert found.gpu("rocm") == Gpu(api="rocm", name="AMD Radeon RX 7900 XTX", memory_bytes=25753026560, target="gfx1100")
    assert found.gpu("sycl") is None
    assert (found.compiler.kind, found.compiler.version, found.compiler.command) == ("gcc", (12, 2, 0), "my-g++")
    assert "cmake" in found.tools
    assert "ninja" not in found.tools


@pytest.mark.skipif(sys.platform == "win32", reason="programs are files with a bit there")
def test_toolkits_that_are_not_on_path_are_found_where_they_are_installed(tmp_path):
    for name in ("cuda/bin/nvcc", "rocm/bin/rocminfo"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch(mode=0o755)
    rocminfo = str(tmp_path / "rocm/bin/rocminfo")
    folders = {
        "nvcc": ("$CUDA_HOME/bin", str(tmp_path / "cuda/bin")),
        "rocminfo": ("$ROCM_PATH/bin", str(tmp_path)),
        "hipcc": ("$ROCM_PATH/bin",),
        "glslc": ("$NOT_SET/bin",),
    }
    found = hardware.probe(
        lambda argv: ROCMINFO if argv[0] == rocminfo else "",
        which=lambda _: None,
        environ={"ROCM_PATH": str(tmp_path / "rocm")},
        beside_path=folders,
    )
    assert found.nvcc == str(tmp_path / "cuda/bin/nvcc")
    assert found.tools == {"nvcc", "rocminfo"}
    assert found.gpu("rocm").target == "gfx1100"


def test_programs_that_are_there_and_fail_are_no_hardware():
    found = hardware.probe(lambda _: "", which=lambda tool: tool, environ={})
    assert [gpu for gpu in found.gpus if gpu.api != "metal"] == []
    assert found.compiler is None or found.system == "windows"


def test_this_machine_is_probed_in_bounded_time():
    began = time.monotonic()
    found = hardware.probe()
    assert time.monotonic() - began < 20
    assert found.cores >= 1
    assert found.machine
    if sys.platform in {"linux", "darwin", "win32"}:
        assert found.memory_bytes > 1 << 28


def test_a_program_that_hangs_fails_or_is_missing_says_nothing(tmp_path):
    assert hardware.run_bounded((sys.executable, "-c", "print('yes')")).strip() == "yes"
    assert hardware.run_bounded((sys.executable, "-c", "import sys; print('no'); sys.exit(3)")) == ""
    assert hardware.run_bounded((str(tmp_path / "missing"),)) == ""
    assert hardware.run_bounded((sys.executable, "-c", "import time; time.sleep(60)"), within_s=0.2) == ""


def test_the_gpu_with_the_most_memory_comes_first():
    small, large = Gpu(api="cuda", name="small", memory_bytes=1), Gpu(api="cuda", name="large", memory_bytes=2)
    assert Hardware(system="linux", machine="x86_64", gpus=(small, large)).gpu("cuda") == large
