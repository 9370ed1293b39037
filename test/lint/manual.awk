# SPDX-License-Identifier: Apache-2.0
# Public functions whose comment does not say what driver work they may do, whether they may be called during a
# capture, and how they fail. Functions that follow each other share the comment above the first.
function bad(what) { print FILENAME ":" FNR ": " name ": its comment does not say " what; failed = 1 }

FNR == 1 { comment = "" }
/^\/\*/ { comment = ""; open = 1 }
open { comment = comment " " $0 }
/\*\/$/ { open = 0 }
/^GRANARY_API / {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    count++
    if (comment !~ /Driver: /) bad("Driver:")
    if (comment !~ /Capture: /) bad("Capture:")
    if (comment !~ /Fails: /) bad("Fails:")
}
END {
    if (count < 40) { print "manual: only " count + 0 " public functions found"; failed = 1 }
    exit failed
}
