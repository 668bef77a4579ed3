/* Bandits on real data: theta* and arms are rows of an embedding file (DiffTS paper, Sections 6.3 and C.2).
 */
#include "core/memory.h"
#include "problem/embedding/embedding_file.h"
#include "problem/problems.h"
#include "problem/theta.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
  ThetaSource theta;
  Embedding file; /* its theta has gone over to the source */
} EmbeddingProblem;

/* sigma of the file, unless the study gives it. */
static Status choose_noise(Problem *self, const Config *config, const EmbeddingProblem *state) {
  if (!config_is(config, "problem.noise", "auto")) return STATUS_OK;
  if (isnan(state->file.noise))
    return status_set(STATUS_INPUT, "%s has no attribute 'noise', so problem.noise is needed",
                      config_text(config, "problem.file"));
  self->likelihood.noise = state->file.noise;
  return STATUS_OK;
}

static Status create(Problem *self, const Config *config) {
  EmbeddingProblem *state;
  NEW(state, 1);
  self->state = state;
  const char *path = config_text(config, "problem.file");
  if (!path)
    return status_set(STATUS_INPUT, "problem.family = embedding needs problem.file, which is not given");
  TRY(embedding_read(path, &state->file));
  TRY(choose_noise(self, config, state));
  int dimension =
      config_is(config, "problem.dimension", "auto") ? 0 : (int)config_int(config, "problem.dimension");
  self->d = state->file.d;
  TRY(theta_create_set(&state->file.theta, path, dimension, config_real(config, "prior.test_fraction"),
                       self->seed, &state->theta));
  return problem_check_items(self, theta_test_size(&state->theta));
}

static void destroy(Problem *self) {
  EmbeddingProblem *state = self->state;
  if (state) {
    theta_destroy(&state->theta);
    embedding_free(&state->file);
  }
  free(state);
}

static void draw_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  const EmbeddingProblem *state = self->state;
  theta_draw(&state->theta, replicate, first_run, runs, theta);
}

static void draw_arm_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs,
                           double *theta) {
  const EmbeddingProblem *state = self->state;
  theta_draw_each(&state->theta, replicate, first_run, runs, self->arms, theta);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const EmbeddingProblem *state = self->state;
  return theta_training_samples(&state->theta, replicate, limit, out);
}

/* K rows of the file's features for each run (one where each arm has its own theta*), uniform with
 * replacement. More arms leave the first ones as they are. */
static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round,
                          const double *kept, double *features, double *scratch) {
  (void)kept;
  (void)scratch;
  const Embedding *file = &((const EmbeddingProblem *)self->state)->file;
  RngKey key = rng_key(self->seed, RNG_ARMS);
  size_t d = (size_t)self->d;
  for (int b = 0; b < runs; b++) {
    Rng rng = {.key = key, .run = first_run + (uint32_t)b, .round = round};
    for (int k = 0; k < problem_vectors(self); k++) {
      const double *row = file->features + rng_index(&rng, (uint64_t)file->arms) * d;
      for (size_t i = 0; i < d; i++) features[((size_t)k * d + i) * (size_t)runs + (size_t)b] = row[i];
    }
  }
}

const ProblemOps problem_embedding = {.name = "embedding",
                                      .summary = "theta* and arms from the rows of an embedding file",
                                      .reference = "DiffTS, Section 6.3",
                                      .create = create,
                                      .destroy = destroy,
                                      .theta = draw_theta,
                                      .arm_theta = draw_arm_theta,
                                      .features = draw_features,
                                      .training_samples = training_samples};
