/* Exact posterior sampling with a Gaussian mixture prior and a conjugate likelihood: TS, TunedTS and MixTS of
 * the DiffTS paper (Section 6.1) are this one method with three priors.
 *
 * With evidence (Lambda, b) component c has the posterior N(P_c^-1 h_c, P_c^-1) of equation 3, P_c =
 * Sigma_c^-1 + Lambda, h_c = Sigma_c^-1 mu_c + b, and the weight (Hong et al. 2022, Thompson sampling with a
 * mixture prior)
 *
 *     w_c |Sigma_c|^-1/2 |P_c|^-1/2 exp(-mu_c' Sigma_c^-1 mu_c / 2 + h_c' P_c^-1 h_c / 2).
 *
 * A draw uses 1 uniform and d normals of its stream. */
#include "core/linalg.h"
#include "core/memory.h"
#include "sampler/chunk.h"
#include "sampler/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* C components, n <= CHUNK_LANES lanes, lane last. */
typedef struct {
  double *
      prior_constant; /* [C]: log weight of a component before the first observation, without its h_c terms */
  double *precision; /* [d, d, n]: Lambda */
  double *vector; /* [d, n]: b */
  double *factor; /* [C, d, d, n]: P_c, then its Cholesky factor L_c */
  double *whitened; /* [C, d, n]: L_c^-1 h_c */
  double *log_weight; /* [C, n] */
  double *chosen_factor; /* [d, d, n]: L of the drawn component */
  double *uniform, *normal; /* [n], [d, n] */
  int *rescues; /* [n] */
} Conjugate;

static void conjugate_destroy(Sampler *self) {
  Conjugate *state = self->state;
  free(state->prior_constant);
  free(state->precision);
  free(state->vector);
  free(state->factor);
  free(state->whitened);
  free(state->log_weight);
  free(state->chosen_factor);
  free(state->uniform);
  free(state->normal);
  free(state->rescues);
  free(state);
}

static Status conjugate_create(Sampler *self, const SamplerSetup *setup) {
  const Mixture *prior = setup->prior->mixture;
  const size_t d = (size_t)prior->d, components = (size_t)prior->components, n = CHUNK_LANES;
  Conjugate *state;
  NEW(state, 1);
  self->state = state;
  NEW(state->prior_constant, components);
  NEW(state->precision, d * d * n);
  NEW(state->vector, d * n);
  NEW(state->factor, components * d * d * n);
  NEW(state->whitened, components * d * n);
  NEW(state->log_weight, components * n);
  NEW(state->chosen_factor, d * d * n);
  NEW(state->uniform, n);
  NEW(state->normal, d * n);
  NEW(state->rescues, n);
  for (size_t c = 0; c < components; c++) {
    double square = 0;
    for (size_t i = 0; i < d; i++) square += prior->mean[c * d + i] * prior->information[c * d + i];
    state->prior_constant[c] = prior->log_norm[c] - 0.5 * square;
  }
  return STATUS_OK;
}

/* out[rows, lanes] = prior[rows] + evidence[rows, lanes]. */
static void add_evidence(int rows, int lanes, const double *prior, const double *evidence, double *out) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) out[i * lanes + n] = prior[i] + evidence[i * lanes + n];
}

/* log_weight[lanes] = constant + h' P^-1 h / 2 - log |P| / 2, with P = L L' and whitened = L^-1 h. */
static void weigh(int d, int lanes, double constant, const double *factor, const double *whitened,
                  double *log_weight) {
  for (int n = 0; n < lanes; n++) log_weight[n] = constant;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      double y = whitened[i * lanes + n];
      log_weight[n] += 0.5 * y * y - log(factor[(i * d + i) * lanes + n]);
    }
}

/* The component of every lane: log weights [C, lanes] are overwritten by weights; pick[lanes] by the inverse
 * of their cumulative sum at uniform[lanes]. */
static int pick_component(int components, int lanes, int n, double *log_weight, double uniform) {
  double largest = log_weight[n], total = 0;
  for (int c = 1; c < components; c++) largest = fmax(largest, log_weight[c * lanes + n]);
  for (int c = 0; c < components; c++) {
    log_weight[c * lanes + n] = exp(log_weight[c * lanes + n] - largest);
    total += log_weight[c * lanes + n];
  }
  double left = uniform * total;
  for (int c = 0; c < components - 1; c++) {
    left -= log_weight[c * lanes + n];
    if (left < 0) return c;
  }
  return components - 1;
}

/* Posterior of every component for the lanes of a chunk. */
static void update_components(Conjugate *state, const Mixture *prior, int lanes) {
  const int d = prior->d;
  const size_t square = (size_t)d * (size_t)d;
  for (int c = 0; c < prior->components; c++) {
    double *factor = state->factor + (size_t)c * square * (size_t)lanes;
    double *whitened = state->whitened + (size_t)c * (size_t)(d * lanes);
    add_evidence(d * d, lanes, prior->precision + (size_t)c * square, state->precision, factor);
    add_evidence(d, lanes, prior->information + c * d, state->vector, whitened);
    linalg_cholesky_lanes(d, lanes, factor, state->rescues);
    linalg_forward_lanes(d, lanes, factor, whitened);
    weigh(d, lanes, state->prior_constant[c], factor, whitened, state->log_weight + c * lanes);
  }
}

/* z[d, lanes] <- L^-T (L^-1 h + z) of a drawn component: a draw from N(P^-1 h, P^-1), z standard normal. */
static void draw(Conjugate *state, int d, int components, int lanes, double *z) {
  const size_t rows = (size_t)d * (size_t)d;
  for (int n = 0; n < lanes; n++) {
    int c = pick_component(components, lanes, n, state->log_weight, state->uniform[n]);
    const double *factor = state->factor + (size_t)c * rows * (size_t)lanes;
    const double *whitened = state->whitened + (size_t)c * (size_t)(d * lanes);
    for (size_t i = 0; i < rows; i++)
      state->chosen_factor[i * (size_t)lanes + (size_t)n] = factor[i * (size_t)lanes + (size_t)n];
    for (int i = 0; i < d; i++) z[i * lanes + n] += whitened[i * lanes + n];
  }
  linalg_backward_lanes(d, lanes, state->chosen_factor, z);
}

static void conjugate_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                             int64_t *fallbacks) {
  Conjugate *state = self->state;
  const Mixture *prior = self->setup.prior->mixture;
  const int d = self->d;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    history_evidence(history, draws, chunk.first, chunk.lanes, NULL, NULL, state->precision, state->vector);
    memset(state->rescues, 0, CHUNK_LANES * sizeof *state->rescues);
    update_components(state, prior, chunk.lanes);
    rng_lanes_uniform(&chunk.rng, 1, state->uniform);
    rng_lanes_normal(&chunk.rng, d, state->normal);
    draw(state, d, prior->components, chunk.lanes, state->normal);
    chunk_store(&chunk, d, state->normal, theta);
    for (int n = 0; n < chunk.lanes; n++) fallbacks[(chunk.first + n) / draws] += state->rescues[n];
  }
}

const SamplerOps sampler_ts = {
    .name = "ts",
    .summary = "Thompson sampling from the exact posterior of a Gaussian prior, N(0, I) by default",
    .reference = "Chapelle and Li (2011); DiffTS paper, equation 3",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN | NEEDS_CONJUGATE,
    .exact = true,
    .create = conjugate_create,
    .destroy = conjugate_destroy,
    .sample = conjugate_sample,
};

const SamplerOps sampler_tuned_ts = {
    .name = "tuned_ts",
    .summary = "Thompson sampling from the exact posterior of a Gaussian prior fitted to samples",
    .reference = "DiffTS paper, Section 6.1",
    .default_prior = "gaussian",
    .needs = NEEDS_GAUSSIAN | NEEDS_CONJUGATE,
    .exact = true,
    .create = conjugate_create,
    .destroy = conjugate_destroy,
    .sample = conjugate_sample,
};

const SamplerOps sampler_mixts = {
    .name = "mixts",
    .summary = "Thompson sampling from the exact posterior of a Gaussian mixture prior",
    .reference = "Hong et al. (2022); DiffTS paper, Section 6.1",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE | NEEDS_CONJUGATE,
    .exact = true,
    .create = conjugate_create,
    .destroy = conjugate_destroy,
    .sample = conjugate_sample,
};
