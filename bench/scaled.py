#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traffic never seen before: scaled.py FOLDER TRACE... writes each trace to FOLDER as often as SEEDS says (3),
with every size above 1 MiB multiplied by a factor of its own, at random between exp(-0.35) and exp(0.35)."""
import gzip
import math
import os
import random
import sys

folder, traces = sys.argv[1], sys.argv[2:]
os.makedirs(folder, exist_ok=True)
for trace in traces:
    name = os.path.basename(trace).split(".")[0]
    with gzip.open(trace, "rt") as source:
        lines = source.read().split("\n")
    for seed in range(int(os.environ.get("SEEDS", "3"))):
        draw, scaled = random.Random(seed), {}
        with gzip.open(f"{folder}/{name}{seed}.trace.gz", "wt", compresslevel=1) as out:
            for line in lines:
                if line.startswith("a "):
                    _, block, size, stream = line.split()
                    size = int(size)
                    if size > 1 << 20:
                        if size not in scaled:
                            scaled[size] = max(512, int(size * math.exp(draw.uniform(-0.35, 0.35))) // 512 * 512)
                        line = f"a {block} {scaled[size]} {stream}"
                out.write(line + "\n")
