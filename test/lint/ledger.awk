# SPDX-License-Identifier: Apache-2.0
# One verb, one caller: a gr_ledger_* function is called from at most one place outside src/ledger.
# awk -v reads='names that change nothing' -f ledger.awk FILE...
BEGIN { n = split(reads, list, " "); for (i = 1; i <= n; i++) free[list[i]] = 1 }
FNR == 1 { comment = 0 }
{
    line = $0
    if (comment) { if (!sub(/^.*\*\//, "", line)) next; comment = 0 }
    gsub(/\/\*[^*]*(\*[^*\/][^*]*)*\*\//, "", line)
    if (sub(/\/\*.*/, "", line)) comment = 1
    sub(/\/\/.*/, "", line)
    while (match(line, /gr_ledger_[a-z_0-9]+ *\(/)) {
        name = substr(line, RSTART, RLENGTH)
        sub(/ *\(/, "", name)
        line = substr(line, RSTART + RLENGTH)
        calls[name]++
        where[name] = where[name] " " FILENAME ":" FNR
    }
}
END {
    for (name in calls) {
        if (name in free) continue
        verbs++
        if (calls[name] > 1) { print name " has more than one caller:" where[name] > "/dev/stderr"; bad = 1 }
    }
    if (!bad) printf "ledger: %d verbs, one caller each\n", verbs
    exit bad
}
