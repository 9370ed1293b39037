#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the shared library exports must be what the public headers declare.   symbols.sh LIBRARY
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$work/exported"
cat include/granary/*.h | tr '\n' ' ' | sed 's/GRANARY_API/\n&/g' |
    sed -n 's/^GRANARY_API[^(;]*[ *]\(granary_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$work/declared"
if ! diff "$work/declared" "$work/exported" >"$work/diff"; then
    echo "symbols: $1 and include/granary differ ('<' declared and missing, '>' exported and undeclared):" >&2
    grep '^[<>]' "$work/diff" >&2
    exit 1
fi
echo "symbols: $(wc -l <"$work/exported") exported, as declared"
