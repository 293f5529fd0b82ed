#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The tree as it is: rooms with their files and lines, the includes between rooms, the longest files.
# house.sh includes: only the includes, as "FILE INCLUDED", for other scripts.
cd "$(dirname "$0")/.." || exit 1
parts="frontend ir passes codegen runtime"

sources() { # shellcheck disable=SC2086
  find $parts -name '*.[chyl]' -o -name '*.def' | LC_ALL=C sort
}

includes() { # shellcheck disable=SC2046
  grep -H '^#include "[a-z]*/' $(sources) | sed 's/^\([^:]*\):#include "\([^"]*\)".*/\1 \2/'
}

room_of='function room(path) { sub("/[^/]*$", "", path); return path }'

[ "$1" = includes ] && { includes; exit; }

echo "Rooms: files and lines"
# shellcheck disable=SC2046
wc -l $(sources) | awk "$room_of"' $2 != "total" { n[room($2)]++; lines[room($2)] += $1; all += $1 }
  END { for (r in n) printf "  %-30s %4d %7d\n", r, n[r], lines[r]; printf "  ~%-29s %4s %7d\n", "all", "", all }' |
  LC_ALL=C sort | sed 's/^  ~/  /'
echo
echo "Includes between rooms"
includes | awk "$room_of"' { a = room($1); b = room($2); if (a != b) n[a " -> " b]++ }
  END { for (k in n) printf "  %s (%d)\n", k, n[k] }' | LC_ALL=C sort
echo
echo "The longest files"
# shellcheck disable=SC2046
wc -l $(sources) | grep -v ' total$' | LC_ALL=C sort -k1,1nr -k2 | head -n 20 | sed 's/^ */  /'
