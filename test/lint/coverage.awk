# SPDX-License-Identifier: Apache-2.0
# Turns the words of `gcov -n` into one table: lines covered, of how many, file.
/^File / { split($0, part, "'"); file = part[2]; sub(/^.*\/src\//, "src/", file) }
/^Lines executed:/ {
    if (file !~ /^src\// || seen[file]++) { file = ""; next }
    sub(/^Lines executed:/, "")
    percent = $1 + 0
    lines = $NF
    printf "%6.1f %%  of %5d  %s\n", percent, lines, file
    all += lines
    hit += percent / 100 * lines
    file = ""
}
END { if (all) printf "%6.1f %%  of %5d  together\n", 100 * hit / all, all }
