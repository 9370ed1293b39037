#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds a program against PyTorch: build.sh SOURCE OBJECT PROGRAM CXX PYTHON CUDA_HOME. Says what is missing.
set -euo pipefail
source=$1 object=$2 program=$3 cxx=$4 python=$5 cuda=${6:-}

read -r torch abi <<<"$("$python" -c 'import torch, os
print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()))' 2>/dev/null)"
[ -n "$torch" ] ||
    { echo "bench-peer: needs PyTorch with CUDA; $python has none (PYTHON=... names another)" >&2; exit 1; }
if [ -z "$cuda" ]; then
    nvcc=$(command -v nvcc) || { echo "bench-peer: needs the CUDA toolkit (CUDA_HOME=...)" >&2; exit 1; }
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
fi
[ -f "$cuda/include/cuda_runtime.h" ] || { echo "bench-peer: no cuda_runtime.h in $cuda/include" >&2; exit 1; }
libs=
for folder in "$torch/lib" "$cuda/lib64" "$cuda/targets/x86_64-linux/lib" "$torch"/../nvidia/cu13/lib "$torch"/../nvidia/cuda_runtime/lib; do
    [ -d "$folder" ] && libs="$libs -L$folder -Wl,-rpath,$folder"
done
cudart=-lcudart
if ! ls "$cuda"/lib64/libcudart.so "$cuda"/targets/x86_64-linux/lib/libcudart.so >/dev/null 2>&1; then
    # Without the toolkit's link name, the one that PyTorch itself loads.
    found=$(ls "$torch"/../nvidia/*/lib/libcudart.so.* "$torch"/lib/libcudart*.so.* 2>/dev/null | head -n 1)
    [ -n "$found" ] && cudart=-l:$(basename "$found")
fi
# shellcheck disable=SC2086
"$cxx" -std=c++17 -O2 -w -pthread -D_GLIBCXX_USE_CXX11_ABI="$abi" -isystem "$torch/include" \
    -isystem "$torch/include/torch/csrc/api/include" -isystem "$cuda/include" "$source" "$object" -o "$program" \
    -Wl,--no-as-needed $libs -ltorch_cuda -ltorch -ltorch_cpu -lc10 -lc10_cuda $cudart
