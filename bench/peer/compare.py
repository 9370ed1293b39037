# SPDX-License-Identifier: Apache-2.0
"""Sets what bench/latency.c and bench/growth.c wrote beside what the peers wrote: compare.py FOLDER."""
import json
import os
import sys

PEERS = ("classic", "expandable", "async")
BY_NAME = ("trace_cold", "trace_warm")  # matched by name of the trace, others by parameter


def load(path, lines=False):
    if not os.path.exists(path):
        return []
    with open(path) as text:
        return [json.loads(line) for line in text if line.strip()] if lines else json.load(text)


def main():
    folder = sys.argv[1]
    ours = load(os.path.join(folder, "latency.json"))
    for row in load(os.path.join(folder, "growth.json")):
        if row["what"] == "growth" and row["way"] == "granary":
            for what in ("grow", "back"):
                ours.append({"shape": "growth", "detail": "cold" if what == "grow" else "back",
                             "param": row["gib"], "granary_ns": row[what + "_us"] * 1e3})
    theirs = {}
    for row in load(os.path.join(folder, "peer.jsonl"), lines=True):
        value = row.get("ns", row["us"] * 1e3 if "us" in row else None)
        if value is None or row["shape"] == "capture":
            continue
        key = row["detail"] if row["shape"] in BY_NAME or row["shape"] == "growth" else ""
        number = 0 if row["shape"] in BY_NAME else row["param"]
        theirs[row["shape"], key, number, row["peer"]] = value
    print(f"{'shape':15} {'':20} {'param':>10} {'granary ns':>12} {'classic':>10} {'expandable':>11} "
          f"{'async':>10} {'x fastest PyTorch':>18}")
    for row in ours:
        key = row["detail"] if row["shape"] in BY_NAME or row["shape"] == "growth" else ""
        number = 0 if row["shape"] in BY_NAME else row["param"]
        found = [theirs.get((row["shape"], key, number, peer)) for peer in PEERS]
        if not any(found):
            continue
        cells = [f"{value:.0f}" if value else "-" for value in found]
        native = [value for value in found[:2] if value]
        factor = f"{min(native) / row['granary_ns']:.1f}" if native else "-"
        print(f"{row['shape']:15} {row['detail'][:20]:20} {row['param']:10.0f} {row['granary_ns']:12.1f} "
              f"{cells[0]:>10} {cells[1]:>11} {cells[2]:>10} {factor:>18}")


main()
