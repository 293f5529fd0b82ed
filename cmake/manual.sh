#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the manual page and the completions of bash and zsh from what --help prints: manual.sh SCRIMP FOLDER
set -eu
scrimp=$1
folder=$2
mkdir -p "$folder"

# --help of the program and of every verb as rows, separated by tabs:
#   verb NAME DOC | operand VERB TEXT | text VERB LINE | option VERB LETTER NAME ARGUMENT DOC
#   value VERB TABLE WORD DOC (a table behind the options, such as that of solvers) | more VERB TABLE DOC | end VERB
rows() {
  "$scrimp" --help | awk -v OFS='\t' '
    /^verbs:/ { inside = 1; next }
    inside && !NF { inside = 0; after = 1; next }
    inside { name = $1; sub(/^ *[^ ]+ +/, ""); print "verb", name, $0; next }
    after && NF { print "text", "", $0 }'
  for verb in $("$scrimp" --help | awk '/^verbs:/ { on = 1; next } on && !NF { exit } on { print $1 }'); do
    "$scrimp" "$verb" --help | awk -v OFS='\t' -v verb="$verb" '
      NR == 1 { print "operand", verb, $4; next }
      /^options:$/ { table = "options"; next }
      /^[a-z ]+:$/ && table != "" { table = $0; sub(/:$/, "", table); next }
      !NF { if (table == "" && NR > 2) print "text", verb, ""; next }
      table == "" { if (NR > 3) print "text", verb, $0; next }
      table == "options" {
        doc = substr($0, 35); left = substr($0, 1, 33); letter = ""
        if (left ~ /^  -/) letter = substr(left, 4, 1)
        sub(/^.*--/, "", left); sub(/ +$/, "", left)
        argument = left; if (!sub(/^[^ ]+ /, "", argument)) argument = ""
        sub(/ .*/, "", left)
        print "option", verb, letter, left, argument, doc; next
      }
      /^   / { sub(/^ */, ""); print "more", verb, table, $0; next }
      { word = $1; sub(/^ *[^ ]+ *\*? */, ""); print "value", verb, table, word, $0 }'
    printf 'end\t%s\n' "$verb"
  done
}

manual() {
  awk -F '\t' -v version="$("$scrimp" --version)" '
    function roff(s) {
      gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s)
      return s ~ /^[.\x27]/ ? "\\&" s : s
    }
    function filled(yes) { if (yes != fill) print yes ? ".fi" : ".nf"; fill = yes }
    function text(line) {
      if (line ~ /^ /) filled(0); else filled(1)
      print line == "" ? ".PP" : roff(line)
    }
    BEGIN {
      fill = 1
      print ".\\\" Made from the output of scrimp --help.\n.TH SCRIMP 1 \"\" \"" version "\" \"User Commands\""
      print ".SH NAME\nscrimp \\- compiles, plans and trains deep\\-learning models within a memory budget"
      print ".SH SYNOPSIS\n.B scrimp\n.I VERB FILE\n[\\fB\\-D\\fR \\fIoption\\fR=\\fIvalue\\fR]... [\\fIoptions\\fR]"
      print ".SH DESCRIPTION"
    }
    $1 == "verb" { doc[$2] = $3; next }
    $1 == "text" && $2 == "" { text($3); next }
    $1 == "operand" {
      filled(1)
      if (!begun++) print ".SH VERBS"
      printf ".SS \"scrimp %s %s [options]\"\n%s.\n.PP\n", $2, roff($3), roff(doc[$2])
    }
    $1 == "text" { text($3) }
    $1 == "option" {
      filled(1)
      printf ".TP\n%s\\fB\\-\\-%s\\fR%s\n%s\n", $3 == "" ? "" : "\\fB\\-" $3 "\\fR, ", roff($4),
        $5 == "" ? "" : " \\fI" roff($5) "\\fR", roff($6)
    }
    $1 == "value" {
      filled(1)
      if (table != $2 $3) printf ".PP\n%s:\n", toupper(substr($3, 1, 1)) roff(substr($3, 2))
      table = $2 $3
      printf ".TP\n.B %s\n%s\n", roff($4), roff($5)
    }
    $1 == "more" { print roff($4) }'
}

# The words that follow an option: those of its argument (a|b), or of the table that is named after it.
values='
    function words(argument, name,   w) {
      if (name in table) return table[name]
      if (argument !~ /^[a-z|]+$/ && argument !~ /\|min$/) return ""
      w = argument; sub(/^.*%\|/, "", w); gsub(/\|/, " ", w)
      return w
    }
    $1 == "value" {
      name = $3 == "solvers" ? "solver" : $3 == "cost models" ? "cost" : $3 == "rules" ? "count" : ""
      if (name != "" && index(" " table[name] " ", " " $4 " ") == 0)
        table[name] = table[name] (table[name] == "" ? "" : " ") $4
    }
    $1 == "verb" { n++; verb[n] = $2; about[n] = $3 }
    $1 == "operand" { operand[$2] = $3 }
    $1 == "option" {
      k = ++options[$2]; of = $2 "," k
      letter[of] = $3; option[of] = $4; argument[of] = $5; said[of] = $6
    }'

bash_completion() {
  awk -F '\t' "$values"'
    END {
      print "# bash completion for scrimp, made from the output of scrimp --help."
      print "_scrimp() {\n  local verb=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}"
      print "  local words=\"\" files=yes\n  COMPREPLY=()\n  if [ \"$COMP_CWORD\" -eq 1 ]; then"
      printf "    words=\""
      for (i = 1; i <= n; i++) printf "%s ", verb[i]
      print "--help --version\"\n  else\n    case \"$verb $before\" in"
      for (i = 1; i <= n; i++)
        for (k = 1; k <= options[verb[i]]; k++) {
          of = verb[i] "," k; w = words(argument[of], option[of])
          if (argument[of] == "") continue
          patterns = "\"" verb[i] " --" option[of] "\""
          if (letter[of] != "") patterns = patterns " | \"" verb[i] " -" letter[of] "\""
          if (w != "") printf "      %s) words=\"%s\" ;;\n", patterns, w
          else if (argument[of] ~ /FILE|PATH|DIR/)
            printf "      %s) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n", patterns
          else printf "      %s) return ;;\n", patterns
        }
      for (i = 1; i <= n; i++) {
        printf "      \"%s \"*) words=\"--help", verb[i]
        for (k = 1; k <= options[verb[i]]; k++) printf " --%s", option[verb[i] "," k]
        w = operand[verb[i]]
        if (w ~ /^\[/) { gsub(/[][]/, "", w); gsub(/\|/, " ", w); printf " %s\" files=no ;;\n", w }
        else print "\" ;;"
      }
      print "    esac\n  fi"
      print "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")"
      print "  if [ \"$COMP_CWORD\" -gt 1 ] && [[ $word != -* ]] && [[ $before != --* ]] && [ $files = yes ]; then"
      print "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n  fi\n}"
      print "complete -o filenames -F _scrimp scrimp"
    }'
}

zsh_completion() {
  awk -F '\t' "$values"'
    function quoted(s) {
      gsub(/\\/, "\\\\", s); gsub(/\[/, "\\[", s); gsub(/\]/, "\\]", s); gsub(/:/, "\\:", s); gsub(/\x27/, "\x27\\\x27\x27", s)
      return s
    }
    function action(of,   w) {
      w = words(argument[of], option[of])
      if (w != "") return "(" w ")"
      return argument[of] ~ /FILE|PATH|DIR/ ? "_files" : " "
    }
    END {
      print "#compdef scrimp\n# zsh completion for scrimp, made from the output of scrimp --help."
      print "_scrimp() {\n  local -a verbs\n  verbs=("
      for (i = 1; i <= n; i++) printf "    \x27%s:%s\x27\n", verb[i], quoted(about[i])
      print "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi"
      print "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in"
      for (i = 1; i <= n; i++) {
        printf "    %s)\n      _arguments \x27--help[say more]\x27", verb[i]
        for (k = 1; k <= options[verb[i]]; k++) {
          of = verb[i] "," k
          many = option[of] == "define" ? "*" : ""
          rest = "[" quoted(said[of]) "]" (argument[of] == "" ? "" : ":" quoted(argument[of]) ":" action(of))
          if (letter[of] != "") printf " \\\n        \x27%s-%s%s\x27", many, letter[of], rest
          printf " \\\n        \x27%s--%s%s\x27", many, option[of], rest
        }
        w = operand[verb[i]]
        if (w ~ /^\[/) { gsub(/[][]/, "", w); gsub(/\|/, " ", w); printf " \\\n        \x27:what:(%s)\x27\n", w }
        else printf " \\\n        \x27*:file:_files\x27\n"
        print "      ;;"
      }
      print "  esac\n}\n_scrimp \"$@\""
    }'
}

rows >"$folder/rows"
manual <"$folder/rows" >"$folder/scrimp.1"
bash_completion <"$folder/rows" >"$folder/scrimp.bash"
zsh_completion <"$folder/rows" >"$folder/_scrimp"
rm "$folder/rows"
