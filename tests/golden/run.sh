#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Golden test: run.sh CASE SCRIMP.  CASE holds one or more lines
#     # RUN: scrimp dump --stage=ast %s
# (the comment sign may be # ; or //) which are run by bash in the case's folder, `scrimp` being the
# executable under test, %s the case and %t a scratch folder.  What they print on both streams, and
# "exit N" after a line that fails, must be what CASE's .expect says.  UPDATE=1 rewrites it.
set -u
case_path=$1
scrimp_path=$(realpath "$2")
expect_path=$(realpath "$(dirname "$case_path")")/$(basename "${case_path%.*}").expect
cd "$(dirname "$case_path")" || exit 1
case_file=$(basename "$case_path")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

scrimp() { "$scrimp_path" "$@"; }

run_lines() {
    local line status
    while IFS= read -r line; do
        line=${line//%s/$case_file}
        line=${line//%t/$scratch}
        status=0
        (eval "$line") </dev/null 2>&1 || status=$?
        if [ $status -ne 0 ]; then echo "exit $status"; fi
    done
}

lines=$(sed -n 's|^[#;/ ]*RUN: *||p' "$case_file")
if [ -z "$lines" ]; then
    echo "$case_path has no RUN line" >&2
    exit 1
fi
run_lines <<<"$lines" >"$scratch/got"
if [ "${UPDATE:-0}" = 1 ]; then
    cp "$scratch/got" "$expect_path"
    exit 0
fi
diff -u --label expected --label got "$expect_path" "$scratch/got"
