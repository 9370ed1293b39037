#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does every mutant of the list still fit the code? Each text must occur once in its file.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

count=$(awk -f "$here/apply.awk" "$here/mutants.list" | wc -l)
number=1
while [ "$number" -le "$count" ]; do
    rm -rf "$tree/src"
    cp -r "$here/../../src" "$tree/"
    awk -v number="$number" -v tree="$tree" -f "$here/apply.awk" "$here/mutants.list" >/dev/null || exit 1
    number=$((number + 1))
done
echo "mutants: $count fit the code"
