#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The first line of every source file names its license.  spdx.sh adds it where it is missing; spdx.sh --check lists the
# files without it.  Behind a line that starts with #!, in scripts.
cd "$(dirname "$0")/.." || exit 1
id="SPDX-License-Identifier: GPL-3.0-or-later"
status=0
sources() {
  find bootstrap .ci CMakeLists.txt cmake frontend ir passes codegen runtime examples/aot tests -type f \
    ! -path '*/golden/*/*' ! -path '*/corpus/*' \( -name '*.[chyl]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' \
    -o -name '*.cmake' -o -name CMakeLists.txt -o -path bootstrap -o -path .ci/run \) | LC_ALL=C sort
}
for file in $(sources); do
  head -n 2 "$file" | grep -qF "$id" && continue
  if [ "${1:-}" = --check ]; then
    echo "$file does not say: $id"
    status=1
    continue
  fi
  case $file in
    *.[chyl] | *.def) line="/* $id */" ;;
    *) line="# $id" ;;
  esac
  at=1
  head -n 1 "$file" | grep -q '^#!' && at=2
  { head -n $((at - 1)) "$file"; printf '%s\n' "$line"; tail -n +$at "$file"; } >"$file.spdx"
  cat "$file.spdx" >"$file" # keeps its mode
  rm "$file.spdx"
done
exit $status
