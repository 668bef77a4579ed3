/* A[m, d] is drawn for each run: min(m, d) singular values between snr sigma and kappa snr sigma, each the
 * same multiple of the last, and singular vectors uniform among all. Its rows are the arms, m = problem.arms,
 * so a history holds them in order, and one of m observations is the whole of y. With Q = A' A / sigma^2:
 * snr^2 is its smallest eigenvalue that is not 0 by construction, kappa^2 the ratio of largest to smallest.
 */
#include "problem/inverse.h"

#include "core/memory.h"
#include "problem/rotation.h"
#include "problem/theta_prior.h"

#include <math.h>
#include <stdlib.h>

/* The right singular vectors of a run come from the upper half of the positions of its stream. */
static const uint32_t RIGHT_POSITION = 1u << 31;

typedef struct {
  ThetaSource theta;
  double snr, condition_number;
} Inverse;

static int rank_of(const Problem *self) { return self->arms < self->d ? self->arms : self->d; }

static Status create(Problem *self, const Config *config) {
  Inverse *state;
  NEW(state, 1);
  self->state = state;
  int dimension =
      config_is(config, "problem.dimension", "auto") ? 0 : (int)config_int(config, "problem.dimension");
  TRY(theta_create(theta_find(config_text(config, "problem.theta")), dimension,
                   config_text(config, "problem.file"), config_real(config, "prior.test_fraction"),
                   self->seed, &state->theta));
  self->d = state->theta.d;
  self->has_exact_prior = theta_has_prior(&state->theta);
  self->arms_in_order = true;
  state->snr = config_real(config, "problem.snr");
  state->condition_number = config_real(config, "problem.condition_number");
  self->feature_scratch = (size_t)rank_of(self) * ((size_t)self->arms + (size_t)self->d);
  return STATUS_OK;
}

static void destroy(Problem *self) {
  Inverse *state = self->state;
  if (state) theta_destroy(&state->theta);
  free(state);
}

static void draw_theta(const Problem *self, uint32_t replicate, uint32_t first_run, int runs, double *theta) {
  const Inverse *state = self->state;
  theta_draw(&state->theta, replicate, first_run, runs, theta);
}

static Status training_samples(const Problem *self, uint32_t replicate, int64_t limit, Samples *out) {
  const Inverse *state = self->state;
  return theta_training_samples(&state->theta, replicate, limit, out);
}

static Status exact_prior(const Problem *self, const PriorFit *chain_settings, Prior *out) {
  const Inverse *state = self->state;
  return theta_prior(&state->theta, chain_settings, out);
}

/* Singular value k of 0 .. rank - 1, falling. */
static double singular_value(const Problem *self, int k) {
  const Inverse *state = self->state;
  const int last = rank_of(self) - 1;
  const double share = last > 0 ? (double)(last - k) / last : 0;
  return state->snr * self->likelihood.noise * pow(state->condition_number, share);
}

static void draw_features(const Problem *self, uint32_t first_run, int runs, uint32_t round, double *features,
                          double *scratch) {
  const int d = self->d, m = self->arms, rank = rank_of(self);
  double *left = scratch + runs, *right = left + rank * m; /* [rank, m], [rank, d] */
  for (int b = 0; b < runs; b++) {
    Rng rng = {.key = rng_key(self->seed, RNG_ARMS), .run = first_run + (uint32_t)b, .round = round};
    rotation_draw(&rng, rank, m, left);
    rng.position = RIGHT_POSITION;
    rotation_draw(&rng, rank, d, right);
    for (int row = 0; row < m; row++)
      for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int k = 0; k < rank; k++) sum += singular_value(self, k) * left[k * m + row] * right[k * d + i];
        features[(size_t)(row * d + i) * (size_t)runs + (size_t)b] = sum;
      }
  }
}

const ProblemOps problem_inverse = {.name = "inverse",
                                    .summary = "y = A theta* + noise, the rows of A in order as the arms",
                                    .reference = "Bruna and Han (2024), Tilted transport",
                                    .create = create,
                                    .destroy = destroy,
                                    .theta = draw_theta,
                                    .features = draw_features,
                                    .training_samples = training_samples,
                                    .exact_prior = exact_prior};
