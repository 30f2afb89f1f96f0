#!/usr/bin/env bash
# The engine on an NVIDIA GPU: builds llama-cpp-python for CUDA, runs the benchmark with all layers there, prints its tables.
#
#   tests/gpu/check.sh PACKAGES MODEL.gguf…
#
# PACKAGES: a folder with llama-cpp-python (source archive, or a wheel built for CUDA) and wheels of what both need,
#   for a machine without a network:
#     pip download -d PACKAGES --no-binary llama-cpp-python llama-cpp-python 'scikit-build-core[pyproject]' cmake ninja numpy
#     pip download -d PACKAGES .
#   `-` asks the index instead.
# OUT: where the reports go (default: build/gpu).  FLASH=OFF leaves flash attention out, which shortens the build a lot.
# BUILD_S: how long the build may take (default 360 seconds).
# Exit status: 0 when the model runs on the GPU and aborts and drafts reach their goals, else 1.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 2
fi
packages=$1
shift

need() {
    command -v "$1" >/dev/null || { echo "$1 is not here: $2" >&2; exit 2; }
}
if ! command -v nvcc >/dev/null && [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    export PATH="${CUDA_HOME:-/usr/local/cuda}/bin:$PATH"
fi
need nvcc "install NVIDIA's CUDA toolkit, or set CUDA_HOME to it."
need nvidia-smi "the NVIDIA driver is not installed."
need c++ "install a C++ compiler (g++)."
need python3 "install Python 3.11 or newer."
for model in "$@"; do
    [ -f "$model" ] || { echo "$model is not a file." >&2; exit 2; }
done

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${OUT:-$root/build/gpu}
mkdir -p "$out"
if [ "$packages" = - ]; then
    index=()
else
    index=(--no-index --find-links "$(cd "$packages" && pwd)")
fi

nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap --format=csv,noheader
nvcc --version | tail -n 1
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')

python3 -m venv --system-site-packages "$work/venv"
python="$work/venv/bin/python"
"$python" - "$root/pyproject.toml" >"$work/needs" <<'PYTHON'
import sys, tomllib
print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]))
PYTHON
"$python" -m pip install -q "${index[@]}" -r "$work/needs" 'numpy>=1.26'

# A build for this GPU alone, without the parts that are not used here; the flags keep gcc before 13 from breaking AMX.
began=$SECONDS
CMAKE_ARGS="-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=$capability -DGGML_CUDA_FA=${FLASH:-ON} -DLLAMA_BUILD_MTMD=OFF -DLLAVA_BUILD=OFF -DLLAMA_OPENSSL=OFF" \
    CXXFLAGS="-fno-tree-dse -fno-dse" CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) \
    timeout "${BUILD_S:-360}" "$python" -m pip install --no-cache-dir "${index[@]}" 'llama-cpp-python>=0.3.36' >"$out/build.log" 2>&1 ||
    { tail -n 40 "$out/build.log" >&2; echo "llama-cpp-python could not be built within ${BUILD_S:-360} s; all of it: $out/build.log" >&2; exit 1; }
echo "llama-cpp-python is ready after $((SECONDS - began)) s"

# Where a toolkit outside the system's folders has its libraries.
export LD_LIBRARY_PATH="$(dirname "$(dirname "$(command -v nvcc)")")/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" MONKEYCODE_HOME="$work/home" PYTHONUNBUFFERED=1
status=0
for model in "$@"; do
    echo
    timeout 120 "$python" "$root/tests/gpu/check.py" "$model" "$out" || status=1
done
exit $status
