#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Holds the instructions of each operation against the budget: budget.sh GUARD BUDGET [--update]
# The counts do not depend on the machine's speed, so a slow-down cannot hide in noise. They depend on
# the compiler: the budget names the one that it is for, and another one is not held against it.
set -euo pipefail
guard=$1 budget=$2 update=${3:-}
here=$(dirname "$0")
few=4000 many=12000 allowed=5 # operations; percent above the budget

command -v valgrind >/dev/null || { echo "guard: valgrind is missing: run make deps WITH=valgrind" >&2; exit 1; }
compiler=$(sed -n 's/.*\.comment.*//; s/^# compiler: //p' "$budget" 2>/dev/null || true)
found=$(readelf -p .comment "$guard" | sed -n 's/^ *\[ *0\] *//p')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

count() { # SHAPE N FILE
    valgrind -q --tool=callgrind --callgrind-out-file="$3.out" --compress-strings=no --compress-pos=no \
        "$guard" "$1" "$2" 2>"$3.log" || { cat "$3.log" >&2; return 1; }
    awk -f "$here/callgrind.awk" "$3.out" >"$3"
}

measure() { # SHAPE
    count "$1" $few "$folder/$1.few" & first=$!
    count "$1" $many "$folder/$1.many"
    wait $first
    awk -v n=$((many - few)) 'NR == 1 {x = $1} END {printf "%.1f\n", ($1 - x) / n}' \
        "$folder/$1.few" "$folder/$1.many"
}

shapes=$("$guard")
for shape in $shapes; do
    now=$(measure "$shape")
    printf '%s\t%s\n' "$shape" "$now"
done >"$folder/now"

if [ "$update" = --update ]; then
    {
        echo "# Instructions of the library for one operation (bench/guard.c), as test/lint/budget.sh counts them."
        echo "# make guard fails when one takes $allowed % more. make guard UPDATE=--update writes this file anew."
        echo "# compiler: $found"
        printf '# shape\tinstructions\n'
        cat "$folder/now"
    } >"$budget"
fi
awk -v allowed=$allowed -v same="$([ "$compiler" = "$found" ] || [ "$update" = --update ] && echo 1 || echo 0)" '
    BEGIN { printf "%-16s%14s%10s%10s\n", "shape", "instructions", "budget", "" }
    /^#/ || NF < 2 { next }
    NR == FNR { budget[$1] = $2; next }
    {
        word = ""
        if (!($1 in budget)) { word = "no budget"; bad = 1 }
        else {
            word = sprintf("%+.1f %%", ($2 / budget[$1] - 1) * 100)
            if ($2 > budget[$1] * (1 + allowed / 100)) { word = word "  OVER"; bad = 1 }
        }
        printf "%-16s%14.1f%10s%10s\n", $1, $2, $1 in budget ? budget[$1] : "-", word
    }
    END {
        if (bad && !same) { print "guard: another compiler than the budget'\''s: not held against it"; bad = 0 }
        exit bad
    }' "$budget" "$folder/now"
