/* Arms in clusters (Gentile, Li and Zappella 2014, Online clustering of bandits, has users in such): those of
 * a run are near one of four centres, which are N(0, I) and stay for the run. theta* is N(0, I). */
#include "core/memory.h"
#include "problem/problems.h"
#include "problem/theta.h"
#include "problem/theta_prior.h"

#include <stdlib.h>

enum { DIMENSION = 4, CENTRES = 4 };

static const double SPREAD = 0.3; /* standard deviation of an arm about its centre */

typedef struct {
  ThetaSource theta;
} Clustered;

static Status clustered_create(Problem *self, const Config *config) {
  Clustered *state;
  NEW(state, 1);
  self->state = state;
  self->d = config_is(config, "problem.dimension", "auto") ? DIMENSION
                                                           : (int)config_int(config, "problem.dimension");
  self->kept = CENTRES * (size_t)self->d;
  self->has_exact_prior = true;
  return theta_create(theta_find("gaussian"), self->d, NULL, 0, self->seed, &state->theta);
}

static void clustered_destroy(Problem *self) {
  Clustered *state = self->state;
  if (state) theta_destroy(&state->theta);
  free(state);
}

static void clustered_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs,
                            double *theta) {
  const Clustered *state = self->state;
  theta_draw(&state->theta, replicate, first_run, runs, theta);
}

static Status clustered_training_samples(const Problem *self, uint32_t replicate, int64_t limit,
                                         Samples *out) {
  const Clustered *state = self->state;
  return theta_training_samples(&state->theta, replicate, limit, out);
}

static Status clustered_exact_prior(Arena *memory, const Problem *self, const PriorFit *chain_settings,
                                    Prior *out) {
  const Clustered *state = self->state;
  return theta_prior(memory, &state->theta, chain_settings, out);
}

/* What a run keeps are its centres, kept[B, CENTRES, d]. */
static void clustered_keep(const Problem *self, uint32_t first_run, int runs, double *kept) {
  for (int b = 0; b < runs; b++) {
    Rng rng = {.key = rng_key(self->seed, RNG_POOL), .run = first_run + (uint32_t)b};
    rng_normal(&rng, CENTRES * self->d, kept + b * CENTRES * self->d);
  }
}

/* Arm k is near centre k mod CENTRES; more arms leave the first ones as they are. */
static void clustered_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                               const double *kept, double *features, double *scratch) {
  (void)scratch;
  const int d = self->d, vectors = problem_vectors(self);
  RngLanes rng = {.key = rng_key(self->seed, RNG_ARMS),
                  .run = first_run,
                  .draws = 1,
                  .round = round,
                  .lanes = (uint32_t)runs};
  rng_lanes_normal(&rng, vectors * d, features);
  for (int k = 0; k < vectors; k++)
    for (int i = 0; i < d; i++)
      for (int b = 0; b < runs; b++) {
        double *x = &features[(k * d + i) * runs + b];
        *x = kept[(b * CENTRES + k % CENTRES) * d + i] + SPREAD * *x;
      }
}

const ProblemOps problem_clustered = {.name = "clustered",
                                      .summary = "arms in four clusters",
                                      .reference = "Gentile et al. (2014)",
                                      .create = clustered_create,
                                      .destroy = clustered_destroy,
                                      .theta = clustered_theta,
                                      .keep = clustered_keep,
                                      .features = clustered_features,
                                      .training_samples = clustered_training_samples,
                                      .exact_prior = clustered_exact_prior};
