#!/bin/bash
# Purpose: runs the studies of docs/results/decisions.md, draws their picture and prints their tables.
# Needs:   data/movielens.nc and data/mnist.nc for two of them, which are skipped if the files are missing; see data/README.md
# Cost:    about 8 min of CPU time
# Output:  results/decisions/figure_decisions.png, results/decisions*/results.nc
# Usage:   jobs/decisions.sh [PROGRAM]     run in the folder that holds the results; PROGRAM is thompson by default
set -euo pipefail

program=${1:-thompson} jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
analysis=$jobs/../analysis
"$jobs/guard_priors.sh" "$program"
floored=()
for study in decisions decisions_priors decisions_movielens decisions_mnist decisions_wrong decisions_other; do
  case "$study" in
  *_movielens | *_mnist) [ -e "data/${study#decisions_}.nc" ] || continue ;;
  esac
  "$program" run "$jobs/$study.yaml" -o "results/$study" --resume
  case "$study" in
  *_wrong | *_other) "$analysis/tools/table.py" "results/$study" ;;
  *) floored+=("results/$study") ;;
  esac
done
"$analysis/figures/figure_decisions.py" "${floored[@]}"
