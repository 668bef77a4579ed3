/* A history that forgets, so that its memory does not grow: assumed-density filtering (Maybeck 1982; Opper
 * 1998, A Bayesian approach to on-line learning), and windowed expectation propagation.
 *
 * The likelihood of a forgotten row is replaced by the Gaussian that expectation propagation (ep.h) found for
 * it: for each component c of the mixture prior, by evidence (Lambda_c, b_c) and log s_c, the logarithm of
 * its scale. With keep = 0 every row is forgotten at once, given the posterior before it. Otherwise at least
 * the last `keep` rows, and fewer than 2 keep, stay as they are: as soon as there are 2 keep rows, the older
 * half is replaced by Gaussians found from all of them together with what was forgotten before. */
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/ep_doubt.h"
#include "model/history/history_internal.h"
#include "model/history/history_passes.h"
#include "model/history/irls.h"
#include "model/history/likelihood.h"

#include <math.h>
#include <string.h>

/* Tolerance of the mode from which expectation propagation starts. */
static const double START_TOLERANCE = 1e-2;

/* C components, each with a block of evidence for what it has forgotten, whose number is log_scale; m =
 * each_round lanes of `recent`, one for each observation of a round; n <= CHUNK_LANES. */
typedef struct {
  struct HistoryContent common;
  Mixture prior;
  int keep, capacity; /* rows that stay; rows at which a run forgets */
  History recent, spare; /* rows of m runs; scratch */
  bool *full; /* [m]: has rows to forget */
  int64_t *fallbacks; /* [m], of the last round */
  /* Scratch. */
  Irls irls;
  Ep ep;
  double *belief; /* [d d + d, n]: precision and vector of a component with what it has forgotten */
  double *own; /* [d d + d + 1, n]: precision, vector and log_scale of the rows to forget */
  double *mode, *log_evidence; /* [d, n], [n] */
  double *at_mode, *image; /* [d d + d + 1, n]: Laplace's version of `own`; [d, n] */
  bool *failed; /* [n] */
  double *lambda, *nu; /* [n]: sites of single clicks */
} Filtered;

static Filtered *filtered_of(const History *history) {
  ASSERT(history_is_filtered(history));
  return (Filtered *)history->content;
}

Status history_create_filtered(Arena *memory, const Mixture *prior, int keep, int runs, int share,
                               const Likelihood *likelihood, History *out) {
  const int d = prior->d, n = CHUNK_LANES;
  ASSERT(!likelihood_is_conjugate(likelihood) && !likelihood_has_network(likelihood));
  ASSERT(keep == 0 || share == 1);
  const HistoryLayout layout = {.form = &history_form_filtered, .share = share, .blocks = prior->components};
  TRY(history_begin(memory, d, runs, layout, likelihood, out));
  Filtered *self = filtered_of(out);
  self->keep = keep, self->capacity = keep > 0 ? 2 * keep : 1;
  TRY(mixture_copy(memory, prior, &self->prior));
  TRY(history_create(memory, d, out->each_round, likelihood, &self->recent));
  TRY(history_reserve(&self->recent, self->capacity));
  TRY(history_create(memory, d, out->each_round, likelihood, &self->spare));
  TRY(history_reserve(&self->spare, self->capacity));
  ALLOCATE(memory, self->full, out->each_round);
  ALLOCATE(memory, self->fallbacks, out->each_round);
  TRY(irls_create(memory, d, n, START_TOLERANCE, &self->irls));
  TRY(ep_create(memory, d, n, EP_TOLERANCE, &self->ep));
  ALLOCATE_ARRAYS(memory, history_evidence_entries(d) * CHUNK_LANES, &self->belief, &self->own,
                  &self->at_mode);
  ALLOCATE_ARRAYS(memory, d * n, &self->mode, &self->image);
  ALLOCATE_ARRAYS(memory, n, &self->log_evidence, &self->lambda, &self->nu);
  ALLOCATE(memory, self->failed, n);
  return STATUS_OK;
}

bool history_is_filtered(const History *history) { return history->ops == &history_form_filtered; }

const Mixture *history_filtered_prior(const History *history) { return &filtered_of(history)->prior; }

static void history_filtered_clear(History *history) {
  Filtered *self = filtered_of(history);
  memset(self->fallbacks, 0, (size_t)history->each_round * sizeof *self->fallbacks);
  history_clear(&self->recent);
}

History history_retained(const History *history) {
  History view = history_first_runs(&filtered_of(history)->recent, history->each_round);
  view.temper = history->temper;
  return view;
}

/* Computes to[rows, lanes] += from[rows, B] of runs run[lanes]. */
static void history_gather_lanes(int rows, int lanes, const int *run, size_t columns, const double *from,
                                 double *to) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) to[i * lanes + n] += from[(size_t)i * columns + (size_t)run[n]];
}

void history_forgotten(const HistoryView *view, int c, double *precision, double *vector, double *log_scale) {
  const History *history = view->history;
  const int d = history->d, lanes = view->lanes;
  const size_t columns = (size_t)history->content->columns, square = (size_t)d * (size_t)d;
  const double *block = history_block(history, c);
  int run[CHUNK_LANES];
  ASSERT(view->draws == 1 && lanes <= CHUNK_LANES && !view->shift && !view->scale);
  for (int n = 0; n < lanes; n++) {
    run[n] = view->first + n;
    log_scale[n] = 0;
  }
  history_gather_lanes(d * d, lanes, run, columns, block, precision);
  history_gather_lanes(d, lanes, run, columns, block + square * columns, vector);
  history_gather_lanes(1, lanes, run, columns, block + (square + (size_t)d) * columns, log_scale);
}

/* ---- forgetting */

/* Sets `belief` to component c with what it has forgotten of these runs. */
static void history_gather_belief(const History *history, int c, int lanes, const int *run) {
  const Filtered *self = filtered_of(history);
  const int d = history->d;
  lanes_repeat(d * d, lanes, mixture_precision(&self->prior, c), self->belief);
  lanes_repeat(d, lanes, mixture_information(&self->prior, c), self->belief + d * d * lanes);
  history_gather_lanes(d * d + d, lanes, run, (size_t)history->content->columns, history_block(history, c),
                       self->belief);
}

/* Takes the rows from `row` on out of Laplace's evidence and of the log likelihood at the mode; overwrites
 * `belief`. */
static void history_leave_rest(Filtered *self, const HistoryView *view, int row, double *log_likelihood) {
  const int d = self->recent.d, lanes = view->lanes;
  const size_t entries = (size_t)d * (size_t)lanes, square = entries * (size_t)d;
  const History rest = history_since(view->history, row);
  HistoryView rows = *view;
  double *vector = self->belief + square;
  rows.history = &rest;
  history_derivatives(&rows, self->mode, NULL, vector, self->belief);
  linalg_lanes_multiply(d, lanes, self->belief, self->mode, self->image);
  lanes_add(entries, 1, self->image, vector);
  lanes_add(square + entries, -1, self->belief, self->at_mode);
  history_log_likelihood(&rows, self->mode, self->log_evidence, NULL);
  lanes_add((size_t)lanes, -1, self->log_evidence, log_likelihood);
}

/* Replaces `own` by Laplace's evidence and scale of the rows to forget, where expectation propagation has
 * failed, and counts a fallback. */
static void history_replace_failed(Filtered *self, const HistoryView *view) {
  const int d = self->recent.d, lanes = view->lanes;
  const size_t rows = history_evidence_entries(d);
  double *vector = self->at_mode + d * d * lanes, *log_scale = vector + d * lanes;
  bool any = false;
  for (int n = 0; n < lanes; n++) any = any || self->failed[n];
  if (!any) return;
  history_log_likelihood(view, self->mode, log_scale, NULL);
  if (self->keep > 0) history_leave_rest(self, view, self->capacity - self->keep, log_scale);
  linalg_lanes_add_quadratic(d, lanes, -1, (LanesQuadratic){.matrix = self->at_mode, .vector = vector},
                             self->mode, self->image, log_scale);
  for (int n = 0; n < lanes; n++) {
    if (!self->failed[n]) continue;
    self->fallbacks[view->first + n] += self->ep.moving[n] == 0; /* else counted already */
    for (size_t i = 0; i < rows; i++)
      self->own[i * (size_t)lanes + (size_t)n] = self->at_mode[i * (size_t)lanes + (size_t)n];
  }
}

/* Finds the Gaussians that replace the rows these lanes forget, and adds them to what component c has
 * forgotten. */
static void history_forget_rows(const History *history, const HistoryView *view, int c) {
  Filtered *self = filtered_of(history);
  const int d = history->d, lanes = view->lanes, *run = history_latest_runs(history) + view->first;
  const size_t rows = history_evidence_entries(d), columns = (size_t)history->content->columns;
  const PriorLanes belief = {.precision = self->belief, .vector = self->belief + d * d * lanes};
  const EvidenceLanes own = {.precision = self->own, .vector = self->own + d * d * lanes};
  double *log_scale = own.vector + d * lanes, *forgotten = history_block(history, c);
  history_gather_belief(history, c, lanes, run);
  memset(self->own, 0, rows * (size_t)lanes * sizeof *self->own);
  irls_solve(&self->irls, view, belief, own, self->mode, self->fallbacks);
  memcpy(self->at_mode, self->own, rows * (size_t)lanes * sizeof *self->own);
  ep_solve(&self->ep, view, belief, own, self->log_evidence, self->fallbacks);
  ep_find_failed(&self->ep, lanes, &self->irls, self->mode, self->failed);
  if (self->keep > 0)
    ep_split(&self->ep, view, belief, self->capacity - self->keep, own, log_scale);
  else
    memcpy(log_scale, self->ep.settled_scale, (size_t)lanes * sizeof *log_scale);
  history_replace_failed(self, view);
  for (size_t i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++)
      if (self->full[view->first + n])
        forgotten[i * columns + (size_t)run[n]] += self->own[i * (size_t)lanes + (size_t)n];
}

/* Computes mean[lanes] and variance[lanes] of u = phi' theta under a belief, from its precision[d, d, lanes],
 * its vector[d, lanes], which is in `mean`, and phi[d, lanes]; all of them are overwritten. */
SIMD_CLONES
static void history_find_marginals(int d, int lanes, double *precision, double *restrict mean,
                                   double *restrict phi, double *restrict variance, int *jitters) {
  linalg_factor_cholesky(d, lanes, precision, jitters);
  linalg_factor_forward(d, lanes, precision, mean);
  linalg_factor_forward(d, lanes, precision, phi);
  for (int n = 0; n < lanes; n++) {
    mean[n] *= phi[n];
    variance[n] = phi[n] * phi[n];
  }
  for (int i = 1; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      mean[n] += mean[i * lanes + n] * phi[i * lanes + n];
      variance[n] += phi[i * lanes + n] * phi[i * lanes + n];
    }
}

/* Adds one click of each full lane from `first` on to what component c has forgotten, without a row. */
static void history_absorb_clicks(const History *history, int first, int lanes, int c, const double *phi,
                                  const double *y) {
  Filtered *self = filtered_of(history);
  const int d = history->d, *run = history_latest_runs(history) + first, stride = history->each_round;
  const size_t columns = (size_t)history->content->columns, square = (size_t)d * (size_t)d;
  double *mean = self->belief + d * d * lanes, *variance = self->own + d * lanes,
         *block = history_block(history, c);
  int jitters[CHUNK_LANES] = {0};
  history_gather_belief(history, c, lanes, run);
  lanes_copy(d, lanes, phi + first, stride, self->own, lanes);
  history_find_marginals(d, lanes, self->belief, mean, self->own, variance, jitters);
  const SiteLanes sites = {.lambda = self->lambda, .nu = self->nu, .log_scale = self->log_evidence};
  ep_click(&self->ep.nodes, lanes, y + first, mean, variance, sites);
  for (int n = 0; n < lanes; n++) {
    double *forgotten = block + run[n];
    self->fallbacks[first + n] += jitters[n];
    if (!self->full[first + n]) self->lambda[n] = self->nu[n] = self->log_evidence[n] = 0;
    forgotten[(square + (size_t)d) * columns] += self->log_evidence[n];
    for (int i = 0; i < d; i++) {
      const double own = phi[i * stride + first + n], site = self->lambda[n] * own;
      forgotten[(square + (size_t)i) * columns] += self->nu[n] * own;
      for (int j = 0; j <= i; j++) {
        double *low = forgotten + (size_t)(i * d + j) * columns;
        *low += site * phi[j * stride + first + n];
        forgotten[(size_t)(j * d + i) * columns] = *low;
      }
    }
  }
}

/* Copies the rows of run m of one history, from row `first` on, to run n of another. */
static void history_filtered_copy_rows(const History *rows, int m, int first, History *to, int n) {
  const History from = history_since(rows, first);
  from.ops->copy_run(&from, m, to, n);
  const int length = history_rows(to)->length[n];
  if (length > to->rounds) to->rounds = length;
}

static void history_filtered_append(History *history, const int *arm, const double *phi, const double *y) {
  Filtered *self = filtered_of(history);
  const bool clicks = history->likelihood->ops == &likelihood_logistic && self->capacity == 1;
  const int lanes = history->each_round;
  History recent = history_first_runs(&self->recent, history->each_round);
  bool any = false;
  memset(self->fallbacks, 0, (size_t)lanes * sizeof *self->fallbacks);
  if (!clicks) history_record(&recent, arm, phi, y);
  self->recent.rounds = recent.rounds;
  for (int m = 0; m < lanes; m++) {
    self->full[m] = clicks ? !arm || arm[m] >= 0 : history_rows(&recent)->length[m] == self->capacity;
    any = any || self->full[m];
  }
  if (!any) return;
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    const int left = lanes - first, count = left < CHUNK_LANES ? left : CHUNK_LANES;
    const HistoryView view = history_view(&recent, 1, first, count);
    for (int c = 0; c < self->prior.components; c++)
      if (clicks)
        history_absorb_clicks(history, first, count, c, phi, y);
      else
        history_forget_rows(history, &view, c);
  }
  for (int m = 0; m < lanes; m++) /* other lanes are computed only because a neighbour forgets */
    if (!self->full[m]) self->fallbacks[m] = 0;
  if (clicks) return;
  /* Full lanes keep the last `keep` rows. */
  History after = history_first_runs(&self->spare, history->each_round);
  history_clear(&after);
  if (self->keep > 0)
    for (int m = 0; m < lanes; m++)
      history_filtered_copy_rows(&recent, m, self->full[m] ? self->capacity - self->keep : 0, &after, m);
  self->spare.content = recent.content;
  self->recent.content = after.content;
  self->recent.rounds = after.rounds;
}

void history_filtered_fallbacks(const History *history, int64_t *fallbacks) {
  const Filtered *self = filtered_of(history);
  for (int m = 0; m < history->each_round; m++)
    fallbacks[history_latest_runs(history)[m]] += self->fallbacks[m];
}

static void history_filtered_discount(History *history, double factor) {
  (void)factor;
  ASSERT(filtered_of(history)->keep == 0); /* rows are copied without their factors */
}

/* ---- single runs */

static void history_filtered_copy_run(const History *from, int m, History *to, int n) {
  const Filtered *old = filtered_of(from);
  if (old->keep > 0) history_filtered_copy_rows(&old->recent, m, 0, &filtered_of(to)->recent, n);
}

/* Returns the size of a run's state after its evidence: the number of rows, and the rows. */
static size_t history_filtered_size(const History *history) {
  const Filtered *self = filtered_of(history);
  return self->keep > 0 ? 1 + (size_t)self->capacity * ((size_t)history->d + 1) : 0;
}

static void history_filtered_store(const History *history, int run, double *out) {
  const Filtered *self = filtered_of(history);
  if (self->keep == 0) return;
  const int rows = history_rows(&self->recent)->length[run];
  *out++ = rows;
  for (int l = 0, d = history->d; l < rows; l++, out += d + 1)
    out[d] = history_observation(&self->recent, run, l, 1, out);
}

static void history_filtered_load(History *history, int run, const double *from) {
  Filtered *self = filtered_of(history);
  if (self->keep == 0) return;
  const int rows = (int)*from++;
  for (int l = 0, d = history->d; l < rows; l++, from += d + 1)
    history_rows_add(&self->recent, run, 1, from, from[d]);
  if (rows > self->recent.rounds) self->recent.rounds = rows;
}

static bool history_filtered_accepts(const History *history, const double *state) {
  const Filtered *self = filtered_of(history);
  return self->keep == 0 || (*state >= 0 && *state < self->capacity && *state == floor(*state));
}

const HistoryOps history_form_filtered = {.size = sizeof(Filtered),
                                          .append = history_filtered_append,
                                          .clear = history_filtered_clear,
                                          .copy_run = history_filtered_copy_run,
                                          .discount = history_filtered_discount,
                                          .state = history_filtered_size,
                                          .store = history_filtered_store,
                                          .load = history_filtered_load,
                                          .accepts = history_filtered_accepts};
