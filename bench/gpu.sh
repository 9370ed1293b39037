#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that is measured on a GPU, in one run: OUT=FOLDER bench/gpu.sh [PART...]
# Needs a compiler, make and a driver; nvcc and a python3 with PyTorch for the peers and the random
# reads, which are left out without them. Tables go to OUT/report.txt, figures to OUT/*.json and
# OUT/*.jsonl. Each part has its own limit of time and ends alone; SECONDS_ALLOWED ends the whole.
# Parts, in this order: latency capture growth smallest traces tight.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${OUT:?where to? set OUT}")
python=${PYTHON:-python3} driver=${DRIVER:-cuda} # DRIVER=sim: to try this script without a GPU
allowed=${SECONDS_ALLOWED:-470}
jobs=$(nproc)
mkdir -p "$out"
rm -f "$out"/peer.jsonl "$out"/smallest.jsonl
exec > >(tee "$out/report.txt") 2>&1

if [ -z "${CUDA_HOME:-}" ] && nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
    CUDA_HOME=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
fi
export CUDA_HOME=${CUDA_HOME:-}
B=build/release
wanted=${*:-latency capture growth smallest traces tight}

part() { # SECONDS NAME COMMAND...
    local limit=$1 name=$2 left=$((allowed - SECONDS)) start=$SECONDS rc=0
    shift 2
    [ "$left" -lt "$limit" ] && limit=$left
    [ "$limit" -lt 5 ] && { echo "== $name: no time left"; return; }
    echo
    echo "== $name"
    timeout -k 5 "$limit" "$@" || rc=$?
    echo "-- $name: $((SECONDS - start)) s$([ $rc = 0 ] || echo ", ENDED WITH $rc")"
}

# A part of the peers, when they were built.
peers() { # SECONDS PART...
    local limit=$1
    shift
    if [ -x $B/bench/peer ]; then
        LIMIT=$limit part "$limit" "PyTorch: $*" bench/peer/run.sh $B/bench "$out" "$python" "$@"
    else
        echo "== PyTorch: $*: left out, not built"
    fi
}

compare() {
    if [ -s "$out/peer.jsonl" ]; then part 20 'beside PyTorch' "$python" bench/peer/compare.py "$out"; fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
echo "$jobs cores, $(uname -r), $(${CC:-gcc} --version | head -n 1), $(git rev-parse --short HEAD 2>/dev/null), $(date -u +%F)"
part 170 build make --no-print-directory -k -j "$jobs" V=release CUDA_HOME="$CUDA_HOME" PYTHON="$python" \
    tool bench-programs bench-peer-programs

for one in $wanted; do
    case $one in
    latency)
        part 150 latency $B/bench/latency --driver "$driver" --limit 80 --out "$out"
        peers 90 hit holes
        peers 60 threads
        compare
        ;;
    capture)
        part 60 capture $B/bench/capture --driver "$driver" --out "$out"
        peers 60 capture
        ;;
    growth)
        part 60 growth $B/bench/growth --driver "$driver" --reads $B/bench/reads.ptx --out "$out"
        peers 30 growth
        ;;
    smallest)
        JSON=$out/smallest.jsonl part 100 'smallest card' bench/smallest.sh $B/granary "$driver" bench/traces/*.trace.gz
        ;;
    traces)
        peers 90 trace
        compare
        ;;
    tight) peers 90 tight ;;
    *) echo "gpu.sh: there is no part $one" ;;
    esac
done
echo
echo "all: $SECONDS s"
