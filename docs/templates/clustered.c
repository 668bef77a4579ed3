/* Arms in clusters, as the users in Gentile, Li and Zappella 2014 (Online clustering of bandits): the arms of
 * a run lie near one of four centres, which are N(0, I) and fixed for the run. theta* is N(0, I). */
#include "problem/problem.h"

enum { CENTRES = 4 };

static const double SPREAD = 0.3; /* standard deviation of an arm about its centre */

static Status clustered_create(Problem *self, const Config *config) {
  (void)config;
  self->kept = CENTRES * (size_t)self->d;
  return problem_theta_create_gaussian(self->d, self->seed, &self->theta);
}

/* Draws what a run keeps, its centres: kept[B, CENTRES, d]. */
static void clustered_keep(World *world) {
  const Problem *self = world->problem;
  for (int b = 0; b < world->runs; b++) {
    Rng rng = {.key = rng_key(self->seed, RNG_POOL), .run = world->first_run + (uint32_t)b};
    rng_normal(&rng, CENTRES * self->d, world->kept + b * CENTRES * self->d);
  }
}

/* Draws arm k near centre k mod CENTRES; adding arms leaves the first ones unchanged. */
static void clustered_features(World *world) {
  const int d = world->problem->d, vectors = problem_vectors(world->problem), runs = world->runs;
  RngLanes rng = world_streams(world, RNG_ARMS);
  rng_lanes_normal(&rng, vectors * d, world->features);
  for (int k = 0; k < vectors; k++)
    for (int i = 0; i < d; i++)
      for (int b = 0; b < runs; b++) {
        double *x = &world->features[(k * d + i) * runs + b];
        *x = world->kept[(b * CENTRES + k % CENTRES) * d + i] + SPREAD * *x;
      }
}

const ProblemOps problem_clustered = {.name = "clustered",
                                      .summary = "arms in four clusters",
                                      .reference = "Gentile et al. (2014)",
                                      .dimension = 4,
                                      .create = clustered_create,
                                      .keep = clustered_keep,
                                      .features = clustered_features};
