#!/bin/bash
# Every test of the project: installs missing packages, builds with warnings as errors, runs CTest. The last line is
# "N passed, N failed", counted in CTest tests, and the exit status agrees with it. Tests that cannot run here (Slurm without
# root) are named before it, with the reason, and count as neither.
set -euo pipefail

usage() {
  cat <<END
usage: tests/run.sh [--no-install] [--sanitize | --matrix]

  --no-install   do not look for missing Debian packages
  --sanitize     build with AddressSanitizer and UndefinedBehaviorSanitizer instead
  --matrix       after that also build with clang and its sanitizers, and run the quick unit tests and the fuzz targets
END
}

fail() {
  echo "run.sh: $1" >&2
  exit 1
}

install=yes presets=(ci)
for argument in "$@"; do
  case "$argument" in
  -h | --help) usage && exit 0 ;;
  --no-install) install=no ;;
  --sanitize) presets=(debug) ;;
  --matrix) presets=(ci clang) ;;
  *) echo "run.sh: unknown argument '$argument'; see --help" >&2 && exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$install" = no ] || jobs/install_debian.sh --tests
source jobs/environment.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
all_passed=0 all_failed=0
# Two more jobs than processors: some tests of the program mostly wait, for locks, limits and ranks.
at_once=$(($(nproc) + 2))

# Build and run a preset, and add its tests to the counts.
run_preset() {
  local preset=$1 status=0 summary failed total
  cmake --preset "$preset" || fail "cmake could not configure preset $preset; its messages are above"
  cmake --build --preset "$preset" -j "$(nproc)" || fail "the build of preset $preset failed; its messages are above"
  ctest --preset "$preset" -j "$at_once" 2>&1 | tee "$log" || status=$?
  # CTest's summary: "95% tests passed, 1 tests failed out of 20"
  summary=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$log" | tail -n 1)
  [ -n "$summary" ] || fail "ctest ran no tests of preset $preset (status $status)"
  read -r failed total <<<"$summary"
  # A test that passes while CTest reports an error (or the other way round) must not look like success.
  [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || fail "ctest ended with status $status although no test failed"
  # CTest counts skipped tests as passed and hides their output.
  mapfile -t skipped < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*Skipped.*/\1/p' "$log")
  for test in "${skipped[@]}"; do
    reason=$(sed -nE '/^[0-9]+\/[0-9]+ Testing: '"$test"'$/,/^<end of output>$/s/^skipped: //p' "build/$preset/Testing/Temporary/LastTest.log")
    reasons+=("$test skipped: ${reason:-no reason given}")
  done
  echo "the ten tests of preset $preset that took longest, in seconds beside others:"
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec$/\2 \1/p' "$log" | sort -rn | sed -n '1,10s/^/  /p'
  all_passed=$((all_passed + total - failed - ${#skipped[@]}))
  all_failed=$((all_failed + failed))
}

reasons=()
for preset in "${presets[@]}"; do run_preset "$preset"; done
[ "${#reasons[@]}" -eq 0 ] || printf '%s\n' "${reasons[@]}"
echo "$all_passed passed, $all_failed failed"
[ "$all_failed" -eq 0 ] && [ "$all_passed" -gt 0 ]
