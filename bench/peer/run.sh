#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the peers: run.sh PROGRAMS OUT PYTHON [PART...]. PROGRAMS is the folder of the built ones; rows
# go to standard output and to OUT/peer.jsonl. Parts: hit holes threads growth capture trace tight.
set -uo pipefail
programs=$1 out=$2 python=$3
shift 3
[ $# -gt 0 ] || set -- hit holes threads growth capture trace tight
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
rows=$out/peer.jsonl
limit=${LIMIT:-120} # seconds for each run of a program

one() { # WAY CONF PROGRAM ARGUMENT...
    local way=$1 conf=$2 program=$3
    shift 3
    PYTORCH_CUDA_ALLOC_CONF=$conf timeout --foreground "$limit" "$program" "$way" "$rows" "$@" ||
        echo "bench-peer: $way, $*: ended with $?" >&2
}

for part in "$@"; do
    echo "== PyTorch: $part"
    case $part in
    capture)
        if [ -x "$programs/peer_capture" ]; then
            one 'reuse on' graph_capture_record_stream_reuse:True "$programs/peer_capture"
            one 'reuse off' '' "$programs/peer_capture"
        fi
        timeout --foreground "$limit" "$python" "$here/peer/capture.py" "$rows"
        ;;
    hit | holes | threads | growth | trace | tight)
        files=()
        case $part in trace | tight) files=("$here"/traces/*.trace.gz) ;; esac
        one classic '' "$programs/peer" "$part" "${files[@]}"
        one expandable expandable_segments:True "$programs/peer" "$part" "${files[@]}"
        [ "$part" = tight ] || one async backend:cudaMallocAsync "$programs/peer" "$part" "${files[@]}"
        ;;
    *) echo "bench-peer: there is no part $part" >&2; exit 2 ;;
    esac
done
