#include "study/optimal_arm.h"

#include <math.h>
#include <string.h>

bool optimal_arm_known(const PolicyMethod *method, const Config *options, const Problem *problem) {
  return method->sampler && !problem->per_arm && !config_is(options, "posterior", "per_arm") &&
         !config_is(options, "model", "network");
}

Status optimal_arm_create(Arena *memory, const PolicyMethod *method, const PolicySetup *setup, int draws,
                          OptimalArm *out) {
  const size_t d = (size_t)setup->prior->d, runs = (size_t)setup->runs;
  *out =
      (OptimalArm){.runs = setup->runs, .draws = draws, .seed = setup->seed, .first_run = setup->first_run};
  ALLOCATE(memory, out->theta, d * runs * (size_t)draws);
  ALLOCATE(memory, out->one, d * runs);
  ALLOCATE_ARRAYS(memory, runs, out->arm, out->ignored);
  ALLOCATE(memory, out->count, (size_t)setup->problem->arms * runs);
  SamplerSetup sampler = {.prior = setup->prior,
                          .likelihood = setup->likelihood,
                          .runs = setup->runs,
                          .draws = draws,
                          .seed = setup->seed,
                          .first_run = setup->first_run,
                          .options = setup->options};
  return sampler_create(memory, method->sampler, &sampler, &out->sampler);
}

void optimal_arm_observe(OptimalArm *self, const History *history) {
  sampler_observe(&self->sampler, history, self->ignored);
}

/* Draws m of every run: one[d, B] <- theta[d, B M]. */
static void pick_draw(OptimalArm *self, int d, int m) {
  for (int i = 0; i < d; i++)
    for (int b = 0; b < self->runs; b++)
      self->one[i * self->runs + b] =
          self->theta[((size_t)i * (size_t)self->runs + (size_t)b) * (size_t)self->draws + (size_t)m];
}

void optimal_arm_entropy(OptimalArm *self, const World *world, const History *history, size_t stride,
                         double *entropy) {
  const int runs = self->runs, arms = world->problem->arms;
  const RngLanes rng = {.key = rng_key(self->seed, RNG_OPTIMAL_ARM),
                        .run = self->first_run,
                        .draws = (uint32_t)self->draws,
                        .round = world->round,
                        .lanes = (uint32_t)(runs * self->draws)};
  sampler_sample(&self->sampler, history, rng, self->draws, self->theta, self->ignored);
  memset(self->count, 0, (size_t)arms * (size_t)runs * sizeof *self->count);
  for (int m = 0; m < self->draws; m++) {
    pick_draw(self, self->sampler.d, m);
    world_greedy(world, self->one, self->arm);
    for (int b = 0; b < runs; b++) self->count[self->arm[b] * runs + b]++;
  }
  for (int b = 0; b < runs; b++) {
    double sum = 0;
    for (int k = 0; k < arms; k++) {
      const double share = (double)self->count[k * runs + b] / self->draws;
      if (share > 0) sum -= share * log(share);
    }
    entropy[(size_t)b * stride] = sum;
  }
}
