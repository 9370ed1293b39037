# SPDX-License-Identifier: Apache-2.0
# Instructions that the library itself spent, from callgrind's output with uncompressed names and
# positions: those of functions under src, and what these called in other objects (memcpy, say). What
# the simulated driver does behind a call is not ours.
/^fl=/ { ours = /\/src\// && !/\/src\/driver\/sim\// && !/\/bench\/[a-z_]*\.[ch]$/; next }
/^ob=/ { object = callee = substr($0, 4); next }
/^cob=/ { callee = substr($0, 5); next }
/^calls=/ {
    if ((getline) > 0 && ours && callee != object) sum += $2
    callee = object
    next
}
/^[0-9]/ && ours { sum += $2 }
END { printf "%.0f\n", sum }
