#!/bin/sh
# Data flows one way: fails when a folder includes what it must not see.
cd "$(dirname "$0")/.." || exit 1
status=0
forbid() { # files... -- pattern
  files=$1; pattern=$2
  # shellcheck disable=SC2086
  found=$(grep -nE "^#include \"($pattern)" $files 2>/dev/null)
  if [ -n "$found" ]; then
    echo "forbidden include:"; echo "$found"; status=1
  fi
}
forbid "ir/*.[ch] ir/support/*.[ch]" "passes|codegen|runtime|frontend"
forbid "ir/support/*.[ch]" "ir/[a-z_]*\.h"
forbid "passes/*.[ch] passes/*/*.[ch]" "codegen|runtime|frontend"
forbid "codegen/*.[ch]" "frontend|runtime/[b-z]|runtime/ar"
forbid "runtime/*.[ch]" "ir|passes|codegen|frontend"
front=$(find frontend -name '*.[chyl]' | grep -vE '/(main|cli[a-z_]*|verb_[a-z]*)\.[ch]$')
forbid "$front" "passes|codegen|runtime|frontend/cli"
others=$(grep -lE '#include (<libgccjit|"codegen/jit_internal)' -r ir passes codegen runtime frontend |
  grep -vE '^codegen/jit(_internal\.h|\.c|_values\.c)$')
[ -z "$others" ] || { echo "libgccjit.h outside codegen/jit.c and jit_values.c: $others"; status=1; }
exit $status
