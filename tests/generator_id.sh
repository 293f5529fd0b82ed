#!/bin/sh
# A change of anything that the generator includes changes the id of cached kernels.
# generator_id.sh CMAKE SCRATCH
cmake=$1; copy=$2/generator_id
cd "$(dirname "$0")/.." || exit 1
rm -rf "$copy"; mkdir -p "$copy"
cp -r cmake codegen ir passes runtime "$copy" || exit 1
cd "$copy" || exit 1
id() { "$cmake" -DSOURCE="$copy" -DOUT="$copy/id.h" -P cmake/generator_id.cmake && cat id.h; }
status=0
first=$(id)
[ -n "$first" ] || exit 1
for file in codegen/loss.c ir/ops.def ir/attrs.def $(grep -ho '^#include "[^"]*"' codegen/*.[ch] | cut -d '"' -f 2 | sort -u); do
  [ -e "$file" ] || continue # generator_id.h itself
  cp "$file" saved
  echo '/* changed */' >>"$file"
  [ "$(id)" != "$first" ] || { echo "$file is not part of the id"; status=1; }
  cp saved "$file"
done
[ "$(id)" = "$first" ] || { echo "the id is not repeatable"; status=1; }
rm -rf "$copy"
exit $status
