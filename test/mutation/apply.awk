# SPDX-License-Identifier: Apache-2.0
# Puts one mutant of the list into a tree.  awk -v number=N -v tree=DIR -f apply.awk mutants.list
# Without a tree: prints the names. Exit status 1: a text does not occur once.

function slurp(path,    text, line) {
    text = ""
    while ((getline line < path) > 0) text = text line "\n"
    close(path)
    return text
}

# A pattern for the text, however it is broken into lines.
function pattern(words,    out, i, c) {
    out = ""
    gsub(/[ \n]+/, " ", words)
    for (i = 1; i <= length(words); i++) {
        c = substr(words, i, 1)
        if (c == " ") out = out "[ \n]+"
        else if (c ~ /[A-Za-z0-9_]/) out = out c
        else out = out "[" (c == "^" || c == "\\" ? "\\" c : c) "]"
        if (c == "(") out = out "[ \n]*"
    }
    return out
}

function change(    text, at, size, rest) {
    if (path == "" || number != current || tree == "") return
    text = slurp(tree "/" path)
    at = match(text, pattern(old))
    size = RLENGTH
    rest = substr(text, at + size)
    if (at == 0 || match(rest, pattern(old)) > 0) {
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
