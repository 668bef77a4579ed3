/* Langevin Monte Carlo Thompson sampling (Xu et al. 2022; VITS paper, Section 1 and Appendix F): each draw is
 * the state of its own chain,
 *
 *     theta <- theta - h grad U(theta) + sqrt(2 h) z,
 *
 * which makes `steps` updates after every observation, starting from where the last round left it. A chain
 * starts as a draw from the prior, shrunk towards the prior's mean by the factor 1 / sqrt(eta lambda); for a
 * Gaussian prior that is a draw from the tempered prior. theta can be the weights of a network.
 *
 * Under the rule `lambda_max` a Gaussian prior is whitened (potential.h): steps are then preconditioned by
 * its covariance, so that only the evidence can make the chain slow. The rule `eta_t` is the paper's, in
 * theta itself.
 *
 * No step is rejected, so a chain on a Gaussian target of precision P settles at the covariance (P - h P^2 /
 * 2)^-1, whose variances are too large by the factor 1 / (1 - a / 2), a being h times the eigenvalue of P.
 *
 * M draws per run are M chains; the streams of an update are (RNG_OBSERVE, run, round, chain). Returning the
 * draws uses no further random numbers. */
#include "core/chunk.h"
#include "sampler/gradient/lmc_step.h"
#include "sampler/sampler.h"

static void lmc_begin(Sampler *sampler, int runs) {
  const Lmc *self = sampler->state;
  const int draws = sampler->setup.draws;
  const RngLanes rng = sampler_update_streams(sampler, 0, draws, 0, runs * draws);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng))
    potential_start(&self->potential, &chunk.rng, self->theta + (ptrdiff_t)chunk.first * sampler->d);
}

static void lmc_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  Lmc *self = sampler->state;
  const int draws = sampler->setup.draws;
  const RngLanes rng = sampler_update_streams(sampler, round, draws, 0, history->runs * draws);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = history_view(history, draws, chunk.first, chunk.lanes);
    potential_at(&self->potential, &view);
    lmc_step_round(self, &chunk.rng, self->theta + (ptrdiff_t)chunk.first * sampler->d, fallbacks);
  }
}

/* Returns the first `draws` chains of every run as its draws. */
static void lmc_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  Lmc *self = sampler->state;
  const int d = sampler->d, chains = sampler->setup.draws, total = history->runs * chains;
  (void)fallbacks;
  if (draws == chains && !self->potential.root) { /* the chains are in the order of the draws already */
    for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng))
      chunk_store(&chunk, d, self->theta + (ptrdiff_t)chunk.first * d, theta);
    return;
  }
  for (int n = 0; n < (int)rng.lanes; n++) {
    const int chain = n / draws * chains + n % draws, first = chain / CHUNK_LANES * CHUNK_LANES;
    const double *from = self->theta + (ptrdiff_t)first * d + (chain - first);
    double *z = self->gradient;
    lanes_copy(d, 1, from, chunk_size(total, first, CHUNK_LANES), z, 1);
    lanes_copy(d, 1, potential_theta(&self->potential, 1, z), 1, theta + n, (int)rng.lanes);
  }
}

/* Counts the gradient of each step. */
static double lmc_operations(const Sampler *sampler) {
  const Lmc *self = sampler->state;
  const double d = sampler->d;
  if (!potential_has_fixed_hessian(&self->potential)) return NAN;
  return step_size_operations(&self->step, sampler->d) + self->step.steps * 2 * d * d;
}

static Status lmc_create(Sampler *sampler, const SamplerSetup *setup) {
  Lmc *self;
  ALLOCATE(sampler->memory, self, 1);
  sampler->state = self;
  return lmc_step_create(sampler->memory, setup, self);
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, STEP_KEYS, {.name = NULL}};

static const ConfigKey FEEL_GOOD_KEYS[] = {
    POTENTIAL_KEYS,
    STEP_KEYS,
    {REAL("optimism", 0, 1e6, "0.01",
          "mu of the feel-good term, the best reward that theta promises in each round")},
    {.name = NULL}};

#define LMC_OPS                                                                                              \
  .default_prior = "standard", .needs = NEEDS_SCORE, .create = lmc_create, .sample = lmc_sample,             \
  .targets_posterior = potential_targets_posterior, .begin = lmc_begin, .update = lmc_update,                \
  .operations = lmc_operations, .restless = true, .wide = 1.118 /* (1 - a / 2)^-1/2 at a = 0.4 */

const SamplerOps sampler_lmc = {
    .name = "lmc",
    .summary = "Langevin Monte Carlo: chains that follow the gradient of the log posterior, with noise",
    .reference = "Xu et al. (2022); VITS paper, Appendix F",
    .keys = KEYS,
    .networks = true,
    .chain = true,
    LMC_OPS,
};

const SamplerOps sampler_fgts = {
    .name = "fgts",
    .summary = "Feel-Good Thompson sampling: Langevin Monte Carlo that favours theta with a high reward",
    .reference = "Zhang (2022); Huix, Zhang and Durmus (2023)",
    .by_observation = true,
    .keys = FEEL_GOOD_KEYS,
    LMC_OPS,
};
