# Purpose: complete verbs, options, names, keys and result folders of `thompson` in bash: source jobs/completion.bash (bash finds an
#          installed copy without that)
# Cost:    one call of the program for each Tab; it answers from the tables that it checks its arguments against
# Output:  words to choose from
# shellcheck shell=bash
_thompson() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]-} words= key=
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  # bash splits `--set key=va` into the words --set, key, =, va.
  case "${COMP_WORDS[COMP_CWORD - 3]-} ${COMP_WORDS[COMP_CWORD - 1]}" in "--set =") key=$before ;; esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p') --help --version"
  elif [ -n "$key" ]; then
    words=$("$program" list "$key" 2>/dev/null | sed -n "s/^$key: \(.* | .*\); default.*/\1/p" | tr -d '|')
  else
    case "$before" in
    --sampler) words=$(_thompson_names samplers) ;;
    --likelihood) words=$(_thompson_names likelihoods) ;;
    --family) words=$(_thompson_names priors) ;;
    --problem) words=$("$program" score --list 2>/dev/null | sed -n 's/^  \([a-z0-9_]*\)  *[0-9].*/\1/p') ;;
    --progress) words="auto plain none" ;;
    --set) words=$(_thompson_keys keys | sed 's/$/=/') ;;
    --option) words=$(_thompson_options "$verb" | sed 's/$/=/') ;;
    *)
      case "$verb $word" in
      *" -"*) words=$("$program" "$verb" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z-]+=?' | tr -d ' ,') ;;
      "list "*) words="policies samplers priors likelihoods problems studies keys sweep zip $(_thompson_names) $(_thompson_keys keys)" ;;
      "status "* | "verify "* | "reduce "* | "rerun "* | "export "* | "prune "*) words=$(_thompson_results "$word") ;;
      esac
      ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  [ "${#COMPREPLY[@]}" -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
  [[ "${COMPREPLY[0]-}" != *= ]] || compopt -o nospace
}

# The names of a family, or of all, as `thompson list` prints them.
_thompson_names() { "${COMP_WORDS[0]}" list "$@" 2>/dev/null | sed -n 's/^  \([a-z0-9_][a-z0-9_]*\) .* (.*/\1/p'; }

# The keys that `thompson list` describes under a name.
_thompson_keys() { "${COMP_WORDS[0]}" list "$1" 2>/dev/null | sed -n 's/^\([a-z][a-z0-9_.]*\): .*/\1/p'; }

# What --option accepts: in `train` the keys of prior.* without the prefix, in `sample` the options of the sampler already named.
_thompson_options() {
  local i
  case "$1" in
  train) _thompson_keys prior | sed 's/^prior\.//' ;;
  sample)
    for ((i = 2; i + 1 < COMP_CWORD; i++)); do
      [ "${COMP_WORDS[i]}" != --sampler ] || _thompson_keys "${COMP_WORDS[i + 1]}"
    done
    ;;
  esac
}

# Folders that contain a study, here and in results/.
_thompson_results() {
  local study
  for study in "$1"*/study.yaml results/*/study.yaml; do
    [ ! -f "$study" ] || printf '%s\n' "${study%/study.yaml}"
  done | sort -u
}

complete -o filenames -F _thompson thompson
