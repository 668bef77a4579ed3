# Purpose: what the scripts that build the program and then run studies have in common; they source this file
# Cost:    none; only build_program builds the program
# Output:  functions
# shellcheck shell=bash
fail() {
  echo "$(basename "$0"): $1" >&2
  exit "${2:-1}"
}

# take_option OPTION...: parses one of the options that all these scripts share, from the front of the command line. Sets `install`,
# `ranks`, and `taken`, the number of words to shift.
install=yes ranks=
# shellcheck disable=SC2034 # taken is read by the scripts
take_option() {
  taken=1
  case "$1" in
  -h | --help) usage && exit 0 ;;
  --no-install) install=no ;;
  -n) [ $# -gt 1 ] || fail "-n needs a number of ranks" 2; ranks=$2 taken=2 ;;
  *) fail "unknown option '$1'; see --help" 2 ;;
  esac
}

# Sets `ranks` where it is empty: to the number of cores, but at most 16.
check_ranks() {
  if [ -z "$ranks" ]; then
    ranks=$(nproc)
    [ "$ranks" -le 16 ] || ranks=16
  fi
  [[ "$ranks" =~ ^[1-9][0-9]*$ ]] || fail "-n $ranks: expected a positive number of ranks" 2
}

# Runs in the root of the repository; looks for missing packages first if `install` is yes.
build_program() {
  [ "$install" = no ] || jobs/install_debian.sh
  source jobs/environment.sh
  cmake --preset user >/dev/null || fail "cmake could not configure; its messages are above"
  cmake --build --preset user --target thompson -j "$(nproc)" || fail "the build failed; its messages are above"
}
