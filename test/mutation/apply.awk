# SPDX-License-Identifier: Apache-2.0
# Puts one mutant of the list into a tree.  awk -v number=N -v tree=DIR -f apply.awk mutants.list
# Without a tree: prints the names. Exit status 1: a text does not occur once.

function slurp(path,    text, line) {
    text = ""
    while ((getline line < path) > 0) text = text line "\n"
    close(path)
    return text
}

function change(    text, at, rest) {
    if (path == "" || number != current || tree == "") return
    text = slurp(tree "/" path)
    at = index(text, old)
    rest = substr(text, at + length(old))
    if (at == 0 || index(rest, old) > 0) {
        print path ": the text of mutant " current " occurs " (at ? "more than once" : "nowhere") > "/dev/stderr"
        failed = 1
        return
    }
    printf "%s", substr(text, 1, at - 1) new rest > (tree "/" path)
    close(tree "/" path)
}

# A text of one line may be part of a line; then its replacement is as well.
function end_part() {
    if (path == "") return
    sub(/\n$/, "", old)
    sub(/\n$/, "", new)
    change()
    path = old = new = ""
}

/^@ / { end_part(); current++; if (tree == "") print substr($0, 3); next }
/^: / { end_part(); path = substr($0, 3); next }
/^- / { old = old substr($0, 3) "\n"; next }
/^\+ / { new = new substr($0, 3) "\n"; next }
END { end_part(); exit failed }
