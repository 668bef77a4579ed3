# Purpose: what the scripts that build the program and then run studies have in common, for them to source
# Cost:    none; build_program builds the program alone
# Output:  functions
# shellcheck shell=bash
fail() {
  echo "$(basename "$0"): $1" >&2
  exit "${2:-1}"
}

# Sets `ranks`: as it is, or all cores, but at most 16, where it is empty.
check_ranks() {
  if [ -z "$ranks" ]; then
    ranks=$(nproc)
    [ "$ranks" -le 16 ] || ranks=16
  fi
  [[ "$ranks" =~ ^[1-9][0-9]*$ ]] || fail "-n $ranks: expected a positive number of ranks" 2
}

# build_program yes|no: in the root of the repository; looks for missing packages first, or not.
build_program() {
  [ "$1" = no ] || jobs/install_debian.sh
  source jobs/environment.sh
  cmake --preset release >/dev/null || fail "cmake could not configure; its messages are above"
  cmake --build --preset release --target thompson -j "$(nproc)" || fail "the build failed; its messages are above"
}
