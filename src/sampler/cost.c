#include "sampler/cost.h"

#include "core/linalg/linalg.h"
#include "sampler/mixture/mixture_posterior.h"

/* Returns the cost of a draw; above LINALG_TILE_DIMENSION each matrix is a separate LAPACK call. */
double cost_gaussian(const SamplerWork *work) {
  const double d = work->d, row = d > LINALG_TILE_DIMENSION ? 1200 : 75;
  return 120 + row * d + 0.8 * d * d * d;
}

double cost_solve(double d) { return 30 + (d > LINALG_BATCH_DIMENSION ? 400 : 15) * d + d * d; }

double cost_rows(const SamplerWork *work, double lanes, bool hessian) {
  const double d = work->d;
  if (work->conjugate) return 0;
  return work->rows * cost_padding(lanes, TILE_LANES) * (40 + 8 * d + (hessian ? d * d : 0));
}

double cost_mode(const SamplerWork *work, double lanes) {
  const double iterations = 2.5;
  return work->conjugate ? 0 : iterations * (cost_rows(work, lanes, true) + cost_gaussian(work));
}

double cost_density(const SamplerWork *work) { return work->components * (60 + 0.5 * work->d * work->d); }

double cost_score(const SamplerWork *work, double lanes) {
  if (work->components == 0) return cost_noise(work, lanes);
  return work->components * (100 + 5 * work->d * work->d);
}

/* Returns the cost of a stage; for a single Gaussian it works in the eigenbasis of the covariance. */
double cost_noise(const SamplerWork *work, double lanes) {
  const double square = work->d * work->d;
  if (work->stage_parameters > 0) return 0.22 * work->stage_parameters * cost_padding(lanes, NETWORK_GRAIN);
  return 200 + (work->components > 1 ? 25 * work->components : 3) * square;
}

/* Returns the cost of the moments, including the eigenvectors of the covariance, which are already known for
 * a single Gaussian and for the vertices of a hypercube. */
double cost_stage_moments(const SamplerWork *work, double lanes) {
  const double d = work->d, network = work->stage_parameters * cost_padding(lanes, NETWORK_GRAIN),
               jacobian = network > 0 ? 0.06 * network * (d + 3) : cost_noise(work, lanes);
  const bool known = work->stage_parameters == 0 && work->components <= 1;
  const double square = known ? 20 : 45, cube = known ? 2.5 : 18;
  return jacobian + cost_share(lanes) * (100 + square * d * d + cube * d * d * d);
}

double cost_sweeps(const SamplerWork *work) {
  const Config *options = work->options;
  if (work->conjugate) return 0;
  if (options && config_has(options, "approximation") && config_is(options, "approximation", "laplace"))
    return 0;
  return 4500 * work->rows + 1200 * work->d * work->d;
}

double cost_mixture(const SamplerWork *work, double components) {
  const MixtureOptions options = mixture_posterior_options(work->options);
  SamplerWork remembered = *work; /* with only those rows that a history with this memory still has */
  if (options.forgets) remembered.rows = fmin(work->rows, 1 + 1.5 * options.keep);
  work = &remembered;
  const double lanes = cost_drawn_lanes(work), d = work->d;
  const double update = components * (cost_gaussian(work) + cost_mode(work, lanes) + cost_sweeps(work));
  const double candidates = work->conjugate ? 1 : options.candidates;
  const double further = candidates * (600 + 70 * d * d + 1.5 * cost_rows(work, lanes, false));
  return work->drawn * cost_share(lanes) * (update + cost_gaussian(work) / 2 + (work->draws - 1) * further);
}

/* Returns the cost of tempering. The number of exponents grows with the logarithm of the evidence; a reward
 * that is not Gaussian is less informative. The density of a prior that is not a mixture is looked up; no
 * gradient of the rows is needed. */
double cost_tempering(const SamplerWork *work, double particles, double steps) {
  const double informative = work->conjugate ? work->rounds : work->rounds / 8;
  const double d = work->d, exponents = sqrt(d / 2) * (1 + log2(1 + informative));
  const double looked_up = 1000, density = work->components > 0 ? cost_density(work) : looked_up;
  const double step = 55 + 9 * d + density / 2 + 0.4 * cost_rows(work, particles, false);
  return 2.5 * particles * steps * exponents * step;
}

double cost_round(const SamplerOps *method, const SamplerWork *work) {
  return method->cost(work) + (work->guarded > 0 ? cost_mixture(work, work->guarded) : 0);
}
