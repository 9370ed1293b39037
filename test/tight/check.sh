#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How tight recorded jobs are packed, on the simulated device: check.sh TOOL TRACE... prints a line a job and
# fails when one takes more than the library promises: without a limit 1.04 times what is active at the peak,
# with reclaim:eager 1.01; and each ends on a card of 1.01 times that, with extent_mb:2 on one of 1.005.
set -uo pipefail
tool=$1 failed=0
shift

replay() { "$tool" replay --driver sim --repeat 0 --json "$@"; }
field() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"; }
at_most() { # VALUE MOST
    awk -v value="${1:-9}" -v most="$2" 'BEGIN {exit !(value <= most)}' || failed=1
}
ends() { # TIMES PEAK ARGUMENT...
    local times=$1 peak=$2
    shift 2
    replay --memory "$(awk -v p="$peak" -v t="$times" 'BEGIN {printf "%.0f", p * t}')" "$@" >/dev/null && echo ends || echo FAILS
}

printf '%-12s%12s%10s%10s%10s%22s\n' trace 'active MiB' ratio eager 1.01x '1.005x, extent_mb:2'
for file; do
    line=$(replay "$file")
    peak=$(field peak_active_bytes <<<"$line") ratio=$(field peak_ratio <<<"$line")
    eager=$(replay --conf reclaim:eager "$file" | field peak_ratio)
    usual=$(ends 1.01 "$peak" "$file") small=$(ends 1.005 "$peak" --conf extent_mb:2 "$file")
    printf '%-12s%12.1f%10s%10s%10s%22s\n' "$(basename "$file" .trace.gz)" "$(awk -v p="$peak" 'BEGIN {print p / 1048576}')" \
        "$ratio" "$eager" "$usual" "$small"
    at_most "$ratio" 1.04
    at_most "$eager" 1.01
    [ "$usual$small" = endsends ] || failed=1
done
exit $failed
