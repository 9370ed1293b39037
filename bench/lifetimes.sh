#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a hint of lifetimes would bring: lifetimes.sh PERCENT TRACE FOLDER writes the trace to FOLDER with
# every block that lives for more than PERCENT of all operations on a pool of its own (its stream's
# number plus 100). Replay both, or hand both to smallest.sh.
set -euo pipefail
percent=$1 trace=$2 folder=$3
mkdir -p "$folder"
zcat "$trace" | awk -v percent="$percent" '
    {line[NR] = $0}
    $1 == "a" {born[$2] = ++n}
    $1 == "f" {life[$2] = ++n - born[$2]}
    END {
        for (i = 1; i <= NR; i++) {
            if (split(line[i], part, " ") == 4 && part[1] == "a") {
                id = part[2]
                age = id in life ? life[id] : n - born[id]
                if (age * 100 > n * percent) line[i] = "a " id " " part[3] " " part[4] + 100
            }
            print line[i]
        }
    }' | gzip -1 >"$folder/$(basename "$trace")"
