#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Holds doc/options.md against the table of options, whose keys and kinds come on standard input: every key
# has one row "| `key` | ... | `test` |", its answer is one of supported, same, better, refused, ignored, the
# test exists, and no row has a key that is not in the table. The page names the keys that are fixed at opening.
#   options.sh DOC TEST_SOURCE...
set -euo pipefail
doc=$1
shift
bad=0
complain() { echo "$doc: $*" >&2; bad=1; }

records=$(cat)
keys=$(cut -d ' ' -f 1 <<<"$records")
rows=$(sed -n 's/^| `\([a-z0-9_]*\)` |.*/\1/p' "$doc")
for key in $keys; do
    [ "$(grep -cx "$key" <<<"$rows")" = 1 ] || complain "no row, or more than one, for $key"
done
while read -r key; do
    grep -qx "$key" <<<"$keys" || complain "$key is not in src/policy/options.def"
    row=$(grep "^| \`$key\` |" "$doc")
    grep -qE '\| (supported|same|better|refused|ignored|ours) \|' <<<"$row" || complain "$key: no answer"
    names=$(sed 's/.*| \([^|]*\) |$/\1/' <<<"$row" | grep -o '`[a-z0-9_]*`' | tr -d '`' || true)
    [ -n "$names" ] || complain "$key: no test"
    for name in $names; do
        grep -qE "START_TEST\($name\)" "$@" || complain "$key: there is no test $name"
    done
done <<<"$rows"
fixed=$(awk '$3 == "fixed" {print $1}' <<<"$records" | sort)
named=$(sed -n '/^- fixed at opening/,/^$/p' "$doc" | tr -d '\n' | sed 's/(.*//' | grep -o '`[a-z_]*`' | tr -d '`' | sort)
[ "$fixed" = "$named" ] || complain "fixed at opening are:" $fixed
[ $bad = 0 ] && echo "options: $(wc -w <<<"$keys") keys, each with an answer and a test"
exit $bad
