#!/usr/bin/env bash
# An installed scrimp runs with nothing of the source and build trees: install.sh BUILD-FOLDER
set -euo pipefail
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
cd "$prefix"
for file in bin/scrimp share/scrimp/examples/mlp.scrimp share/scrimp/examples/aot/train_mlp.c \
  share/doc/scrimp/language.md; do
  [ -f "$file" ] || { echo "not installed: $file"; exit 1; }
done
bin/scrimp check share/scrimp/examples/mlp.scrimp
bin/scrimp summary share/scrimp/examples/mlp.scrimp --json | grep '"params": [1-9]' >/dev/null
SCRIMP_CACHE=$prefix/cache bin/scrimp compile share/scrimp/examples/mlp.scrimp -D N=8 -o step.so --header step.h
[ -s step.so ] && [ -s step.h ]
