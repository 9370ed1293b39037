#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a stage, builds and runs the README's program against what was installed, installs what PyTorch needs,
# uninstalls.
#   check.sh STAGE     (the Makefile passes MAKE, CC, V, FLAGS and VERSION in the environment)
set -euo pipefail

stage=$PWD/$1
prefix=/opt/granary
say() { echo "check-install: $*"; }
die() { say "$*" >&2; exit 1; }
make_quietly() { $MAKE --no-print-directory -s V="$V" CC="$CC" DESTDIR="$stage" PREFIX=$prefix "$@" >"$stage.log" 2>&1 ||
    { cat "$stage.log" >&2; die "make $* failed"; }; }

rm -rf "$stage"
mkdir -p "$stage"
make_quietly install

export PKG_CONFIG_SYSROOT_DIR=$stage PKG_CONFIG_LIBDIR=$stage$prefix/lib/pkgconfig
test "$(pkg-config --modversion granary)" = "$VERSION" || die "granary.pc has another version than granary.h"
# Word splitting is wanted: these are flags.
flags=$(pkg-config --cflags --libs granary)
private=$(pkg-config --static --libs granary)

program=$stage/program.c
awk '/^<!-- program: end/ {on = 0} on && !/^```/ {print} /^<!-- program/ && !/end/ {on = 1}' README.md >"$program"
lines=$(wc -l <"$program")
test "$lines" -ge 10 || die "README.md holds no program between its markers"
test "$lines" -le 25 || die "the README's program has $lines lines, more than 25"

$CC -std=c11 -Wall -Wextra -Werror $FLAGS "$program" $flags -o "$stage/shared"
# Into a variable first: grep -q leaves at the first match, and the pipe would fail with it.
linked=$(LD_LIBRARY_PATH=$stage$prefix/lib ldd "$stage/shared")
[[ $linked == *"libgranary.so.${VERSION%%.*} => $stage"* ]] ||
    die "the program does not use the installed shared library"
said=$(LD_LIBRARY_PATH=$stage$prefix/lib "$stage/shared") || die "the program failed against the shared library"

$CC -std=c11 -Wall -Wextra -Werror $FLAGS "$program" -Wl,-Bstatic $flags -Wl,-Bdynamic ${private#*-lgranary} -o "$stage/static"
linked=$(ldd "$stage/static" 2>&1 || true)
if [[ $linked == *libgranary* ]]; then die "the static program uses a shared library"; fi
said_static=$("$stage/static") || die "the program failed against the static library"
test "$said" = "$said_static" || die "shared and static differ: '$said', '$said_static'"

page=$stage$prefix/share/man/man7/granary-options.7
for key in expandable_segments max_split_size_mb backend release_lock_on_hipmalloc; do
    grep -q "^.B.* $key" "$page" || die "the manual page lacks $key"
done
# Every verb, and every option that the help of a verb names, is in the manual page.
page=$stage$prefix/share/man/man1/granary.1
plain=$(sed -e 's/\\-/-/g' -e 's/^\.[A-Z]* *//' "$page")
for verb in $("$stage$prefix/bin/granary" --help | sed -n 's/^  granary \([a-z]*\) .*/\1/p'); do
    grep -q "^$verb\$" <<<"$plain" || die "the manual page lacks the verb $verb"
    for option in $("$stage$prefix/bin/granary" "$verb" --help | grep -oE -e '--?[a-z]+' | sort -u); do
        case $option in --*|-o) grep -qE -e "(^|[^-a-z])$option([^-a-z]|\$)" <<<"$plain" || die "the manual page lacks $option" ;; esac
    done
done
test "$("$stage$prefix/bin/granary" --version)" = "granary $VERSION" || die "the tool's version differs"
case $V in release|debug) test/lint/symbols.sh "$stage$prefix/lib/libgranary.so" >/dev/null ;; esac

make_quietly install-torch PYTHON=
folder=$stage$prefix/lib/granary
for file in libgranary_torch.so granary_torch.py torch_error.cpp; do
    test -f "$folder/$file" || die "install-torch did not install $file"
done
touch "$folder/libgranary_torch_error.so" # as built there for a PyTorch

make_quietly uninstall
left=$(cd "$stage" && find opt ! -type d)
test -z "$left" || die "uninstall left: $left"
say "the README's program, shared and static, says: $said"
