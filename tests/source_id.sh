#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A change of anything that the generator includes changes the id of cached kernels; one of a solver that of cached plans.
# source_id.sh CMAKE SCRATCH
cmake=$1; copy=$2/source_id
cd "$(dirname "$0")/.." || exit 1
rm -rf "$copy"; mkdir -p "$copy"
cp -r cmake codegen ir passes runtime "$copy" || exit 1
cd "$copy" || exit 1
id() { "$cmake" -DWHAT="$1" -DSOURCE="$copy" -DOUT="$copy/id.h" -P cmake/source_id.cmake && cat id.h; }
status=0
check() { # what files...
  what=$1; shift
  first=$(id "$what")
  [ -n "$first" ] || exit 1
  for file in "$@"; do
    [ -e "$file" ] || continue # the id itself
    cp "$file" saved
    echo '/* changed */' >>"$file"
    [ "$(id "$what")" != "$first" ] || { echo "$file is not part of the $what's id"; status=1; }
    cp saved "$file"
  done
  [ "$(id "$what")" = "$first" ] || { echo "the $what's id is not repeatable"; status=1; }
}
includes() { grep -ho '^#include "[^"]*"' "$@" | cut -d '"' -f 2 | sort -u; }
# shellcheck disable=SC2046
check generator codegen/cpu/reduce/loss.c ir/ops.def ir/attrs.def $(includes $(find codegen -name "*.[ch]"))
# shellcheck disable=SC2046
check solver passes/remat/search/scrimp.c passes/remat/papers/twremat.c ir/support/map.c $(includes $(find passes/remat -name "*.[ch]") | grep -E '^(passes/remat|ir/support)/')
rm -rf "$copy"
exit $status
