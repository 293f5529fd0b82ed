#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# README.md and docs/ fit the tree and the program: see docs.py.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
exec python3 "$(dirname "$0")/docs.py" "$1"
