#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On which of 20 cards each trace ends, simulated: caps.sh TOOL CONF TRACE... prints a line a trace, with a dot for
# each card that is enough, of 1.0005, 1.001, ... 1.010 times its peak active memory, and an x for each that is not.
set -uo pipefail
tool=$1 conf=$2 failed=0 traces=0
shift 2

for file; do
    peak=$("$tool" replay --driver sim --repeat 0 --json "$file" | sed -n 's/.*"peak_active_bytes":\([0-9]*\).*/\1/p')
    [ -n "$peak" ] || { echo "$file: the uncapped replay failed"; exit 1; }
    map=
    for step in {1..20}; do
        bytes=$(awk -v p="$peak" -v s="$step" 'BEGIN {printf "%.0f", p * (1 + s * 0.0005)}')
        "$tool" replay --driver sim --repeat 0 --json --conf "$conf" --memory "$bytes" "$file" >/dev/null && map+=. || map+=x
    done
    fails=${map//./}
    failed=$((failed + ${#fails})) traces=$((traces + 1))
    printf '%-16s%s\n' "$(basename "$file" .trace.gz)" "$map"
done
awk -v f="$failed" -v t="$traces" 'BEGIN {printf "fails in the mean %.1f of 20\n", f / t}'
