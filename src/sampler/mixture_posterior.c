#include "sampler/mixture_posterior.h"

#include "core/linalg.h"
#include "core/simd.h"
#include "core/special.h"
#include "model/irls.h"
#include "model/mixture_evidence.h"
#include "sampler/chunk.h"
#include "sampler/moments.h"

#include <math.h>
#include <string.h>

/* Moments of components first .. end - 1, taken in one after the other. */
typedef struct {
  int first, end;
  int runs; /* B: from a row of the next two to the following one */
  double *mean, *covariance; /* [d, n], [d, d, n], of those so far */
  double *inverse, *total, *share; /* [d, d, n], [n], [n], of the one that is taken in */
} MixtureMoments;

/* C components, n <= CHUNK_LANES lanes, lane last, in r <= n parts of one posterior each: the runs of a
 * chunk, whose draws share it, or its lanes. Components go by one after the other and leave their weight; the
 * posterior of the one that is drawn is made once more. */
struct MixturePosterior {
  const Mixture *prior; /* not owned */
  int runs; /* B */
  double *shrink; /* [C]: multiplies the standard deviations of draws */
  double *constant; /* [C]: mixture_evidence_constants */
  double *precision, *vector; /* [d, d, r], [d, r]: Lambda and b, where components share them */
  double *factor; /* [d, d, n]: P_c, then its Cholesky factor L_c */
  double *whitened; /* [d, n]: h_c, then L_c^-1 h_c */
  double *weight; /* [C, r]: first its logarithm, then the sum of weights so far */
  double *largest; /* [r] */
  double *uniform, *normal; /* [n], [d, n] */
  double *inverse; /* [d, d, n]: P_c^-1 */
  int *jitters; /* [n] */
  /* Of the Laplace approximation. */
  Irls irls;
  double *own_precision, *own_vector; /* [C, d, d, n], [C, d, n]: evidence of each component */
  double *prior_precision, *prior_vector; /* [d, d, r], [d, r]: one component's, the same in all parts */
  double *last_precision, *last_vector; /* [C, d, d, B], [C, d, B]: evidence that IRLS found last */
  double *mode; /* [d, r] */
  double *deviance; /* [r] */
};

Status mixture_posterior_create(Arena *memory, const Mixture *prior, const Likelihood *likelihood, int runs,
                                MixturePosterior **out) {
  const size_t d = (size_t)prior->d, components = (size_t)prior->components, n = CHUNK_LANES;
  MixturePosterior *state;
  ALLOCATE(memory, state, 1);
  *out = state;
  state->prior = prior;
  state->runs = runs;
  ALLOCATE(memory, state->shrink, components);
  for (size_t c = 0; c < components; c++) state->shrink[c] = 1;
  ALLOCATE(memory, state->constant, components);
  ALLOCATE(memory, state->precision, d * d * n);
  ALLOCATE(memory, state->vector, d * n);
  ALLOCATE(memory, state->factor, d * d * n);
  ALLOCATE(memory, state->whitened, d * n);
  ALLOCATE(memory, state->weight, components * n);
  ALLOCATE(memory, state->largest, n);
  ALLOCATE(memory, state->uniform, n);
  ALLOCATE(memory, state->normal, d * n);
  ALLOCATE(memory, state->inverse, d * d * n);
  ALLOCATE(memory, state->jitters, n);
  mixture_evidence_constants(prior, state->constant);
  if (likelihood_is_conjugate(likelihood)) return STATUS_OK;
  TRY(irls_create(memory, prior->d, CHUNK_LANES, 1e-8, &state->irls));
  ALLOCATE(memory, state->own_precision, components * d * d * n);
  ALLOCATE(memory, state->own_vector, components * d * n);
  ALLOCATE(memory, state->prior_precision, d * d * n);
  ALLOCATE(memory, state->prior_vector, d * n);
  ALLOCATE(memory, state->last_precision, components * d * d * (size_t)runs);
  ALLOCATE(memory, state->last_vector, components * d * (size_t)runs);
  ALLOCATE(memory, state->mode, d * n);
  ALLOCATE(memory, state->deviance, n);
  return STATUS_OK;
}

/* weight[C, parts], from its logarithm to the sum of the weights so far, up to a factor of the part. */
SIMD_CLONES
static void accumulate_weights(int components, int parts, double *restrict largest, double *restrict weight) {
  for (int r = 0; r < parts; r++) largest[r] = weight[r];
  for (int c = 1; c < components; c++)
    for (int r = 0; r < parts; r++)
      largest[r] = weight[c * parts + r] > largest[r] ? weight[c * parts + r] : largest[r];
  for (int c = 0; c < components; c++)
    for (int r = 0; r < parts; r++)
      weight[c * parts + r] =
          special_exp(weight[c * parts + r] - largest[r]) + (c > 0 ? weight[(c - 1) * parts + r] : 0);
}

/* The first component at which the sum of part r's weights exceeds this share of all. */
static int pick_component(int components, int parts, int r, const double *sum, double uniform) {
  const double below = uniform * sum[(components - 1) * parts + r];
  int low = 0, high = components - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sum[middle * parts + r] > below)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
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
static void linearise(MixturePosterior *state, int c, const HistoryView *view, int64_t *fallbacks) {
  const Mixture *prior = state->prior;
  const int runs = state->runs, d = prior->d, lanes = view->lanes, first = view->first;
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

/* Takes in component c, whose L_c and L_c^-1 h_c are in state: N(P^-1 h, P^-1), shrunk. */
static void add_component(MixturePosterior *state, int c, int lanes, MixtureMoments *moments) {
  const int d = state->prior->d;
  const double shrink = state->shrink[c] * state->shrink[c];
  linalg_backward_lanes(d, lanes, state->factor, state->whitened);
  linalg_inverse_lanes(d, lanes, state->factor, moments->inverse);
  for (int i = 0; i < d * d * lanes && shrink != 1; i++) moments->inverse[i] *= shrink;
  moments_share(lanes, c == moments->first, state->weight + c * lanes, state->largest, moments->total,
                moments->share);
  moments_merge(d, lanes, moments->share, state->whitened, moments->inverse, lanes, moments->mean,
                moments->covariance, moments->runs);
}

/* state->weight: the logarithm of the weight of every component for the parts of a chunk, which are the lanes
 * of `view`; and, unless `moments` is NULL, the moments of the components that it asks for. */
static void weigh_components(MixturePosterior *state, const HistoryView *view, MixtureMoments *moments,
                             int64_t *fallbacks) {
  const Mixture *prior = state->prior;
  const int d = prior->d, lanes = view->lanes;
  const bool conjugate = likelihood_is_conjugate(view->history->likelihood);
  if (conjugate) history_evidence(view, state->precision, state->vector);
  for (int c = 0; c < prior->components; c++) {
    double *log_weight = state->weight + c * lanes;
    if (!conjugate) linearise(state, c, view, fallbacks);
    mixture_evidence_add(prior, c, lanes, state->precision, state->vector, state->factor, state->whitened);
    linalg_cholesky_lanes(d, lanes, state->factor, state->jitters);
    linalg_forward_lanes(d, lanes, state->factor, state->whitened);
    mixture_evidence_weigh(d, lanes, state->constant[c], state->factor, state->whitened, log_weight);
    if (!conjugate) weigh_mode(state, view, log_weight);
    if (moments && c >= moments->first && c < moments->end) add_component(state, c, lanes, moments);
    if (conjugate) continue;
    memcpy(state->own_precision + (size_t)(c * d * d) * CHUNK_LANES, state->precision,
           (size_t)(d * d * lanes) * sizeof *state->precision);
    memcpy(state->own_vector + (size_t)(c * d) * CHUNK_LANES, state->vector,
           (size_t)(d * lanes) * sizeof *state->vector);
  }
}

/* What the draws of the parts of a chunk need: evidence, and sums of weights where there are several. */
static void prepare_parts(MixturePosterior *state, const HistoryView *view, int64_t *fallbacks) {
  if (state->prior->components > 1) {
    weigh_components(state, view, NULL, fallbacks);
    accumulate_weights(state->prior->components, view->lanes, state->largest, state->weight);
  } else if (likelihood_is_conjugate(view->history->likelihood)) {
    history_evidence(view, state->precision, state->vector);
  } else {
    linearise(state, 0, view, fallbacks);
  }
}

/* The part of its view that lane n of the chunk belongs to. */
static int mixture_posterior_part_of(const HistoryView *view, const Chunk *chunk, int n) {
  return (int)((int64_t)(chunk->first + n) * view->draws / chunk->rng.draws) - view->first;
}

/* P_c and h_c of the component that each lane of the chunk draws: factor and whitened; and which that is,
 * component[lanes] unless it is NULL. z[d, lanes] is shrunk. */
static void gather_chosen(MixturePosterior *state, const HistoryView *view, const Chunk *chunk,
                          int *component, double *z) {
  const Mixture *prior = state->prior;
  const int d = prior->d, lanes = chunk->lanes, parts = view->lanes, components = prior->components;
  const bool own = components > 1 && !likelihood_is_conjugate(view->history->likelihood);
  for (int n = 0; n < lanes; n++) {
    const int r = mixture_posterior_part_of(view, chunk, n);
    const int c =
        components == 1 ? 0 : pick_component(components, parts, r, state->weight, state->uniform[n]);
    if (component) component[n] = c;
    for (int i = 0; i < d; i++) z[i * lanes + n] *= state->shrink[c];
    const double *precision =
        own ? state->own_precision + (size_t)(c * d * d) * CHUNK_LANES : state->precision;
    const double *vector = own ? state->own_vector + (size_t)(c * d) * CHUNK_LANES : state->vector;
    for (int i = 0; i < d * d; i++)
      state->factor[i * lanes + n] = prior->precision[c * d * d + i] + precision[i * parts + r];
    for (int i = 0; i < d; i++)
      state->whitened[i * lanes + n] = prior->information[c * d + i] + vector[i * parts + r];
  }
}

/* z[d, lanes] <- L^-T (L^-1 h + z) of a drawn component: a draw from N(P^-1 h, P^-1), z standard normal. */
static void mixture_posterior_draw(MixturePosterior *state, const HistoryView *view, const Chunk *chunk,
                                   int *component, double *z) {
  const int d = state->prior->d, lanes = chunk->lanes;
  gather_chosen(state, view, chunk, component, z);
  linalg_cholesky_lanes(d, lanes, state->factor, state->jitters);
  linalg_forward_lanes(d, lanes, state->factor, state->whitened);
  for (int i = 0; i < d * lanes; i++) z[i] += state->whitened[i];
  linalg_backward_lanes(d, lanes, state->factor, z);
}

/* Where there is a closed form the draws of a run share it; IRLS goes by lanes. */
static HistoryView mixture_posterior_parts_of(const History *history, const Chunk *chunk) {
  const int draws = (int)chunk->rng.draws, first = chunk->first / draws;
  if (!likelihood_is_conjugate(history->likelihood))
    return (HistoryView){history, draws, chunk->first, chunk->lanes, NULL, NULL};
  return (HistoryView){history, 1, first, (chunk->first + chunk->lanes - 1) / draws - first + 1, NULL, NULL};
}

void mixture_posterior_shrink(MixturePosterior *state, int component, double factor) {
  state->shrink[component] = factor;
}

void mixture_posterior_sample(MixturePosterior *state, const History *history, RngLanes rng, int draws,
                              double *theta, int *component, int64_t *fallbacks) {
  const Mixture *prior = state->prior;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = mixture_posterior_parts_of(history, &chunk);
    memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
    prepare_parts(state, &view, fallbacks);
    for (int r = 0; r < view.lanes; r++) fallbacks[(view.first + r) / view.draws] += state->jitters[r];
    memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
    rng_lanes_uniform(&chunk.rng, 1, state->uniform);
    rng_lanes_normal(&chunk.rng, prior->d, state->normal);
    mixture_posterior_draw(state, &view, &chunk, component ? component + chunk.first : NULL, state->normal);
    chunk_store(&chunk, prior->d, state->normal, theta);
    for (int n = 0; n < chunk.lanes && prior->components == 1; n++) /* else those above are the same */
      fallbacks[(chunk.first + n) / draws] += state->jitters[n];
  }
}

void mixture_posterior_moments(MixturePosterior *state, const History *history, int first, int end,
                               double *mean, double *covariance, int64_t *fallbacks) {
  MixtureMoments moments = {.first = first,
                            .end = end,
                            .runs = history->runs,
                            .inverse = state->inverse,
                            .total = state->uniform,
                            .share = state->normal};
  for (int lane = 0; lane < history->runs; lane += CHUNK_LANES) {
    const int lanes = chunk_size(history->runs, lane, CHUNK_LANES);
    const HistoryView view = {history, 1, lane, lanes, NULL, NULL};
    moments.mean = mean + lane;
    moments.covariance = covariance + lane;
    memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
    weigh_components(state, &view, &moments, fallbacks);
    for (int n = 0; n < lanes; n++) fallbacks[lane + n] += state->jitters[n];
  }
}

void mixture_posterior_evidence(MixturePosterior *state, const History *history, double *log_evidence,
                                int64_t *fallbacks) {
  const int components = state->prior->components;
  const double unit = 0.5 * state->prior->d * log(2 * M_PI); /* that the normalisers of the prior have */
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const int lanes = chunk_size(history->runs, first, CHUNK_LANES);
    const HistoryView view = {history, 1, first, lanes, NULL, NULL};
    memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
    weigh_components(state, &view, NULL, fallbacks);
    for (int n = 0; n < lanes; n++) fallbacks[first + n] += state->jitters[n];
    for (int c = 0; c < components; c++)
      for (int n = 0; n < lanes; n++)
        log_evidence[(size_t)c * (size_t)history->runs + (size_t)(first + n)] =
            state->weight[c * lanes + n] + unit;
  }
}
