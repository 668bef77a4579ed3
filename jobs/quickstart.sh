#!/bin/bash
# Purpose: from a fresh clone to a figure: install packages, build, run a bandit study on all cores, print its table, draw its figure.
# Cost:    the build, and that of jobs/quickstart.yaml
# Output:  results/NAME/ with results.nc, prior_samples.nc, figure_diffts_2.png and .pdf, report.html, where the study file is NAME.yaml
set -euo pipefail

usage() {
  cat <<END
usage: jobs/quickstart.sh [--no-install] [-n RANKS] [STUDY.yaml]

  --no-install   do not look for missing Debian packages
  -n RANKS       MPI ranks; all cores, but at most 16, by default
  STUDY.yaml     another bandit study than jobs/quickstart.yaml

Results in results/NAME of the repository are replaced.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/jobs/build.sh"
study=$root/jobs/quickstart.yaml
while [ $# -gt 0 ]; do
  case "$1" in
  -*) take_option "$@"; shift "$taken" ;;
  *) [ -f "$1" ] || fail "there is no study file $1" 2; study=$(realpath "$1"); shift ;;
  esac
done
check_ranks

cd "$root"
build_program

name=$(basename "$study")
folder=results/${name%.*}
status=0
mpiexec -n "$ranks" build/user/thompson run "$study" -o "$folder" --overwrite || status=$?
# 5: some tasks failed and the results of the others are written.
[ "$status" -eq 0 ] || [ "$status" -eq 5 ] || fail "thompson ended with status $status; its message is above" "$status"

echo
"$THOMPSON_PYTHON" analysis/tools/table.py "$folder"
echo
echo "$root/$folder/results.nc"
"$THOMPSON_PYTHON" analysis/figures/figure_diffts_2.py "$root/$folder"
"$THOMPSON_PYTHON" analysis/tools/report.py "$root/$folder"
exit "$status"
