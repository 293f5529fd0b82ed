#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The counts in docs/models.md are those of this build.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
exec python3 "$(dirname "$0")/../docs/models.py" "$1" --check
