#include "sampler/mixture/mixture_posterior.h"

#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/reservoir.h"
#include "model/history/history_passes.h"
#include "model/mixture/mixture_evidence.h"
#include "sampler/mixture/mixture_approximation.h"
#include "sampler/mixture/moments.h"
#include "sampler/mixture/sampler_precise.h"
#include "sampler/mixture/slice.h"

#include <string.h>

enum { CANDIDATES = 8 }; /* `auto`, and the default without options */

/* Slice steps of a draw from a component whose Gaussian is not to be trusted. The standard deviation after
 * 1 000 clicks of 0 under a prior N(0, 10^2), which that of eight candidates is 0.6 times of, is right to
 * within 3% after 20. */
enum { SLICE_STEPS = 40 };

/* For candidates, whose weights are right whatever the sites are: it makes these weights 2% more spread
 * out. */
static const double WEIGHED_TOLERANCE = 0.02;

/* Moments of components first .. end - 1, which are merged one after the other. */
typedef struct {
  int first, end;
  int runs; /* B: the stride between rows of the next two */
  double *mean, *covariance; /* [d, n], [d, d, n], of the components so far */
} MixtureMoments;

/* C components. Runs are processed CHUNK_LANES at a time, and so are their draws: n <= CHUNK_LANES lanes,
 * lane last, first of runs and then of draws. */
struct MixturePosterior {
  const Mixture *prior; /* not owned */
  int runs; /* B */
  bool exact; /* the likelihood is conjugate: components share the evidence of the history */
  double *shrink; /* [C]: multiplies the standard deviations of draws */
  double *constant; /* [C]: mixture_evidence_constants */
  /* For runs: */
  double *evidence; /* [C, d + d d, n]: first b and then Lambda; C = 1 if all components share them */
  double *weight; /* [C, n]: first the logarithms, then the cumulative sums */
  double *largest; /* [n] */
  double *offset; /* [C, n]: of an approximation */
  int *doubt; /* [C, n]: about the Gaussian (ep_widen) */
  /* For runs, then for draws: */
  double *factor; /* [d, d, n]: P_c, then its Cholesky factor L_c */
  double *whitened; /* [d, n]: h_c, then L_c^-1 h_c */
  int *jitters; /* [n] */
  double *inverse; /* [d, d, n]: P_c^-1 */
  Precise *precise; /* of a conjugate likelihood */
  bool beyond; /* it handles some of the runs */
  /* For draws: */
  int *component; /* [n] */
  double *uniform, *draw; /* [n]; [d + 1, n], the draw and in the last row its component */
  /* For an approximation: */
  MixtureOptions options;
  MixtureApproximation approximation;
  double *forgotten_precision, *forgotten_vector; /* [d, d], [d]: of one run of a history that forgets */
  /* For several candidates: */
  Reservoir reservoir;
  double *own_evidence; /* [d + d d, n]: of the component of each draw */
  double *own_offset, *log_ratio, *log_excess; /* [n] */
  double *kept; /* [d + 1, n] */
  bool *moves; /* [n]: the draw is moved by slice steps */
  bool moved; /* one of the last mixture_posterior_sample is */
  int steps;
  Slice slice;
};

/* Returns the options. Candidates are weighed by rows, which a filtered history does not keep. */
MixtureOptions mixture_posterior_options(const Config *options) {
  if (!options || !config_has(options, "approximation")) return (MixtureOptions){.candidates = CANDIDATES};
  const bool laplace = config_is(options, "approximation", "laplace"),
             keeps = !config_present(options, "memory"),
             filtered = !keeps && config_is(options, "memory", "filtered");
  MixtureOptions out = {.laplace = laplace, .candidates = 1, .forgets = keeps || filtered};
  if (keeps) out.keep = (int)config_int(options, "memory.keep");
  if (!laplace && !config_is(options, "candidates", "auto"))
    out.candidates = (int)config_int(options, "candidates");
  else if (!laplace && !filtered)
    out.candidates = CANDIDATES;
  return out;
}

Status mixture_posterior_check(const Config *options, const Likelihood *likelihood) {
  (void)likelihood;
  const MixtureOptions chosen = mixture_posterior_options(options);
  if (!chosen.forgets) return STATUS_OK;
  if (chosen.laplace)
    return status_set(
        STATUS_INPUT,
        "memory: forgotten observations are kept by expectation propagation; approximation must be ep");
  if (config_real(options, "temper") != 1)
    return status_set(STATUS_INPUT, "memory: forgotten observations cannot be tempered; temper must be 1");
  if (chosen.keep > 0 && config_has(options, "discount") && config_real(options, "discount") != 1)
    return status_set(
        STATUS_INPUT,
        "memory: the last observations in {keep: N} cannot be discounted; memory must be full or filtered");
  if (chosen.keep == 0 && chosen.candidates > 1)
    return status_set(STATUS_INPUT,
                      "candidates = %d: with memory = filtered there are no rows to weigh candidates by; use "
                      "candidates = 1, or memory {keep: N}",
                      chosen.candidates);
  return STATUS_OK;
}

Status mixture_posterior_create(Arena *memory, const Mixture *prior, const Likelihood *likelihood, int runs,
                                MixtureOptions options, MixturePosterior **out) {
  const size_t d = (size_t)prior->d, components = (size_t)prior->components, n = CHUNK_LANES;
  const bool exact = likelihood_is_conjugate(likelihood);
  const size_t own = exact ? 1 : components;
  MixturePosterior *state;
  ALLOCATE(memory, state, 1);
  *out = state;
  state->prior = prior;
  state->runs = runs;
  state->exact = exact;
  state->options = options;
  state->steps = SLICE_STEPS;
  ALLOCATE(memory, state->shrink, components);
  for (size_t c = 0; c < components; c++) state->shrink[c] = 1;
  ALLOCATE(memory, state->constant, components);
  ALLOCATE(memory, state->evidence, own * (d + d * d) * n);
  ALLOCATE_ARRAYS(memory, components * n, state->weight, state->offset);
  ALLOCATE_ARRAYS(memory, n, state->largest, state->uniform, state->jitters, state->component);
  ALLOCATE_ARRAYS(memory, d * d * n, state->factor, state->inverse);
  ALLOCATE(memory, state->whitened, d * n);
  ALLOCATE(memory, state->draw, (d + 1) * n);
  mixture_evidence_constants(prior, state->constant);
  if (exact) return sampler_precise_create(memory, prior, CHUNK_LANES, &state->precise);
  ALLOCATE(memory, state->doubt, components * n);
  TRY(mixture_approximation_create(memory, prior, runs, options.laplace, &state->approximation));
  if (options.forgets) {
    ALLOCATE(memory, state->forgotten_precision, d * d);
    ALLOCATE(memory, state->forgotten_vector, d);
  }
  if (options.candidates == 1) return STATUS_OK;
  ALLOCATE(memory, state->own_evidence, (d + d * d) * n);
  ALLOCATE_ARRAYS(memory, n, state->log_ratio, state->own_offset, state->log_excess);
  ALLOCATE(memory, state->kept, (d + 1) * n);
  ALLOCATE(memory, state->moves, n);
  TRY(slice_create(memory, prior->d, &state->slice));
  return reservoir_create(memory, CHUNK_LANES, &state->reservoir);
}

void mixture_posterior_set_steps(MixturePosterior *state, int steps) { state->steps = steps; }

bool mixture_posterior_moved(const MixturePosterior *state) { return state->moved; }

void mixture_posterior_scale_component(MixturePosterior *state, int component, double factor) {
  state->shrink[component] = factor;
}

/* ---- runs: the evidence and the weight of each component */

/* Returns b and Lambda of a component. */
static double *mixture_posterior_evidence_of(const MixturePosterior *state, int c) {
  const int d = state->prior->d, own = state->exact ? 0 : c;
  return state->evidence + (size_t)(own * (d + d * d)) * CHUNK_LANES;
}

static void keep_approximations(MixturePosterior *state, const HistoryView *view) {
  for (int c = 0; c < state->prior->components; c++)
    mixture_approximation_keep(&state->approximation, c, view, mixture_posterior_evidence_of(state, c));
}

/* Computes share[lanes] of the next component in all weights so far, and updates their total. */
SIMD_CLONES
static void mixture_moments_share(bool first, int lanes, const double *restrict log_weight,
                                  double *restrict largest, double *restrict total, double *restrict share) {
  double old_share[CHUNK_LANES];
  lanes_join(first, lanes, log_weight, largest, total, old_share, share);
  for (int n = 0; n < lanes; n++) share[n] /= total[n];
}

/* Finds Lambda and b of the runs of `view`, which all components share. */
static void mixture_posterior_set_evidence(MixturePosterior *state, const HistoryView *view) {
  history_evidence(view, state->evidence + state->prior->d * view->lanes, state->evidence);
  state->beyond = sampler_precise_find(state->precise, view);
}

/* Adds the number of jitters of the lanes to their fallbacks, except for runs in square-root form. */
static void mixture_posterior_count_jitters(const MixturePosterior *state, const HistoryView *runs,
                                            const HistoryView *view, int64_t *fallbacks) {
  for (int n = 0; n < view->lanes; n++) {
    const int run = (view->first + n) / view->draws;
    if (!(state->beyond && sampler_precise_takes(state->precise, run - runs->first)))
      fallbacks[run] += state->jitters[n];
  }
}

/* Computes state->weight, the log weight of every component for the runs of `view`, with `rewards` as in
 * sampler_precise.h; and, unless `moments` is NULL, the moments of the components that it selects. */
static void weigh_components(MixturePosterior *state, const HistoryView *view, bool warm, bool rewards,
                             MixtureMoments *moments, int64_t *fallbacks) {
  const Mixture *prior = state->prior;
  MixtureApproximation *own = &state->approximation;
  const int d = prior->d, lanes = view->lanes;
  if (state->exact) mixture_posterior_set_evidence(state, view);
  memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
  for (int c = 0; c < prior->components; c++) {
    double *log_weight = state->weight + c * lanes;
    double *evidence = mixture_posterior_evidence_of(state, c), *precision = evidence + d * lanes;
    if (state->exact) {
      mixture_evidence_add(prior, c, lanes, precision, evidence, state->factor, state->whitened);
    } else {
      mixture_approximation_find(own, c, view, warm, evidence, state->doubt + c * lanes, fallbacks);
      lanes_sum((size_t)d * (size_t)d * (size_t)lanes, own->prior_precision, precision, state->factor);
      lanes_sum((size_t)d * (size_t)lanes, own->prior_vector, evidence, state->whitened);
    }
    linalg_factor_cholesky(d, lanes, state->factor, state->jitters);
    linalg_factor_forward(d, lanes, state->factor, state->whitened);
    mixture_evidence_weigh(d, lanes, state->constant[c], state->factor, state->whitened, log_weight);
    if (!state->exact)
      mixture_approximation_weigh(own, lanes, state->constant[c], log_weight, state->offset + c * lanes);
    if (state->beyond) sampler_precise_weigh(state->precise, c, rewards, log_weight);
    if (!moments || c < moments->first || c >= moments->end) continue;
    /* Merges N(P^-1 h, P^-1), shrunk, into the moments. The total of the weights so far is relative to
     * exp(largest). */
    const double shrink = state->shrink[c] * state->shrink[c];
    double *total = state->uniform, *share = state->draw; /* of draws, which are not made here */
    linalg_factor_backward(d, lanes, state->factor, state->whitened);
    linalg_factor_inverse(d, lanes, state->factor, state->inverse);
    if (state->beyond) sampler_precise_component_moments(state->precise, c, state->whitened, state->inverse);
    for (int i = 0; i < d * d * lanes && shrink != 1; i++) state->inverse[i] *= shrink;
    mixture_moments_share(c == moments->first, lanes, log_weight, state->largest, total, share);
    mixture_posterior_merge_moments(d, lanes, share, state->whitened, state->inverse, lanes, moments->mean,
                                    moments->covariance, moments->runs);
  }
  mixture_posterior_count_jitters(state, view, view, fallbacks);
}

void mixture_posterior_evidence(MixturePosterior *state, const History *history, double *log_evidence,
                                int64_t *fallbacks) {
  const int components = state->prior->components;
  state->approximation.ep.tolerance = EP_TOLERANCE;
  const double unit = 0.5 * state->prior->d * log(2 * M_PI); /* which the normalisers of the prior contain */
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const int lanes = chunk_size(history->runs, first, CHUNK_LANES);
    const HistoryView view = {history, 1, first, lanes, NULL, NULL};
    weigh_components(state, &view, false, true, NULL, fallbacks);
    for (int c = 0; c < components; c++)
      for (int n = 0; n < lanes; n++)
        log_evidence[(size_t)c * (size_t)history->runs + (size_t)(first + n)] =
            state->weight[c * lanes + n] + unit;
  }
}

double mixture_posterior_log_sum(int components, int stride, const double *log_evidence) {
  double sum = log_evidence[0];
  for (int c = 1; c < components; c++) sum = special_log_sum(sum, log_evidence[(ptrdiff_t)c * stride]);
  return sum;
}

/* ---- draws */

/* Sets column n of to[rows, lanes] <- column r of from[rows, parts], plus plus[rows] unless that is NULL. */
static void mixture_posterior_copy_column(int rows, int n, int lanes, const double *from, int r, int parts,
                                          const double *plus, double *to) {
  for (int i = 0; i < rows; i++) to[i * lanes + n] = from[i * parts + r] + (plus ? plus[i] : 0);
}

/* Picks the component that each lane draws from. The M draws of a run are adjacent lanes. */
static void mixture_posterior_pick_components(MixturePosterior *state, const HistoryView *runs,
                                              const HistoryView *view) {
  const int components = state->prior->components, parts = runs->lanes;
  for (int n = 0; n < view->lanes; n++) {
    const int r = (view->first + n) / view->draws - runs->first;
    const double *sum = state->weight + r, below = state->uniform[n] * sum[(components - 1) * parts];
    int c = 0; /* the first at which the cumulative weight exceeds this share of the total */
    while (c + 1 < components && !(sum[c * parts] > below)) c++;
    state->component[n] = c;
  }
}

/* Gathers P_c and h_c of the component of each lane, and for candidates its evidence. */
static void mixture_posterior_gather_drawn(MixturePosterior *state, const HistoryView *runs,
                                           const HistoryView *view) {
  const Mixture *prior = state->prior;
  const int d = prior->d, lanes = view->lanes, parts = runs->lanes;
  for (int n = 0; n < lanes; n++) {
    const int r = (view->first + n) / view->draws - runs->first, c = state->component[n];
    const double *evidence = mixture_posterior_evidence_of(state, c);
    mixture_posterior_copy_column(d * d, n, lanes, evidence + d * parts, r, parts,
                                  prior->precision + c * d * d, state->factor);
    mixture_posterior_copy_column(d, n, lanes, evidence, r, parts, prior->information + c * d,
                                  state->whitened);
    if (state->exact) continue;
    if (state->options.forgets) { /* adds what the run has forgotten to P_c and h_c */
      const HistoryView run = {view->history, 1, runs->first + r, 1, NULL, NULL};
      double log_scale, *forgotten = state->forgotten_precision, *forgotten_vector = state->forgotten_vector;
      memset(forgotten, 0, (size_t)(d * d) * sizeof *forgotten);
      memset(forgotten_vector, 0, (size_t)d * sizeof *forgotten_vector);
      history_forgotten(&run, c, forgotten, forgotten_vector, &log_scale);
      for (int i = 0; i < d * d; i++) state->factor[i * lanes + n] += forgotten[i];
      for (int i = 0; i < d; i++) state->whitened[i * lanes + n] += forgotten_vector[i];
    }
    if (state->options.candidates == 1) continue;
    mixture_posterior_copy_column(d + d * d, n, lanes, evidence, r, parts, NULL, state->own_evidence);
    state->own_offset[n] = state->offset[c * parts + r];
  }
}

/* Scales z[d, lanes] by sqrt(1 + 1 / (4 d)), and computes log_excess[lanes], the log ratio of the density of
 * N(0, I) to that of the scaled z, up to a constant. With wide priors the posterior of clicks has a longer
 * tail on one side than its approximation, and this way more candidates reach it: in the plane, with a prior
 * standard deviation of 10, sixteen candidates come to 1.05 times the floor instead of 1.12. If the
 * approximation is exact, a choice among eight is 1% wider in variance; with twice the margin it would be
 * 2%. */
SIMD_CLONES
static void mixture_posterior_widen_normals(int d, int lanes, double *restrict z,
                                            double *restrict log_excess) {
  const double more = 0.25 / d, factor = sqrt(1 + more);
  memset(log_excess, 0, (size_t)lanes * sizeof *log_excess);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      log_excess[n] -= 0.5 * more * z[i * lanes + n] * z[i * lanes + n];
      z[i * lanes + n] *= factor;
    }
}

/* Computes L_c and L_c^-1 h_c of the component of each lane. */
static void mixture_posterior_factor_drawn(MixturePosterior *state, const HistoryView *runs,
                                           const HistoryView *view) {
  const int d = state->prior->d;
  mixture_posterior_gather_drawn(state, runs, view);
  memset(state->jitters, 0, CHUNK_LANES * sizeof *state->jitters);
  linalg_factor_cholesky(d, view->lanes, state->factor, state->jitters);
  linalg_factor_forward(d, view->lanes, state->factor, state->whitened);
}

/* Sets state->draw <- L^-T (L^-1 h + z) of a random component: a draw from N(P^-1 h, P^-1), z standard
 * normal. If it is to be `weighted`, draws from a wider one and sets state->log_excess. The factors of a
 * single component are computed for the first candidate only. */
static void draw_candidate(MixturePosterior *state, const HistoryView *runs, const HistoryView *view,
                           RngLanes *rng, bool weighted, bool first, int64_t *fallbacks) {
  const int d = state->prior->d, lanes = view->lanes;
  const bool single = state->prior->components == 1;
  rng_lanes_uniform(rng, 1, state->uniform);
  rng_lanes_normal(rng, d, state->draw);
  if (weighted) mixture_posterior_widen_normals(d, lanes, state->draw, state->log_excess);
  if (first || !single) {
    mixture_posterior_pick_components(state, runs, view);
    mixture_posterior_factor_drawn(state, runs, view);
    if (single) mixture_posterior_count_jitters(state, runs, view, fallbacks); /* else counted already */
  }
  double *z = state->inverse;
  if (state->beyond) memcpy(z, state->draw, (size_t)(d * lanes) * sizeof *z);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      state->draw[i * lanes + n] =
          state->whitened[i * lanes + n] + state->draw[i * lanes + n] * state->shrink[state->component[n]];
  linalg_factor_backward(d, lanes, state->factor, state->draw);
  for (int n = 0; n < lanes && state->beyond; n++) { /* again, where it needs square-root form */
    const int r = (view->first + n) / view->draws - runs->first, c = state->component[n];
    for (int i = 0; i < d; i++) z[i * lanes + n] *= state->shrink[c];
    if (sampler_precise_takes(state->precise, r))
      sampler_precise_draw(state->precise, r, c, lanes, n, z, state->draw);
  }
}

/* The rows of a call, whose history is the first of the two. */
typedef struct {
  MixturePosterior *state;
  HistoryView view;
} DrawnRows;

/* Computes the log ratio of the likelihood to its approximation under the component of each lane. */
static void mixture_posterior_find_ratio(void *context, int lanes, const double *theta, double *log_ratio) {
  const DrawnRows *rows = context;
  const MixturePosterior *state = rows->state;
  const int d = state->prior->d;
  history_log_likelihood(&rows->view, theta, log_ratio, NULL);
  linalg_lanes_add_quadratic(
      d, lanes, -1,
      (LanesQuadratic){.matrix = state->own_evidence + d * lanes, .vector = state->own_evidence}, theta,
      state->inverse, log_ratio);
}

/* Moves the draws from components whose Gaussian is not to be trusted, unless they are shrunk. */
static void mixture_posterior_move_draws(MixturePosterior *state, const HistoryView *runs,
                                         const DrawnRows *rows, RngLanes rng) {
  const HistoryView *view = &rows->view;
  bool any = false;
  for (int n = 0; n < view->lanes; n++) {
    const int r = (view->first + n) / view->draws - runs->first, c = state->component[n];
    state->moves[n] = state->doubt[c * runs->lanes + r] == EP_NARROW && state->shrink[c] == 1;
    any = any || state->moves[n];
  }
  if (!any) return;
  state->moved = true;
  if (state->prior->components > 1) mixture_posterior_factor_drawn(state, runs, view);
  slice_move(&state->slice, view->lanes, state->factor, state->whitened, state->moves, state->steps, rng,
             mixture_posterior_find_ratio, (void *)rows, state->draw);
}

/* Sets state->draw to one of the candidates of each lane, and state->component to its component. */
static void draw_weighted(MixturePosterior *state, const HistoryView *runs, const HistoryView *view,
                          RngLanes *rng, int64_t *fallbacks) {
  const int d = state->prior->d, lanes = view->lanes;
  reservoir_clear(&state->reservoir, lanes);
  const History rows = mixture_approximation_rows(view->history);
  DrawnRows there = {state, *view};
  there.view.history = &rows;
  for (int j = 0; j < state->options.candidates; j++) {
    draw_candidate(state, runs, view, rng, true, j == 0, fallbacks);
    mixture_posterior_find_ratio(&there, lanes, state->draw, state->log_ratio);
    lanes_add((size_t)lanes, -1, state->own_offset, state->log_ratio);
    lanes_add((size_t)lanes, 1, state->log_excess, state->log_ratio);
    rng_lanes_uniform(rng, 1, state->uniform);
    for (int n = 0; n < lanes; n++) state->draw[d * lanes + n] = state->component[n];
    reservoir_offer(&state->reservoir, d + 1, lanes, state->log_ratio, state->uniform, state->draw,
                    state->kept);
  }
  memcpy(state->draw, state->kept, (size_t)(d * lanes) * sizeof *state->draw);
  for (int n = 0; n < lanes; n++) state->component[n] = (int)state->kept[d * lanes + n];
  mixture_posterior_move_draws(state, runs, &there, *rng);
}

/* Makes the draws of some runs, the lanes of `runs`; `rng` has the streams of all runs. */
static void mixture_posterior_draw_runs(MixturePosterior *state, const HistoryView *runs, RngLanes rng,
                                        int total, double *theta, int *component, int64_t *fallbacks) {
  const int draws = (int)rng.draws, from = runs->first * draws;
  const History *history = runs->history;
  const bool weighted =
      !state->exact && state->options.candidates > 1 && (history->rounds > 0 || history_is_filtered(history));
  rng.first_lane += (uint32_t)from;
  rng.lanes = (uint32_t)(runs->lanes * draws);
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = {runs->history, draws, from + chunk.first, chunk.lanes, NULL, NULL};
    Chunk place = chunk;
    place.first = view.first, place.total = total;
    if (weighted)
      draw_weighted(state, runs, &view, &chunk.rng, fallbacks);
    else
      draw_candidate(state, runs, &view, &chunk.rng, false, true, fallbacks);
    chunk_store(&place, state->prior->d, state->draw, theta);
    if (component) memcpy(component + view.first, state->component, (size_t)view.lanes * sizeof *component);
  }
}

/* Returns whether this round can start from the results of the last one. */
static bool mixture_posterior_is_warm(const MixturePosterior *state, const History *history) {
  return !state->options.alone && mixture_approximation_is_warm(&state->approximation, history);
}

void mixture_posterior_sample(MixturePosterior *state, const History *history, RngLanes rng, int draws,
                              double *theta, int *component, int64_t *fallbacks) {
  const bool follows = draws == 1 && !state->exact;
  state->moved = false;
  if (state->options.candidates > 1) state->approximation.ep.tolerance = WEIGHED_TOLERANCE;
  const bool warm = follows && mixture_posterior_is_warm(state, history);
  const int components = state->prior->components;
  for (int first = 0; first < history->runs; first += CHUNK_LANES) {
    const HistoryView runs = {history, 1, first, chunk_size(history->runs, first, CHUNK_LANES), NULL, NULL};
    if (components == 1 && state->exact) {
      mixture_posterior_set_evidence(state, &runs);
    } else { /* weights become cumulative sums over the components, up to a factor of the run */
      double total[CHUNK_LANES], *weight = state->weight;
      weigh_components(state, &runs, warm, false, NULL, fallbacks);
      lanes_exponentiate(components, runs.lanes, weight, state->largest, total);
      for (int k = runs.lanes; k < components * runs.lanes; k++) weight[k] += weight[k - runs.lanes];
    }
    if (follows) keep_approximations(state, &runs);
    mixture_posterior_draw_runs(state, &runs, rng, (int)rng.lanes, theta, component, fallbacks);
  }
}

/* Counts a fallback for each run whose moments are those of a component whose Gaussian is not to be trusted,
 * unless its weight is small next to the largest. */
static void mixture_posterior_count_doubtful(const MixturePosterior *state, const HistoryView *view,
                                             int first, int end, int64_t *fallbacks) {
  static const double SMALL = -5; /* logarithm */
  const int least = state->options.strict ? EP_DOUBTFUL : EP_NARROW;
  for (int n = 0; n < view->lanes && !state->exact; n++) {
    double largest = -INFINITY;
    bool any = false;
    for (int c = first; c < end; c++) largest = fmax(largest, state->weight[c * view->lanes + n]);
    for (int c = first; c < end; c++)
      any = any || (state->doubt[c * view->lanes + n] >= least &&
                    state->weight[c * view->lanes + n] > largest + SMALL);
    fallbacks[view->first + n] += any;
  }
}

void mixture_posterior_moments(MixturePosterior *state, const History *history, int first, int end,
                               double *mean, double *covariance, int64_t *fallbacks) {
  state->approximation.ep.tolerance = EP_TOLERANCE;
  MixtureMoments moments = {.first = first, .end = end, .runs = history->runs};
  const bool warm = mixture_posterior_is_warm(state, history);
  for (int lane = 0; lane < history->runs; lane += CHUNK_LANES) {
    const HistoryView view = {history, 1, lane, chunk_size(history->runs, lane, CHUNK_LANES), NULL, NULL};
    moments.mean = mean + lane;
    moments.covariance = covariance + lane;
    weigh_components(state, &view, warm, false, &moments, fallbacks);
    mixture_posterior_count_doubtful(state, &view, first, end, fallbacks);
    if (!state->exact) keep_approximations(state, &view);
  }
}
