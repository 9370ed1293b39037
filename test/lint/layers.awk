# SPDX-License-Identifier: Apache-2.0
# Holds every #include of src against src/LAYERS.  awk -f layers.awk src/LAYERS FILE...
FNR == 1 { file = FILENAME; first = (NR == 1) }

# The rules: "layer: those below it". A layer may only name layers that stand above it in the file.
NR == FNR {
    if ($0 ~ /^#/ || NF == 0) next
    name = $1
    sub(/:$/, "", name)
    known[name] = 1
    if ($0 ~ /public headers only/) { closed[name] = 1; next }
    for (i = 2; i <= NF; i++) {
        if (!($i in known)) fail(FILENAME ":" FNR, name " names " $i ", which is not below it")
        may[name, $i] = 1
    }
    next
}

FNR == 1 {
    layer = file
    sub(/^src\//, "", layer)
    if (layer ~ /\//) sub(/\/.*/, "", layer)
    if (!(layer in known)) { fail(file, "its layer " layer " is not in src/LAYERS"); nextfile }
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    target = $0
    sub(/^[^"]*"/, "", target)
    sub(/".*/, "", target)
    count++
    if (target ~ /^granary\//) next
    to = target
    if (!sub(/\/.*/, "", to)) { fail(file ":" FNR, "include \"" target "\" by its path from src"); next }
    if (to == layer) next
    if (closed[layer]) fail(file ":" FNR, layer " includes " target ", but may use public headers only")
    else if (!((layer, to) in may)) fail(file ":" FNR, layer " includes " target ", but " to " is not below " layer)
}

# The path of an own header in angle brackets would slip through the rule above.
/^[ \t]*#[ \t]*include[ \t]*<[a-z]+\// {
    target = $0
    sub(/^[^<]*</, "", target)
    sub(/\/.*/, "", target)
    if (target in known) fail(file ":" FNR, "include " target "/ with quotes")
}

function fail(where, what) { print where ": " what > "/dev/stderr"; bad++ }

END {
    if (!bad) printf "layers: %d includes follow src/LAYERS\n", count
    exit bad > 0
}
