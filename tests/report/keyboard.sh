#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The page of `scrimp report`, used by keyboard and as a screen reader gets it: see keyboard.py.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
exec python3 "$(dirname "$0")/keyboard.py" "$@"
