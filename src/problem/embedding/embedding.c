/* Bandits on real data: theta* and arms are rows of an embedding file (DiffTS paper, Sections 6.3 and
 * C.2). */
#include "problem/embedding/embedding_file.h"
#include "problem/problems.h"

#include <math.h>

static Status embedding_problem_create(Problem *self, const Config *config) {
  Embedding *file;
  ALLOCATE(&self->memory, file, 1);
  self->state = file;
  const char *path = config_text(config, "problem.file");
  if (!path)
    return status_set(STATUS_INPUT, "problem.family = embedding needs problem.file, which is not given");
  TRY(embedding_read(&self->memory, path, file));
  if (config_is(config, "problem.noise", "auto")) self->likelihood.noise = file->noise;
  if (isnan(self->likelihood.noise))
    return status_set(STATUS_INPUT, "%s has no attribute 'noise', so problem.noise is needed", path);
  TRY(theta_create_set(&file->theta, path, self->d, config_real(config, "prior.test_fraction"), self->seed,
                       &self->theta));
  self->theta.held_out = file->held_out;
  return STATUS_OK;
}

/* Draws K rows of the file's features for each run (one where each arm has its own theta*), uniform with
 * replacement. More arms leave the first ones as they are. */
static void embedding_draw_features(World *world) {
  const Problem *self = world->problem;
  const Embedding *file = self->state;
  const RngKey key = rng_key(self->seed, RNG_ARMS);
  const size_t d = (size_t)self->d, runs = (size_t)world->runs;
  for (size_t b = 0; b < runs; b++) {
    Rng rng = {.key = key, .run = world->first_run + (uint32_t)b, .round = world->round};
    for (size_t k = 0; k < (size_t)problem_vectors(self); k++) {
      const double *row = file->features + rng_index(&rng, (uint64_t)file->arms) * d;
      for (size_t i = 0; i < d; i++) world->features[(k * d + i) * runs + b] = row[i];
    }
  }
}

const ProblemOps problem_embedding = {.name = "embedding",
                                      .summary = "theta* and arms from the rows of an embedding file",
                                      .reference = "DiffTS, Section 6.3",
                                      .per_arm = true,
                                      .create = embedding_problem_create,
                                      .features = embedding_draw_features};
