#include "core/chunk.h"
#include "core/lanes.h"
#include "core/linalg/linalg_factor.h"
#include "core/linalg/linalg_lanes.h"
#include "model/mixture/mixture_evidence.h"
#include "sampler/mixture/mixture_posterior_internal.h"
#include "sampler/mixture/moments.h"

#include <string.h>

enum { CANDIDATES = 8 }; /* `auto`, and the default without options */

/* Most doubles of factors of runs that are taken together. */
enum { MOST_FACTORS = 1 << 21 };

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

/* ---- create */

/* Returns how many runs are taken together: whole tiles of them, as passes over their rows require. */
static int most_runs(const Mixture *prior) {
  const size_t d = (size_t)prior->d, each = (size_t)prior->components * (d + d * d),
               fit = MOST_FACTORS / each;
  if (fit < TILE_LANES) return TILE_LANES;
  return fit < CHUNK_LANES ? (int)fit / TILE_LANES * TILE_LANES : CHUNK_LANES;
}

Status mixture_posterior_begin(Arena *memory, const MixturePosteriorOps *ops, const Mixture *prior, int runs,
                               int gathered, MixturePosterior *out) {
  const size_t d = (size_t)prior->d, components = (size_t)prior->components, m = CHUNK_LANES;
  const int most = most_runs(prior);
  const size_t n = (size_t)(runs < most ? runs : most);
  *out = (MixturePosterior){.ops = ops, .prior = prior, .most = (int)n, .width = CHUNK_LANES};
  ALLOCATE_ARRAYS(memory, components, &out->shrink, &out->constant);
  for (size_t c = 0; c < components; c++) out->shrink[c] = 1;
  mixture_evidence_constants(prior, out->constant);
  ALLOCATE(memory, out->factor, components * d * d * n);
  ALLOCATE(memory, out->whitened, components * d * n);
  ALLOCATE_ARRAYS(memory, components * n, &out->log_weight, &out->cumulative);
  ALLOCATE_ARRAYS(memory, n, &out->common, &out->largest, &out->total, &out->share);
  ALLOCATE(memory, out->jitters, n);
  ALLOCATE(memory, out->marginal, runs);
  ALLOCATE(memory, out->uniform, m);
  ALLOCATE_ARRAYS(memory, m, &out->run, &out->component);
  ALLOCATE_ARRAYS(memory, d * m, &out->draw, &out->own_whitened, &out->together);
  ALLOCATE(memory, out->own_factor, d * d * (size_t)gathered);
  ALLOCATE(memory, out->shared_factor, d * d);
  ALLOCATE(memory, out->mean, d * n);
  ALLOCATE(memory, out->covariance, d * d * n);
  return STATUS_OK;
}

bool mixture_posterior_is_exact(const Likelihood *likelihood) { return likelihood_is_conjugate(likelihood); }

bool mixture_posterior_forgets(const Config *options, const Likelihood *likelihood) {
  return mixture_posterior_options(options).forgets && !mixture_posterior_is_exact(likelihood);
}

bool mixture_posterior_has_steps(const History *history) {
  return !mixture_posterior_is_exact(history->likelihood) && !history_is_filtered(history);
}

Status mixture_posterior_create(Arena *memory, const Mixture *prior, const Likelihood *likelihood, int runs,
                                MixtureOptions options, MixturePosterior **out) {
  if (mixture_posterior_is_exact(likelihood)) return mixture_exact_create(memory, prior, runs, out);
  return mixture_approximate_create(memory, prior, runs, options, out);
}

void mixture_posterior_scale_component(MixturePosterior *self, int component, double factor) {
  self->shrink[component] = factor;
}

/* ---- runs */

/* Takes `most` runs at a time: for (HistoryView runs = first_runs(..); runs.lanes > 0; next_runs(..)). */
static void next_runs(const MixturePosterior *self, HistoryView *runs) {
  runs->first += runs->lanes;
  runs->lanes = chunk_size(runs->history->runs, runs->first, self->most);
}

static HistoryView first_runs(MixturePosterior *self, const History *history, MixtureUse use) {
  HistoryView runs = history_view(history, 1, 0, 0);
  if (self->ops->begin) self->ops->begin(self, history, use);
  next_runs(self, &runs);
  return runs;
}

/* Finds the Gaussians under all components, and counts pivots that were not positive. */
static void find(MixturePosterior *self, const HistoryView *runs, int64_t *fallbacks) {
  memset(self->jitters, 0, (size_t)runs->lanes * sizeof *self->jitters);
  self->ops->find(self, runs, fallbacks);
  for (int n = 0; n < runs->lanes; n++) fallbacks[runs->first + n] += self->jitters[n];
}

/* Returns the logarithm of what the normalisers of the prior contain. */
static double find_unit(const MixturePosterior *self) { return 0.5 * self->prior->d * log(2 * M_PI); }

void mixture_posterior_evidence(MixturePosterior *self, const History *history, double *log_evidence,
                                int64_t *fallbacks) {
  const int components = self->prior->components;
  const double unit = find_unit(self);
  for (HistoryView runs = first_runs(self, history, MIXTURE_EVIDENCE); runs.lanes > 0;
       next_runs(self, &runs)) {
    find(self, &runs, fallbacks);
    if (self->ops->doubt) self->ops->doubt(self, &runs, 0, components, fallbacks);
    for (int c = 0; c < components; c++)
      for (int n = 0; n < runs.lanes; n++)
        log_evidence[(size_t)c * (size_t)history->runs + (size_t)(runs.first + n)] =
            self->log_weight[c * runs.lanes + n] + self->common[n] + unit;
  }
}

double mixture_posterior_log_sum(int components, int stride, const double *log_evidence) {
  double sum = log_evidence[0];
  for (int c = 1; c < components; c++) sum = special_log_sum(sum, log_evidence[(ptrdiff_t)c * stride]);
  return sum;
}

/* ---- moments */

/* Computes share[lanes] of the next component in all weights so far, and updates their total, which is
 * relative to exp(largest). */
SIMD_CLONES
static void find_share(bool first, int lanes, const double *restrict log_weight, double *restrict largest,
                       double *restrict total, double *restrict share) {
  double old_share[CHUNK_LANES];
  lanes_join(first, lanes, log_weight, largest, total, old_share, share);
  for (int n = 0; n < lanes; n++) share[n] /= total[n];
}

/* Computes mean <- P^-1 h and covariance <- P^-1, shrunk, of component c. */
static void find_component_moments(MixturePosterior *self, int c, int lanes) {
  const int d = self->prior->d;
  const double *factor = mixture_component(self->factor, c, d * d, lanes),
               *whitened = mixture_component(self->whitened, c, d, lanes);
  const double shrink = self->shrink[c] * self->shrink[c];
  memcpy(self->mean, whitened, (size_t)d * (size_t)lanes * sizeof *whitened);
  linalg_factor_backward(d, lanes, factor, self->mean);
  linalg_factor_inverse(d, lanes, factor, self->covariance);
  for (int i = 0; i < d * d * lanes && shrink != 1; i++) self->covariance[i] *= shrink;
}

void mixture_posterior_moments(MixturePosterior *self, const History *history, int first, int end,
                               double *mean, double *covariance, int64_t *fallbacks) {
  const int d = self->prior->d;
  for (HistoryView runs = first_runs(self, history, MIXTURE_MOMENTS); runs.lanes > 0;
       next_runs(self, &runs)) {
    find(self, &runs, fallbacks);
    for (int c = first; c < end; c++) {
      find_component_moments(self, c, runs.lanes);
      find_share(c == first, runs.lanes, self->log_weight + c * runs.lanes, self->largest, self->total,
                 self->share);
      mixture_posterior_merge_moments(d, runs.lanes, self->share, self->mean, self->covariance, runs.lanes,
                                      mean + runs.first, covariance + runs.first, history->runs);
    }
    if (self->ops->doubt) self->ops->doubt(self, &runs, first, end, fallbacks);
  }
}

/* ---- draws */

/* Computes the cumulative weights. */
static void add_weights(MixturePosterior *self, int lanes) {
  const int entries = self->prior->components * lanes;
  double *weight = self->cumulative;
  memcpy(weight, self->log_weight, (size_t)entries * sizeof *weight);
  lanes_exponentiate(self->prior->components, lanes, weight, self->largest, self->total);
  for (int k = lanes; k < entries; k++) weight[k] += weight[k - lanes];
}

void mixture_posterior_pick(MixturePosterior *self, const HistoryView *runs, const HistoryView *view) {
  const int components = self->prior->components, parts = runs->lanes;
  for (int n = 0; n < view->lanes; n++) {
    const double *sum = self->cumulative + self->run[n],
                 below = self->uniform[n] * sum[(components - 1) * parts];
    int c = 0; /* the first at which the cumulative weight exceeds this share of the total */
    while (c + 1 < components && !(sum[c * parts] > below)) c++;
    self->component[n] = c;
  }
}

/* Keeps the evidence of these runs, whose weights have just been added. */
static void keep_marginals(MixturePosterior *self, const HistoryView *runs) {
  for (int n = 0; n < runs->lanes; n++)
    self->marginal[runs->first + n] =
        self->largest[n] + log(self->total[n]) + self->common[n] + find_unit(self);
}

double mixture_posterior_marginal(const MixturePosterior *self, int run) { return self->marginal[run]; }

/* Returns whether each draw gets its own copy of a factor: it is the only one of its run, or the matrix is
 * small. */
static bool gathers_factors(const MixturePosterior *self, const HistoryView *view) {
  return view->draws == 1 || self->prior->d <= LINALG_BATCH_DIMENSION;
}

void mixture_posterior_gather_rows(const MixturePosterior *self, int parts, int lanes, int every, int rows,
                                   const double *from, double *to) {
  size_t place[CHUNK_LANES];
  for (int n = 0; n < lanes; n++)
    place[n] = (size_t)self->component[n] * (size_t)every * (size_t)parts + (size_t)self->run[n];
  for (int i = 0; i < rows; i++) {
    const double *row = from + (ptrdiff_t)i * parts;
    double *own = to + (ptrdiff_t)i * lanes;
    for (int n = 0; n < lanes; n++) own[n] = row[place[n]];
  }
}

void mixture_posterior_gather_factors(MixturePosterior *self, const HistoryView *runs,
                                      const HistoryView *view) {
  const int d = self->prior->d, lanes = view->lanes, parts = runs->lanes;
  for (int i = 0; i < d; i++) /* the lower triangle */
    mixture_posterior_gather_rows(self, parts, lanes, d * d, i + 1, self->factor + (ptrdiff_t)i * d * parts,
                                  self->own_factor + (ptrdiff_t)i * d * lanes);
}

void mixture_posterior_gather(MixturePosterior *self, const HistoryView *runs, const HistoryView *view) {
  const int d = self->prior->d;
  mixture_posterior_gather_rows(self, runs->lanes, view->lanes, d, d, self->whitened, self->own_whitened);
  if (gathers_factors(self, view)) mixture_posterior_gather_factors(self, runs, view);
}

/* Solves L' draw = draw for those draws of run r from component c that are lanes first .. end - 1 of
 * `lanes`. */
static void solve_together(MixturePosterior *self, const HistoryView *runs, int r, int c, int first, int end,
                           int lanes) {
  const int d = self->prior->d, parts = runs->lanes;
  int lane[CHUNK_LANES], count = 0;
  for (int n = first; n < end; n++)
    if (self->component[n] == c) lane[count++] = n;
  if (count == 0) return;
  lanes_copy(d * d, 1, mixture_component(self->factor, c, d * d, parts) + r, parts, self->shared_factor, 1);
  lanes_gather(d, lanes, count, lane, self->draw, self->together);
  linalg_factor_backward_shared(d, count, self->shared_factor, self->together);
  lanes_scatter(d, lanes, count, lane, self->together, self->draw);
}

void mixture_posterior_solve(MixturePosterior *self, const HistoryView *runs, const HistoryView *view) {
  const int d = self->prior->d, lanes = view->lanes;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      self->draw[i * lanes + n] =
          self->own_whitened[i * lanes + n] + self->draw[i * lanes + n] * self->shrink[self->component[n]];
  if (gathers_factors(self, view)) {
    linalg_factor_backward(d, lanes, self->own_factor, self->draw);
    return;
  }
  for (int first = 0, end; first < lanes; first = end) {
    const int r = self->run[first], last = (runs->first + r + 1) * view->draws - view->first;
    end = last < lanes ? last : lanes;
    for (int c = 0; c < self->prior->components; c++) solve_together(self, runs, r, c, first, end, lanes);
  }
}

void mixture_posterior_draw(MixturePosterior *self, const HistoryView *runs, const HistoryView *view,
                            RngLanes *rng) {
  rng_lanes_uniform(rng, 1, self->uniform);
  rng_lanes_normal(rng, self->prior->d, self->draw);
  mixture_posterior_pick(self, runs, view);
  mixture_posterior_gather(self, runs, view);
  mixture_posterior_solve(self, runs, view);
}

/* Makes the draws of some runs, the lanes of `runs`; `rng` has the streams of all runs. */
static void draw_runs(MixturePosterior *self, const HistoryView *runs, RngLanes rng, double *theta,
                      int *component) {
  const int draws = (int)rng.draws, from = runs->first * draws, total = (int)rng.lanes;
  rng.first_lane += (uint32_t)from;
  rng.lanes = (uint32_t)(runs->lanes * draws);
  for (Chunk chunk = chunk_begin_narrow(rng, self->width); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    const HistoryView view = history_view(runs->history, draws, from + chunk.first, chunk.lanes);
    Chunk place = chunk;
    place.first = view.first;
    place.total = total;
    for (int n = 0; n < view.lanes; n++) self->run[n] = (view.first + n) / draws - runs->first;
    self->ops->draw(self, runs, &view, &chunk.rng);
    chunk_store(&place, self->prior->d, self->draw, theta);
    if (component) memcpy(component + view.first, self->component, (size_t)view.lanes * sizeof *component);
  }
}

void mixture_posterior_sample(MixturePosterior *self, const History *history, RngLanes rng, int draws,
                              double *theta, int *component, int64_t *fallbacks) {
  const MixtureUse use = draws == 1 ? MIXTURE_NEXT_DRAW : MIXTURE_DRAWS;
  for (HistoryView runs = first_runs(self, history, use); runs.lanes > 0; next_runs(self, &runs)) {
    find(self, &runs, fallbacks);
    add_weights(self, runs.lanes);
    if (draws > 1) keep_marginals(self, &runs);
    draw_runs(self, &runs, rng, theta, component);
  }
}
