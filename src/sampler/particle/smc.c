/* Sequential Monte Carlo (DiffTS paper, Appendix C.4): each run carries a cloud of particles, drawn from the
 * prior. In round k the particles are perturbed by Gaussian noise of standard deviation step_size sigma /
 * sqrt(k), weighted by the likelihood of the round's observation, and resampled (systematic). A draw is one
 * of the particles.
 *
 * The paper states neither the fraction of the observation noise nor its decay: step_size = 0.2 and sqrt(k)
 * are ours. If rewards are not Gaussian, sigma is 1.
 *
 * Observations that the cloud was not notified of one by one are absorbed in one step, at the next draw or
 * the next update. The perturbation is never undone, so the cloud is only close to the posterior, and it
 * degenerates if the likelihood is narrow: smc_tempered.c avoids both. If all weights vanish every particle
 * is kept, which counts as a fallback; so does a cloud that is down to a single particle. */
#include "core/arena.h"
#include "core/lanes.h"
#include "core/particles.h"
#include "core/simd.h"
#include "io/config/config_rows.h"
#include "model/history/history_density.h"
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

typedef struct {
  int particles; /* P */
  double step_size;
  RngKey key;
  double *cloud; /* [B, d, P] */
  HistoryMarks absorbed; /* what each cloud has absorbed */
  HistoryDensity density;
  double *moved; /* [d, P] */
  double *weight; /* [P] */
  int *chosen; /* [P] */
} Smc;

static double *smc_cloud_of_run(const Sampler *sampler, int b) {
  const Smc *self = sampler->state;
  return self->cloud + (size_t)b * (size_t)sampler->d * (size_t)self->particles;
}

static void smc_begin(Sampler *sampler, int runs) {
  Smc *self = sampler->state;
  const int particles = self->particles;
  const Prior *prior = sampler->setup.prior;
  for (int b = 0; b < runs; b++) {
    RngLanes rng = sampler_update_streams(sampler, 0, particles, b * particles, particles);
    prior->ops->sample(prior, &rng, smc_cloud_of_run(sampler, b));
    sampler->notes[b].ess = particles;
  }
  history_marks_clear(&self->absorbed, runs);
}

/* Absorbs what the cloud of run b has not seen of the history: perturbs it, weighs it by the likelihood of
 * the new observations, and resamples. */
SIMD_CLONES
static void smc_absorb_run(Sampler *sampler, const History *history, int b, int64_t *fallbacks) {
  Smc *self = sampler->state;
  const int d = sampler->d, particles = self->particles, first = b * particles;
  const size_t entries = (size_t)d * (size_t)particles;
  const double sd = self->step_size * likelihood_noise(history->likelihood) / sqrt(history->rounds);
  double offset, *cloud = smc_cloud_of_run(sampler, b);
  RngLanes normals = sampler_update_streams(sampler, history->rounds, particles, first, particles);
  Rng rng =
      particles_cloud_stream(self->key, sampler->setup.first_run + (uint32_t)b, (uint32_t)history->rounds);
  rng_lanes_normal(&normals, d, self->moved);
  for (size_t k = 0; k < entries; k++) self->moved[k] = cloud[k] + sd * self->moved[k];
  history_density_since(&self->density, history, b, particles, &self->absorbed);
  history_density(&self->density, self->moved, self->weight, NULL);
  bool left = particles_weigh(particles, self->weight, self->weight);
  sampler->notes[b].ess = particles_ess(particles, self->weight);
  if (!left || sampler->notes[b].ess < 1 + 1e-6) fallbacks[b]++;
  rng_uniform(&rng, 1, &offset);
  particles_resample(particles, self->weight, offset, particles, self->chosen);
  lanes_gather(d, particles, particles, self->chosen, self->moved, cloud);
}

static void smc_update(Sampler *sampler, const History *history, int round, int64_t *fallbacks) {
  (void)round;
  for (int b = 0; b < history->runs; b++) smc_absorb_run(sampler, history, b, fallbacks);
}

static void smc_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                       int64_t *fallbacks) {
  const Smc *self = sampler->state;
  const size_t lanes = rng.lanes;
  double *uniform = theta + (size_t)(sampler->d - 1) * lanes;
  (void)fallbacks;
  rng_lanes_uniform(&rng, 1, uniform);
  for (int b = 0; b < history->runs; b++)
    particles_pick(sampler->d, self->particles, smc_cloud_of_run(sampler, b), draws,
                   uniform + (size_t)b * (size_t)draws, lanes, theta + (size_t)b * (size_t)draws);
}

static Status smc_create(Sampler *sampler, const SamplerSetup *setup) {
  Arena *memory = sampler->memory;
  const size_t d = (size_t)sampler->d, runs = (size_t)setup->runs,
               particles = (size_t)config_int(setup->options, "particles");
  TRY(particles_check_size("smc", (int64_t)particles, setup->runs, "runs"));
  Smc *self;
  ALLOCATE(memory, self, 1);
  sampler->state = self;
  self->particles = (int)particles;
  self->step_size = config_real(setup->options, "step_size");
  self->key = rng_key(setup->seed, RNG_OBSERVE);
  ALLOCATE(memory, self->cloud, runs * d * particles);
  TRY(history_marks_create(memory, sampler->d, setup->runs, &self->absorbed));
  TRY(history_density_create(memory, sampler->d, 1, setup->likelihood, &self->density));
  ALLOCATE(memory, self->moved, d * particles);
  ALLOCATE(memory, self->weight, particles);
  ALLOCATE(memory, self->chosen, particles);
  return STATUS_OK;
}

static const ConfigKey KEYS[] = {{INT("particles", 2, 10000000, "3000", "particles in the cloud of a run")},
                                 {REAL("step_size", 0, 1000, "0.2",
                                       "in round k particles are perturbed with standard deviation step_size "
                                       "sigma / sqrt(k); sigma is 1 for rewards that are not Gaussian")},
                                 {.name = NULL}};

const SamplerOps sampler_smc = {
    .name = "smc",
    .summary = "sequential Monte Carlo: particles of the prior, perturbed, weighted and resampled each round",
    .reference = "Kveton et al., DiffTS paper, Appendix C.4",
    .default_prior = "diffusion",
    .by_observation = true,
    .keys = KEYS,
    .vectors = sampler_always_vectors,
    .create = smc_create,
    .sample = smc_sample,
    .begin = smc_begin,
    .update = smc_update,
    .at_once = true,
};
