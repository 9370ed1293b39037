# SPDX-License-Identifier: Apache-2.0
"""The shape of bench/capture.c on PyTorch from Python: record_stream inside a graph capture.

Runs itself once with graph_capture_record_stream_reuse off and once on: capture.py [JSON]. The time in
the allocator is that of the Python statements around it; peer_capture.cpp has it without them."""
import json
import os
import statistics
import subprocess
import sys
import time

BLOCK = 4 << 20


def rounds(torch, main, side, total, n):
    spent = []
    for i in range(n):
        start = time.perf_counter_ns()
        block = torch.empty(BLOCK // 4, device="cuda")
        taken = time.perf_counter_ns() - start
        block.fill_(i)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            total.copy_(block)
        start = time.perf_counter_ns()
        block.record_stream(side)
        del block
        spent.append(taken + time.perf_counter_ns() - start)
        main.wait_stream(side)
    return spent


def capture(torch, n):
    side = torch.cuda.Stream()
    total = torch.zeros(BLOCK // 4, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    graph = torch.cuda.CUDAGraph()
    start = time.perf_counter_ns()
    with torch.cuda.graph(graph):
        spent = rounds(torch, torch.cuda.current_stream(), side, total, n)
    whole = (time.perf_counter_ns() - start) / n
    pool = (torch.cuda.memory_reserved() - before) / 2**20
    graph.replay()
    torch.cuda.synchronize()
    assert total[0].item() == n - 1
    return pool, statistics.median(spent), statistics.median(spent[-(n // 10):]), whole


def child(way, out):
    try:
        import torch
    except ImportError:
        sys.exit("capture.py: needs PyTorch with CUDA")
    if not torch.cuda.is_available():
        sys.exit("capture.py: no GPU")
    for n in (100, 400, 1600, 10000):
        capture(torch, 100)
        pool, middle, late, whole = capture(torch, n)
        print(f"{way:18} {n:8} {pool:9.0f} {middle:16.0f} {late:12.0f} {whole / 1e3:16.2f}", flush=True)
        if out:
            with open(out, "a") as to:
                for detail, unit, value in (("pool grows", "MiB", pool), ("whole round", "ns", whole)):
                    to.write(json.dumps({"peer": "python, " + way, "shape": "capture", "detail": detail,
                                         "param": n, unit: round(value, 2)}) + "\n")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'PyTorch, reuse':18} {'n':>8} {'pool MiB':>9} {'Python ns/round':>16} {'last tenth':>12} {'whole us/round':>16}",
          flush=True)
    for way, conf in (("on", "graph_capture_record_stream_reuse:True"), ("off", "")):
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, CAPTURE_WAY=way)
        subprocess.run([sys.executable, __file__, out], env=env, check=False)


if __name__ == "__main__":
    if "CAPTURE_WAY" in os.environ:
        child(os.environ["CAPTURE_WAY"], sys.argv[1] if len(sys.argv) > 1 else "")
    else:
        main()
