# Purpose: complete verbs, options and names of `thompson` in bash: source jobs/completion.bash (an installed copy is found by itself)
# Cost:    one call of the program for each Tab; it answers from the tables that it checks its arguments by
# Output:  words to choose from
# shellcheck shell=bash
_thompson() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]-} words=
  [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
  [ "$word" != = ] || word=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p') --help --version"
  else
    case "$before" in
    --sampler) words=$(_thompson_names samplers) ;;
    --likelihood) words=$(_thompson_names likelihoods) ;;
    --family) words=$(_thompson_names priors) ;;
    --problem) words=$("$program" score --list 2>/dev/null | sed -n 's/^  \([a-z0-9_]*\)  *[0-9].*/\1/p') ;;
    --progress) words="auto plain none" ;;
    *)
      case "$verb $word" in
      *" -"*) words=$("$program" "$verb" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z-]+=?' | tr -d ' ,') ;;
      "list "*) words="policies samplers rules priors likelihoods problems studies keys" ;;
      esac
      ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  [ "${#COMPREPLY[@]}" -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
  [[ "${COMPREPLY[0]-}" != *= ]] || compopt -o nospace
}

# The names of a family, as `thompson list` prints them.
_thompson_names() { "${COMP_WORDS[0]}" list "$1" 2>/dev/null | sed -n 's/^  \([a-z0-9_][a-z0-9_]*\) .*/\1/p'; }

complete -o filenames -F _thompson thompson
