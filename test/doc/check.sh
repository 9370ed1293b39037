#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The transcripts of the documentation, run again.   check.sh BUILD FILE...
#
# In a block that begins with ```console, a line "$ COMMAND" is a command to run at the root of the
# sources, with build/release standing for BUILD; the lines up to the next one are what it prints.
# Addresses are not compared. Commands other than programs below build/release are not run.
# UPDATE=1 writes the files anew.
set -uo pipefail
build=$1
shift
count=0 bad=0

same() { sed -E 's/0x[0-9a-f]+/0x.../g'; }

# finish: compares what the last command printed with what the file says it does.
finish() {
    [ -n "$command" ] || return 0
    local printed
    printed=$(eval "${command//build\/release/$build}" 2>&1)
    count=$((count + 1))
    if [ "$(same <<<"$printed")" != "$(same <<<"$said")" ]; then
        bad=$((bad + 1))
        [ -n "${UPDATE:-}" ] || { echo "$file: $command prints something else:"; diff <(echo "$said" | same) <(echo "$printed" | same); } >&2
    fi
    out+=$(same <<<"$printed")$'\n'
    command='' said=''
}

for file in "$@"; do
    command='' said='' out='' block=0
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "$line" = '```console' ]; then
            block=1
        elif [ $block = 1 ] && [ "$line" = '```' ]; then
            finish
            block=0
        elif [ $block = 1 ] && [[ $line == '$ build/release/'* ]]; then
            finish
            command=${line#'$ '}
        elif [ -n "$command" ]; then
            said+=${said:+$'\n'}$line
            continue
        fi
        out+=$line$'\n'
    done <"$file"
    if [ -n "${UPDATE:-}" ] && [ "$out" != "$(cat "$file")"$'\n' ]; then printf '%s' "$out" >"$file"; fi
done
[ -n "${UPDATE:-}" ] && bad=0
echo "doc: $count transcripts, $bad differ"
exit $((bad > 0))
