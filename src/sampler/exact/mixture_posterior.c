/* Posterior sampling with a Gaussian mixture prior: TS, TunedTS and MixTS of the DiffTS paper (Section 6.1)
 * are this one method with three priors. Exact with a conjugate likelihood; by the Laplace approximation of
 * every component (irls.h) with any other.
 *
 * With evidence (Lambda, b) component c has the posterior N(P_c^-1 h_c, P_c^-1) of equation 3, P_c =
 * Sigma_c^-1 + Lambda, h_c = Sigma_c^-1 mu_c + b, and the weight (Hong et al. 2022, Thompson sampling with a
 * mixture prior)
 *
 *     w_c |Sigma_c|^-1/2 |P_c|^-1/2 exp(-mu_c' Sigma_c^-1 mu_c / 2 + h_c' P_c^-1 h_c / 2).
 *
 * Under the Laplace approximation every component has evidence of its own, taken at its own mode m: the log
 * likelihood near m is l(m) - b' m + m' Lambda m / 2 + b' theta - theta' Lambda theta / 2, and the first
 * three terms are added to the logarithm of the weight. That makes it the Laplace evidence of the component.
 *
 * A draw uses 1 uniform and d normals of its stream. */
#include "core/arena.h"
#include "core/linalg.h"
#include "model/irls.h"
#include "sampler/chunk.h"
#include "sampler/cost.h"
#include "sampler/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* C components, n <= CHUNK_LANES lanes, lane last, in r <= n parts of one posterior each: the runs of a
 * chunk, whose draws share it, or its lanes. */
typedef struct {
  double *
      prior_constant; /* [C]: log weight of a component before the first observation, without its h_c terms */
  double *precision; /* [d, d, r]: Lambda */
  double *vector; /* [d, r]: b */
  double *factor; /* [C, d, d, r]: P_c, then its Cholesky factor L_c */
  double *whitened; /* [C, d, r]: L_c^-1 h_c */
  double *weight; /* [C, r]: first its logarithm */
  double *chosen_factor; /* [d, d, n]: L of the drawn component */
  double *uniform, *normal; /* [n], [d, n] */
  int *jitters; /* [r] */
  /* Of the Laplace approximation. */
  Irls irls;
  double *prior_precision, *prior_vector; /* [d, d, r], [d, r]: one component's, the same in all parts */
  double *last_precision, *last_vector; /* [C, d, d, B], [C, d, B]: evidence that IRLS found last */
  double *mode; /* [d, r] */
  double *deviance; /* [r] */
} MixturePosterior;

static Status posterior_create(Sampler *self, const SamplerSetup *setup) {
  Arena *memory = self->memory;
  const Mixture *prior = setup->prior->mixture;
  const size_t d = (size_t)prior->d, components = (size_t)prior->components, n = CHUNK_LANES;
  MixturePosterior *state;
  ALLOCATE(memory, state, 1);
  self->state = state;
  ALLOCATE(memory, state->prior_constant, components);
  ALLOCATE(memory, state->precision, d * d * n);
  ALLOCATE(memory, state->vector, d * n);
  ALLOCATE(memory, state->factor, components * d * d * n);
  ALLOCATE(memory, state->whitened, components * d * n);
  ALLOCATE(memory, state->weight, components * n);
  ALLOCATE(memory, state->chosen_factor, d * d * n);
  ALLOCATE(memory, state->uniform, n);
  ALLOCATE(memory, state->normal, d * n);
  ALLOCATE(memory, state->jitters, n);
  for (size_t c = 0; c < components; c++) {
    double square = 0;
    for (size_t i = 0; i < d; i++) square += prior->mean[c * d + i] * prior->information[c * d + i];
    state->prior_constant[c] = prior->log_norm[c] - 0.5 * square;
  }
  if (likelihood_is_conjugate(setup->likelihood)) return STATUS_OK;
  TRY(irls_create(memory, prior->d, CHUNK_LANES, 1e-8, &state->irls));
  ALLOCATE(memory, state->prior_precision, d * d * n);
  ALLOCATE(memory, state->prior_vector, d * n);
  ALLOCATE(memory, state->last_precision, components * d * d * (size_t)setup->runs);
  ALLOCATE(memory, state->last_vector, components * d * (size_t)setup->runs);
  ALLOCATE(memory, state->mode, d * n);
  ALLOCATE(memory, state->deviance, n);
  return STATUS_OK;
}

/* out[rows, lanes] = prior[rows] + evidence[rows, lanes]. */
static void add_evidence(int rows, int lanes, const double *prior, const double *evidence, double *out) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) out[i * lanes + n] = prior[i] + evidence[i * lanes + n];
}

/* log_weight[lanes] = constant + h' P^-1 h / 2 - log |P| / 2, with P = L L' and whitened = L^-1 h. */
static void mixture_posterior_weigh(int d, int lanes, double constant, const double *factor,
                                    const double *whitened, double *log_weight) {
  for (int n = 0; n < lanes; n++) log_weight[n] = constant;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      double y = whitened[i * lanes + n];
      log_weight[n] += 0.5 * y * y - log(factor[(i * d + i) * lanes + n]);
    }
}

/* weight[C, parts] from its logarithm, up to a factor of the part. */
static void exponentiate(int components, int parts, double *weight) {
  for (int r = 0; r < parts; r++) {
    double largest = weight[r];
    for (int c = 1; c < components; c++) largest = fmax(largest, weight[c * parts + r]);
    for (int c = 0; c < components; c++) weight[c * parts + r] = exp(weight[c * parts + r] - largest);
  }
}

/* By the inverse of the cumulative sum of part r's weight[C, parts]. */
static int pick_component(int components, int parts, int r, const double *weight, double uniform) {
  double total = 0;
  for (int c = 0; c < components; c++) total += weight[c * parts + r];
  double left = uniform * total;
  for (int c = 0; c < components - 1; c++) {
    left -= weight[c * parts + r];
    if (left < 0) return c;
  }
  return components - 1;
}

/* out[rows, lanes] = prior[rows]. */
static void spread(int rows, int lanes, const double *prior, double *out) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) out[i * lanes + n] = prior[i];
}

/* to[rows, to_stride] <- from[rows, from_stride], `lanes` of each row. */
static void copy_rows(int rows, int lanes, const double *from, int from_stride, double *to, int to_stride) {
  for (int i = 0; i < rows; i++)
    memcpy(to + (size_t)i * (size_t)to_stride, from + (size_t)i * (size_t)from_stride,
           (size_t)lanes * sizeof *to);
}

/* The evidence at the mode of component c, which IRLS finds from the component's mean; in a bandit, with
 * one draw for each run, from where it was in the round before. */
static void linearise(MixturePosterior *state, const Mixture *prior, int runs, int c, const HistoryView *view,
                      int64_t *fallbacks) {
  const int d = prior->d, lanes = view->lanes, first = view->first;
  double *last_precision = state->last_precision + (size_t)(c * d * d) * (size_t)runs;
  double *last_vector = state->last_vector + (size_t)(c * d) * (size_t)runs;
  spread(d * d, lanes, prior->precision + c * d * d, state->prior_precision);
  spread(d, lanes, prior->information + c * d, state->prior_vector);
  memset(state->precision, 0, (size_t)(d * d * lanes) * sizeof *state->precision);
  memset(state->vector, 0, (size_t)(d * lanes) * sizeof *state->vector);
  if (view->draws == 1) {
    copy_rows(d * d, lanes, last_precision + first, runs, state->precision, lanes);
    copy_rows(d, lanes, last_vector + first, runs, state->vector, lanes);
  }
  irls_solve(&state->irls, view, state->prior_precision, state->prior_vector, state->precision, state->vector,
             state->mode, fallbacks);
  if (view->draws == 1) {
    copy_rows(d * d, lanes, state->precision, lanes, last_precision + first, runs);
    copy_rows(d, lanes, state->vector, lanes, last_vector + first, runs);
  }
}

/* log_weight[lanes] += l(m) - b' m + m' Lambda m / 2, l(m) up to a constant that all components share. */
static void weigh_mode(MixturePosterior *state, const HistoryView *view, double *log_weight) {
  const int d = view->history->d, lanes = view->lanes;
  history_deviance(view, state->mode, state->deviance, NULL);
  for (int n = 0; n < lanes; n++) log_weight[n] -= 0.5 * state->deviance[n];
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      double pull = -state->vector[i * lanes + n];
      for (int j = 0; j < d; j++)
        pull += 0.5 * state->precision[(i * d + j) * lanes + n] * state->mode[j * lanes + n];
      log_weight[n] += state->mode[i * lanes + n] * pull;
    }
}

/* Posterior of every component for the parts of a chunk, which are the lanes of `view`. */
static void update_components(MixturePosterior *state, const Mixture *prior, int runs,
                              const HistoryView *view, int64_t *fallbacks) {
  const int d = prior->d, lanes = view->lanes;
  const size_t square = (size_t)d * (size_t)d;
  const bool conjugate = likelihood_is_conjugate(view->history->likelihood);
  if (conjugate) history_evidence(view, state->precision, state->vector);
  for (int c = 0; c < prior->components; c++) {
    double *factor = state->factor + (size_t)c * square * (size_t)lanes;
    double *whitened = state->whitened + (size_t)c * (size_t)(d * lanes);
    if (!conjugate) linearise(state, prior, runs, c, view, fallbacks);
    add_evidence(d * d, lanes, prior->precision + (size_t)c * square, state->precision, factor);
    add_evidence(d, lanes, prior->information + c * d, state->vector, whitened);
    linalg_cholesky_lanes(d, lanes, factor, state->jitters);
    linalg_forward_lanes(d, lanes, factor, whitened);
    if (prior->components == 1) return; /* weights are for several */
    mixture_posterior_weigh(d, lanes, state->prior_constant[c], factor, whitened, state->weight + c * lanes);
    if (!conjugate) weigh_mode(state, view, state->weight + c * lanes);
  }
}

/* The part of its view that lane n of the chunk belongs to. */
static int mixture_posterior_part_of(const HistoryView *view, const Chunk *chunk, int n) {
  return (int)((int64_t)(chunk->first + n) * view->draws / chunk->rng.draws) - view->first;
}

/* z[d, lanes] <- L^-T (L^-1 h + z) of a drawn component: a draw from N(P^-1 h, P^-1), z standard normal. */
static void mixture_posterior_draw(MixturePosterior *state, int components, const HistoryView *view,
                                   const Chunk *chunk, double *z) {
  const int d = view->history->d, lanes = chunk->lanes;
  const size_t rows = (size_t)d * (size_t)d, parts = (size_t)view->lanes;
  const double *factor[CHUNK_LANES], *whitened[CHUNK_LANES];
  for (int n = 0; n < lanes; n++) {
    const int r = mixture_posterior_part_of(view, chunk, n);
    const int c =
        components == 1 ? 0 : pick_component(components, view->lanes, r, state->weight, state->uniform[n]);
    factor[n] = state->factor + (size_t)c * rows * parts + r;
    whitened[n] = state->whitened + (size_t)(c * d) * parts + r;
  }
  for (size_t i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++)
      state->chosen_factor[i * (size_t)lanes + (size_t)n] = factor[n][i * parts];
  for (size_t i = 0; i < (size_t)d; i++)
    for (int n = 0; n < lanes; n++) z[i * (size_t)lanes + (size_t)n] += whitened[n][i * parts];
  linalg_backward_lanes(d, lanes, state->chosen_factor, z);
}

/* Where there is a closed form the draws of a run share it; IRLS goes by lanes. */
static HistoryView mixture_posterior_parts_of(const History *history, const Chunk *chunk) {
  const int draws = (int)chunk->rng.draws, first = chunk->first / draws;
  if (!likelihood_is_conjugate(history->likelihood))
    return (HistoryView){history, draws, chunk->first, chunk->lanes, NULL, NULL};
  return (HistoryView){history, 1, first, (chunk->first + chunk->lanes - 1) / draws - first + 1, NULL, NULL};
}

static void posterior_sample(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                             int64_t *fallbacks) {
  MixturePosterior *state = self->state;
  const Mixture *prior = self->setup.prior->mixture;
  const int d = self->d;
  (void)draws;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = mixture_posterior_parts_of(history, &chunk);
    memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
    update_components(state, prior, self->setup.runs, &view, fallbacks);
    if (prior->components > 1) exponentiate(prior->components, view.lanes, state->weight);
    rng_lanes_uniform(&chunk.rng, 1, state->uniform);
    rng_lanes_normal(&chunk.rng, d, state->normal);
    mixture_posterior_draw(state, prior->components, &view, &chunk, state->normal);
    chunk_store(&chunk, d, state->normal, theta);
    for (int r = 0; r < view.lanes; r++) fallbacks[(view.first + r) / view.draws] += state->jitters[r];
  }
}

/* With a closed form the draws of a run share the factors. */
static double posterior_cost(const SamplerWork *work) {
  const double lanes = cost_drawn_lanes(work), posteriors = work->conjugate ? 1 : work->draws;
  const double update = work->components * (cost_gaussian(work) + cost_mode(work, lanes));
  return work->drawn * cost_share(lanes) *
         (posteriors * update + (work->draws - 1) * (100 + 8 * work->d * work->d));
}

const SamplerOps sampler_ts = {
    .name = "ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior, N(0, I) by default",
    .reference = "Chapelle and Li (2011); DiffTS paper, equation 3",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN,
    .exact = true,
    .create = posterior_create,
    .sample = posterior_sample,
    .cost = posterior_cost,
};

const SamplerOps sampler_tuned_ts = {
    .name = "tuned_ts",
    .summary = "Thompson sampling from the posterior of a Gaussian prior fitted to samples",
    .reference = "DiffTS paper, Section 6.1",
    .default_prior = "gaussian",
    .needs = NEEDS_GAUSSIAN,
    .exact = true,
    .create = posterior_create,
    .sample = posterior_sample,
    .cost = posterior_cost,
};

const SamplerOps sampler_mixts = {
    .name = "mixts",
    .summary = "Thompson sampling from the posterior of a Gaussian mixture prior",
    .reference = "Hong et al. (2022); DiffTS paper, Section 6.1",
    .default_prior = "mixture",
    .needs = NEEDS_MIXTURE,
    .exact = true,
    .create = posterior_create,
    .sample = posterior_sample,
    .cost = posterior_cost,
};
