#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Data flows one way.  Fails when a file includes what its room must not see (rooms.txt), when the includes of a room's
# modules form a circle, and when a file is longer than 500 lines without a reason at its top, which begins with
# "Longer than 500 lines:".
cd "$(dirname "$0")/.." || exit 1
status=0
fault() { echo "$1"; status=1; }

arrows=$(tests/house.sh includes | awk '
  function room(path) { sub("/[^/]*$", "", path); return path }
  FNR == NR {
    if (/^#/ || !NF) next
    from = $1; sub(":$", "", from); known[from] = 1
    for (i = 2; i <= NF; i++) {
      may[from " " $i] = 1
      if ($i !~ /\.h$/ && !known[$i]) print "rooms.txt: " from " comes before " $i ", which it may include"
    }
    next
  }
  {
    from = room($1); to = room($2)
    if ($2 ~ /_id\.h$/) next # generated
    if (!known[from]) print $1 " is in no room of rooms.txt"
    else if (from != to && !may[from " " to] && !may[from " " $2]) print $1 " must not include " $2
  }' tests/rooms.txt -)
[ -z "$arrows" ] || fault "$arrows"

# A module is x.c, x.h and x_internal.h.
circles=$(tests/house.sh includes |
  sed -E 's/(_internal)?\.[a-z]+ / /; s/(_internal)?\.[a-z]+$//' | awk '$1 != $2' | tsort 2>&1 >/dev/null)
[ -z "$circles" ] || fault "a circle of includes:
$circles"

others=$(grep -lE '#include (<libgccjit|"codegen/jit/jit_internal)' -r ir passes codegen runtime frontend |
  grep -vE '^codegen/jit/jit(_internal\.h|\.c|_values\.c)$')
[ -z "$others" ] || fault "libgccjit.h outside codegen/jit/jit.c and jit_values.c: $others"

long=$(find frontend ir passes codegen runtime -name '*.[chyl]' | while read -r file; do
  [ "$(wc -l <"$file")" -le 500 ] || head -n 20 "$file" | grep -q 'Longer than 500 lines:' || echo "$file"
done)
[ -z "$long" ] || fault "too long: $long"
exit $status
