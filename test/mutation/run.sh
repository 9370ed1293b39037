#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Breaks the library on purpose, one fault after the other, and expects the random programs to find
# each. Prints a table; fails when a mutant survives.
#
#   test/mutation/run.sh DIR     works in DIR (build/mutants); MUTANT=n runs one, PROGRAMS=n sets how
#                                many programs a survivor has lived through
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$1
list=$here/mutants.list
programs=${PROGRAMS:-200000}
tree=$dir/tree

mkdir -p "$tree" || exit 2
# Only what differs is written, so that a second run builds little.
for part in include src test Makefile; do cp -ru "$root/$part" "$tree/" || exit 2; done
make=${MAKE:-make}
runner=build/release/test/prop/runner

build() {
    (cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL "$make" --no-print-directory -j "$(nproc)" V=release "$runner") >"$dir/build.log" 2>&1
}

# 0: no finding; 124: it hangs, which is a finding too.
run() {
    (cd "$tree" && GRANARY_PROGRAMS=$programs CK_RUN_SUITE=order timeout "${1}" "./$runner") >"$dir/run.log" 2>&1
}

restore() {
    for part in include src; do
        (cd "$root" && find "$part" -type f) | while read -r file; do
            cmp -s "$root/$file" "$tree/$file" || cp "$root/$file" "$tree/$file"
        done
    done
}

restore
if ! build; then
    echo "mutants: the tree does not build; see $dir/build.log" >&2
    exit 2
fi

number=0 survived=0 killed=0
awk -f "$here/apply.awk" "$list" >"$dir/names"
while read -r name; do
    number=$((number + 1))
    [ -n "${MUTANT:-}" ] && [ "$MUTANT" != "$number" ] && continue
    restore
    verdict=killed why=
    if ! awk -v number=$number -v tree="$tree" -f "$here/apply.awk" "$list"; then
        verdict='NOT APPLIED'
    elif ! build; then
        verdict='NOT BUILT'
    elif run 200; then
        verdict=SURVIVED
    else
        why=$(sed -n 's/^order: \(seed .*\)/\1/p' "$dir/run.log" | head -n 1 | cut -c 1-90)
        : "${why:=$(tail -n 1 "$dir/run.log" | cut -c 1-90)}"
    fi
    printf '%3d  %-11s %-74s %s\n' "$number" "$verdict" "$name" "$why"
    if [ "$verdict" = killed ]; then killed=$((killed + 1)); else survived=$((survived + 1)); fi
done <"$dir/names"
restore
echo "mutants: $killed killed, $survived not"
[ "$survived" = 0 ] && [ "$killed" -gt 0 ]
