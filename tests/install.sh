#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An installed scrimp runs with nothing of the source and build trees, and comes with its manual page and completions:
# install.sh BUILD-FOLDER VERSION
set -euo pipefail
build=$1 version=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
cd "$prefix"
fault() { echo "$1"; exit 1; }
for file in bin/scrimp share/scrimp/examples/mlp.scrimp share/scrimp/examples/aot/train_mlp.c \
  share/doc/scrimp/language.md share/doc/scrimp/LICENSE share/man/man1/scrimp.1 \
  share/bash-completion/completions/scrimp share/zsh/site-functions/_scrimp; do
  [ -s "$file" ] || fault "not installed: $file"
done
[ "$(bin/scrimp --version)" = "scrimp $version" ] || fault "--version says $(bin/scrimp --version), not $version"
bin/scrimp check share/scrimp/examples/mlp.scrimp
bin/scrimp summary share/scrimp/examples/mlp.scrimp --json | grep '"params": [1-9]' >/dev/null
SCRIMP_CACHE=$prefix/cache bin/scrimp compile share/scrimp/examples/mlp.scrimp -D N=8 -o step.so --header step.h
[ -s step.so ] && [ -s step.h ]

# Every verb and every option of it are in the manual and in both completions.
verbs=$(bin/scrimp --help | awk '/^verbs:/ { on = 1; next } on && !NF { exit } on { print $1 }')
[ "$(wc -w <<<"$verbs")" -ge 13 ] || fault "few verbs: $verbs"
page=$(sed 's/\\-/-/g; s/\\f.//g' share/man/man1/scrimp.1)
for verb in $verbs; do
  section=$(awk -v v=".SS \"scrimp $verb " '/^\.SS/ { on = index($0, v) == 1 } on' <<<"$page")
  bash=$(grep -F "\"$verb \"*)" share/bash-completion/completions/scrimp)
  zsh=$(awk -v v="    $verb)" '$0 == v { on = 1 } on; /;;/ { on = 0 }' share/zsh/site-functions/_scrimp)
  options=$(bin/scrimp "$verb" --help | grep -oE -- '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
  [ -n "$options" ] || fault "$verb has no options"
  for option in $options; do
    grep -qE -- "(^|, )$option( |\$)" <<<"$section" || fault "$verb $option is not in the manual"
    grep -qE -- " $option( |\")" <<<"$bash" || fault "$verb $option is not in bash's completion"
    grep -qF -- "$option[" <<<"$zsh" || fault "$verb $option is not in zsh's completion"
  done
done
if command -v groff >/dev/null; then
  said=$(groff -man -Tutf8 -ww share/man/man1/scrimp.1 2>&1 >/dev/null)
  [ -z "$said" ] || fault "groff: $said"
fi
if command -v zsh >/dev/null; then
  zsh -n share/zsh/site-functions/_scrimp
fi

# bash's completion, asked as bash asks it.
. share/bash-completion/completions/scrimp
completed() { # what, words...
  local what=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _scrimp
  mapfile -t COMPREPLY < <(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort)
  [ "${COMPREPLY[*]}" = "$what" ] || fault "$* completes to '${COMPREPLY[*]}', not to '$what'"
}
completed plan scrimp pl
completed "--solver" scrimp plan --so
completed "memory time" scrimp plan x.scrimp --objective ""
completed "kusumoto_approx kusumoto_exact kusumoto_exhaustive" scrimp plan --solver kus
completed "json text" scrimp check --error-format ""
completed "show" scrimp cache sh
completed "step.h step.so" scrimp plan st
completed "step.h step.so" scrimp train x.scrimp --data st
