#!/bin/bash
# Purpose: learns the priors for jobs/questions/guard.yaml, guard_localised.yaml and guard_mixture.yaml: a diffusion model, a denoiser and a
#          mixture of ten in each of six worlds.
# Cost:    about 1 min of CPU time
# Output:  results/guard_priors/FAMILY-WORLD.nc; existing files are left unchanged
# Usage:   jobs/questions/guard_priors.sh [PROGRAM]     run in the folder that holds the results; PROGRAM is thompson by default
set -euo pipefail

program=${1:-thompson} folder=results/guard_priors
mkdir -p "$folder"
study=$(mktemp --suffix=.yaml)
trap 'rm -f "$study"' EXIT
for world in cross rays triangles swirl H corners; do
  cat > "$study" <<END
name: guard_priors
study: bandit
problem: {theta: $world}
policies: [diffts]
prior: {schedule: log_snr, stages: 10, components: 10, standardise: false}
END
  for family in diffusion denoiser mixture; do
    file=$folder/$family-$world.nc
    [ -e "$file" ] || "$program" train "$study" --family "$family" -o "$file"
  done
done
