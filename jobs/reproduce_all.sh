#!/bin/bash
# Purpose: every figure of the three papers in one go, and a page for each paper that sets each of its claims against what we measure.
# Cost:    --scale full, the studies as they are in jobs/, MovieLens and MNIST included: 2.5 hours of CPU time;
#          --scale quick: 14 CPU minutes, 20 min on two cores that were also busy with other work
# Output:  results/reproduce_SCALE/STUDY/ with results.nc, figures and report.html; results/reproduce_SCALE/diffts.html, vits.html and
#          tilted.html
set -euo pipefail

# Study | its figure | data that it needs | --set options at quick scale
studies='
figure2                 | figure_diffts_2.py                   |                   | runs=128 prior.replicates=2
figure2_neurips         | figure_diffts_2.py                   |                   | runs=128 prior.replicates=2
figure3_linear          | figure_diffts_3.py                   | data/movielens.nc | runs=128 prior.replicates=2
figure3_logistic        | figure_diffts_3.py                   | data/movielens.nc | runs=128 prior.replicates=2
figure4                 | figure_diffts_2.py                   |                   | runs=128 prior.replicates=2
figure4_neurips         | figure_diffts_2.py                   |                   | runs=128 prior.replicates=2
figure5_linear          | figure_diffts_3.py                   | data/mnist.nc     | runs=128 prior.replicates=2
figure5_logistic        | figure_diffts_3.py                   | data/mnist.nc     | runs=128 prior.replicates=2
ablation_training       | figure_diffts_6.py                   |                   | runs=128 prior.replicates=2 prior.train_samples=[100,3000,10000]
ablation_stages         | figure_diffts_6.py                   |                   | runs=128 prior.replicates=2 prior.stages=[1,10,100,300]
ablation_stages_neurips | figure_diffts_6.py                   |                   | runs=64 prior.replicates=2 prior.stages=[1,25]
noise_levels            | ablation.py                          |                   | runs=128 prior.replicates=2 problem.noise=[0.25,1,4]
diffts_one_stage        | tools/table.py                       |                   | runs=128 prior.replicates=2
diffts_mixture          | tools/table.py                       |                   | runs=128 prior.replicates=2
mnist_mixture           | tools/table.py                       | data/mnist.nc     | runs=256 prior.replicates=4
network_cost            | tools/table.py                       |                   | runs=64
figure7                 | figure_diffts_7.py                   |                   | runs=16 prior.replicates=2 draws=200 problem.sample_sizes=[1,50,1000]
consistency             | figure_diffts_7.py --metric distance |                   | runs=16 prior.replicates=2
vits_figure1            | figure_vits.py                       |                   | runs=32
vits_diverse            | figure_vits.py                       |                   | runs=32
vits_grid               | tools/selection.py --by steps        |                   | runs=8 problem.rounds=250
vits_langevin           | tools/selection.py --by steps        |                   | runs=256
vits_figure2            | figure_vits.py                       |                   | runs=10
vits_figure3            | figure_vits.py                       | data/movielens.nc | runs=32
vits_figure3_eta        | figure_vits.py                       | data/movielens.nc | runs=32
vits_figure4            | figure_vits_4.py                     |                   | runs=32
vits_figure5            | figure_vits.py                       |                   | runs=64
vits_figure5_eta        | figure_vits.py                       |                   | runs=64
vits_figure6            | figure_vits.py                       |                   | runs=32 problem.rounds=1000
vits_figure6_eta        | figure_vits.py                       |                   | runs=32 problem.rounds=500
vits_cost               | figure_vits_cost.py                  |                   | runs=32
tilted_map              | figure_tilted_map.py                 |                   | runs=16
tilted_inverse          | figure_tilted_table.py               |                   | runs=4
tilted_ising            | figure_tilted_ising.py               |                   | runs=16
tilted_bandit           | figure_diffts_2.py                   |                   | runs=128 prior.replicates=2
'

usage() {
  cat <<END
usage: jobs/reproduce_all.sh --scale quick|full [--no-install] [-n RANKS] [STUDY...]

  --scale quick  fewer runs and settings: some claims stay open
  --scale full   the studies as they are
  --no-install   do not look for missing Debian packages
  -n RANKS       MPI ranks; all cores, but at most 16, by default
  STUDY...       only these, for example figure2 vits_figure4

Goes on after a study that fails, and where it was when it is started again; exit status 5 when something failed, 75 when it was
stopped. Studies on MovieLens and MNIST need data/movielens.nc and data/mnist.nc, see data/README.md.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/jobs/build.sh"
scale='' only=' '
while [ $# -gt 0 ]; do
  case "$1" in
  --scale) [ $# -gt 1 ] || fail "--scale needs quick or full" 2; scale=$2; shift 2 ;;
  -*) take_option "$@"; shift "$taken" ;;
  *) grep -q "^$1 *|" <<<"$studies" || fail "there is no study '$1' in the table; see the top of this script" 2; only+="$1 "; shift ;;
  esac
done
[[ "$scale" =~ ^(quick|full)$ ]] || fail "--scale '$scale': expected quick or full" 2
check_ranks

cd "$root"
build_program
results=results/reproduce_$scale
failed=() skipped=() without=()

# A signal is handled when the current command has ended; a signal from a terminal reaches that command too.
stop() { fail "stopped; start it again to go on" 75; }
trap stop INT TERM

# note WHAT STATUS: records that a command failed; the others continue.
note() {
  [ "$2" -ne 75 ] || stop
  failed+=("$1 (exit status $2)")
}

while IFS='|' read -r study figure data quick <&3; do
  read -r study <<<"$study" && read -r data <<<"$data"
  [ -n "$study" ] || continue
  [ "$only" = ' ' ] || [[ "$only" == *" $study "* ]] || continue
  if [ -n "$data" ] && [ ! -f "$data" ]; then
    skipped+=("$study needs $data, which is not there; see data/README.md")
    continue
  fi
  echo "== $study"
  options=()
  [ "$scale" = full ] || for change in $quick; do options+=(--set "$change"); done
  status=0
  file=jobs/$study.yaml
  [ -f "$file" ] || file=jobs/papers/$study.yaml
  mpiexec -n "$ranks" build/user/thompson run "$file" -o "$results/$study" --resume "${options[@]}" || status=$?
  [ "$status" -eq 0 ] || note "$study" "$status"
  # 5: some tasks failed and the results of the others are written. Otherwise the results in the folder are from an earlier run.
  if [ "$status" -ne 0 ] && [ "$status" -ne 5 ]; then
    without+=(--failed "$study")
    continue
  fi
  read -r figure <<<"$figure"
  [[ "$figure" == */* ]] || figure=figures/$figure
  for script in "$figure" tools/report.py; do
    status=0
    # shellcheck disable=SC2086 # a script and its options
    "$THOMPSON_PYTHON" analysis/$script "$results/$study" || status=$?
    [ "$status" -eq 0 ] || note "$script of $study" "$status"
  done
done 3<<<"$studies"

for paper in diffts vits tilted; do
  echo "== claims: $paper"
  status=0
  "$THOMPSON_PYTHON" analysis/claims/claims.py "$results" --paper "$paper" "${without[@]}" \
    --note "Studies of jobs/reproduce_all.sh --scale $scale." || status=$?
  # 3: none of its studies is there; claims.py says so.
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || note "claims of $paper" "$status"
done

echo
for line in "${skipped[@]}"; do echo "skipped: $line"; done
for line in "${failed[@]}"; do echo "failed: $line"; done
echo "Studies with their figures and reports, and a page for each paper: $root/$results"
[ ${#failed[@]} -eq 0 ] || exit 5
