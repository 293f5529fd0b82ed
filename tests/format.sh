#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every C and JavaScript file looks as .clang-format says; skipped where clang-format is absent.
cd "$(dirname "$0")/.." || exit 1
command -v clang-format >/dev/null || exit 77
# Versions differ in details: ours is Debian 12's.
[[ $(clang-format --version) == *"version 14."* ]] || { echo "clang-format is not version 14"; exit 77; }
mapfile -t files < <(find frontend ir passes codegen runtime tests examples -name '*.[ch]' -o -name '*.js')
clang-format --dry-run -Werror "${files[@]}" 2>&1 | grep 'error:' | cut -d: -f1 | sort -u >/dev/stderr
exit "${PIPESTATUS[0]}"
