/* Joint moments: every stage of the reverse chain is conditioned on the history, with the clean sample given
 * the state approximated by a Gaussian (joint_chain.h).
 *
 * Unlike LaplaceDPS it is exact for a Gaussian prior with its exact chain, for any number of stages, and
 * needs no repaired last stage. Without observations it is a reverse chain whose steps include the covariance
 * C_t of the clean sample: they have beta_tilde_t I + w0^2 C_t where chain_sample has Sigma_t. So its law
 * differs from that of chain_sample, and for a Gaussian prior it is the right one. A draw uses d normals of
 * its stream for s_T, then d per stage. */
#include "sampler/cost.h"
#include "sampler/diffusion/joint_chain.h"

#include "core/chunk.h"
#include "sampler/methods.h"

/* n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  JointChain chain;
  double *z; /* [d, n] */
} Joint;

static void joint_diffusion_sample(Sampler *sampler, const History *history, RngLanes rng, int draws,
                                   double *theta, int64_t *fallbacks) {
  Joint *self = sampler->state;
  const Chain *chain = sampler->setup.prior->chain;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = {history, draws, chunk.first, chunk.lanes, chain->shift, chain->scale};
    joint_chain_begin(&self->chain, &view);
    for (int t = chain->schedule.stages + 1; t >= 1; t--) {
      joint_chain_condition(&self->chain, t, fallbacks);
      rng_lanes_normal(&chunk.rng, chain->d, self->z);
      joint_chain_draw(&self->chain, t, self->z, NULL, fallbacks);
      chain_guard(&chunk, chain->d, self->chain.s, fallbacks);
    }
    chain_to_theta(chain, chunk.lanes, self->chain.s);
    chunk_store(&chunk, chain->d, self->chain.s, theta);
  }
}

static Status joint_diffusion_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  Joint *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  ALLOCATE(memory, self->z, (size_t)sampler->d * CHUNK_LANES);
  return joint_chain_create(memory, setup, config_is(setup->options, "covariance", "loss"), CHUNK_LANES,
                            &self->chain);
}

static double joint_diffusion_cost(const SamplerWork *work) {
  return work->drawn * work->draws * joint_chain_cost(work, cost_drawn_lanes(work));
}

static const ConfigKey KEYS[] = {{JOINT_COVARIANCE_KEY}, {.name = NULL}};

const SamplerOps sampler_joint = {
    .name = "joint",
    .summary = "Joint moments: reverse stages of a diffusion prior, each conditioned on the evidence by the "
               "Gaussian of its clean sample",
    .reference = "Boys et al. (2023), Tweedie moment projected diffusions; sampled with the exact moments of "
                 "the bridge",
    .default_prior = "diffusion",
    .needs = NEEDS_CHAIN,
    .keys = KEYS,
    .create = joint_diffusion_create,
    .sample = joint_diffusion_sample,
    .cost = joint_diffusion_cost,
};
