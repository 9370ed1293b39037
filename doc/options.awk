# SPDX-License-Identifier: Apache-2.0
# The table of options (src/policy/options.def), as the preprocessor gives it with the macros of the Makefile:
# records "@@kind@key@values@default@when@sentence". Writes
#   -v format=keys     the keys, one a line, with their kind, and "fixed" when they are fixed at opening
#   -v format=man      a section of the manual page for each kind, in the place of the line .OPTIONS of the
#                      file that follows
BEGIN { RS = "@@"; FS = "@" }

function text(s) { # of a string literal, or several side by side
    gsub(/[ \t\n]+/, " ", s)
    gsub(/" "/, "", s)
    gsub(/^ *"|" *$/, "", s)
    return s
}
function sentence(s) { return roff(toupper(substr(s, 1, 1)) substr(s, 2)) }
function roff(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s
}

NF > 1 {
    kind = text($1)
    key = text($2)
    gsub(/ /, "", kind)
    gsub(/ /, "", key)
    if (format == "keys") print key, kind, kind == "option" && text($3) ~ /OPEN/ ? "fixed" : ""
    if (kind == "alias") {
        other = text($3)
        gsub(/ /, "", other)
        aliases = aliases sprintf(".TP\n.B %s\nAnother name of %s.\n", key, other)
        next
    }
    entry = sprintf(".TP\n.BI %s: VALUE\n", key)
    if (kind == "option")
        entry = entry sprintf("%s.\nTakes %s; the default is %s.\n%s", sentence(text($6)), roff(text($4)), roff(text($5)),
                              text($3) ~ /OPEN/ ? "Fixed at opening.\n" : "")
    else
        entry = entry sprintf("Takes %s. %s.\n", roff(text($4)), sentence(text($6)))
    if (kind == "option") options = options entry; else ignored = ignored entry
    next
}

END {
    if (format != "man") exit
    RS = "\n"
    FS = " "
    while ((getline line < page) > 0) {
        if (line != ".OPTIONS") { print line; continue }
        printf ".SH OPTIONS\n%s", options
        printf ".SH KEYS OF PYTORCH THAT SET NOTHING\nThey are checked, and granary_options_warning names them.\n%s%s", ignored, aliases
    }
}
