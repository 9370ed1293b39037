#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The smallest card on which each trace ends: smallest.sh TOOL DRIVER TRACE... prints a table; each line
# of JSON that the tool wrote goes to the file that JSON names, if it does. CONFS and CAPS may be set.
set -uo pipefail
tool=$1 driver=$2
shift 2
caps=${CAPS:-1.003 1.005 1.01 1.02 1.05 1.1 1.2}
read -r -a confs <<<"${CONFS:-extent_mb:8 extent_mb:2}" # 8 is the default

field() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"; }

printf '%-12s %-16s %12s %8s %10s %10s %12s %8s %10s %8s\n' trace conf 'active MiB' 'least' 'ns/op' 'total ms' 'moved MiB' 'moves' 'ms moving' 'calls'
for file; do
    name=$(basename "$file" .trace.gz)
    peak=$("$tool" replay --driver sim --repeat 0 --json "$file" | field peak_active_bytes)
    [ -n "$peak" ] || { echo "$name: the uncapped replay failed"; continue; }
    for conf in "${confs[@]}"; do
        least=- line=
        for cap in $caps; do
            bytes=$(awk -v p="$peak" -v c="$cap" 'BEGIN {printf "%.0f", p * c}')
            line=$("$tool" replay --driver "$driver" --repeat 0 --json --conf "$conf" --memory "$bytes" "$file" 2>&1)
            rc=$?
            [ -n "${JSON:-}" ] && [ "${line:0:1}" = '{' ] && printf '{"cap":%s,"fits":%s,"run":%s}\n' "$cap" "$([ $rc = 0 ] && echo true || echo false)" "$line" >>"$JSON"
            [ $rc = 0 ] && { least=$cap; break; }
        done
        ns=$(field ns_per_op <<<"$line") ops=$(field ops <<<"$line")
        printf '%-12s %-16s %12.1f %8s %10.0f %10.1f %12.0f %8s %10.1f %8s\n' "$name" "$conf" \
            "$(awk -v p="$peak" 'BEGIN {print p / 1048576}')" "$least" "${ns:-0}" \
            "$(awk -v a="${ns:-0}" -v b="${ops:-0}" 'BEGIN {print a * b / 1e6}')" \
            "$(field moved_bytes <<<"$line" | awk '{print $1 / 1048576}')" "$(field moved_extents <<<"$line")" \
            "$(field moving_ns <<<"$line" | awk '{print $1 / 1e6}')" \
            "$(sed -n 's/.*"driver_calls":{\(.*\)}.*/\1/p' <<<"$line" | tr ',' '\n' | awk -F: '{s += $2} END {print s + 0}')"
    done
done
