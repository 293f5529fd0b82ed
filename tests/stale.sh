#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every entry of mutation/mutants.txt and earned/parts.txt names a text that stands exactly once in its file, and the
# files compile with all of a list in them.
# Usage: stale.sh COMPILE_COMMANDS
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
cd "$(dirname "$0")" || exit 1
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
status=0
python3 mutation/mutate.py check "$1" || status=1
python3 earned/earned.py check "$1" || status=1
exit $status
