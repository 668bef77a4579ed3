#include "model/history/history_filtered.h"

#include "core/lanes.h"
#include "core/linalg.h"
#include "model/history/ep.h"
#include "model/history/history_internal.h"
#include "model/history/irls.h"
#include "model/history/likelihood.h"

#include <string.h>

/* Tolerance of the mode from which expectation propagation starts. */
static const double START_TOLERANCE = 1e-2;

/* C components; m = each_round lanes of `recent`, one for each observation of a round; n <= CHUNK_LANES. */
typedef struct {
  struct HistoryContent common;
  Mixture prior;
  int keep, capacity; /* rows that stay; rows at which a run forgets */
  double
      *forgotten; /* [C, d d + d + 1, B]: precision[d, d, B], vector[d, B], log_scale[B] of each component */
  History recent, spare; /* rows of m runs; scratch */
  bool *full; /* [m]: has rows to forget */
  int64_t *fallbacks; /* [m], of the last round */
  /* Scratch. */
  Irls irls;
  Ep ep;
  double *prior_precision, *prior_vector; /* [d, d, n], [d, n]: of a component with what it has forgotten */
  double *own_precision, *own_vector, *own_scale; /* [d, d, n], [d, n], [n]: of the rows to forget */
  double *mode, *log_evidence; /* [d, n], [n] */
  double *lambda, *nu; /* [n]: sites of single clicks */
} Filtered;

static Filtered *filtered_of(const History *history) {
  ASSERT(history_is_filtered(history));
  return (Filtered *)history->content;
}

static size_t history_forgotten_entries(const History *history) {
  return (size_t)filtered_of(history)->prior.components * history_evidence_entries(history->d) *
         (size_t)history->runs;
}

static Status history_filtered_reserve(History *history, int rounds) {
  Filtered *self = filtered_of(history);
  (void)rounds; /* memory does not grow with them */
  if (!self->forgotten) ALLOCATE(history->memory, self->forgotten, history_forgotten_entries(history));
  return STATUS_OK;
}

static Status history_create_scratch(Arena *memory, int d, int lanes, Filtered *self) {
  const size_t n = CHUNK_LANES, vector = (size_t)d * n;
  ALLOCATE_ARRAYS(memory, lanes, self->full, self->fallbacks);
  TRY(irls_create(memory, d, CHUNK_LANES, START_TOLERANCE, &self->irls));
  TRY(ep_create(memory, d, CHUNK_LANES, EP_TOLERANCE, &self->ep));
  ALLOCATE_ARRAYS(memory, vector * (size_t)d, self->prior_precision, self->own_precision);
  ALLOCATE_ARRAYS(memory, vector, self->prior_vector, self->own_vector, self->mode);
  ALLOCATE_ARRAYS(memory, n, self->own_scale, self->log_evidence, self->lambda, self->nu);
  return STATUS_OK;
}

Status history_create_filtered(Arena *memory, const Mixture *prior, int keep, int runs, int share,
                               const Likelihood *likelihood, History *out) {
  ASSERT(!likelihood_is_conjugate(likelihood) && !likelihood_has_network(likelihood));
  ASSERT(keep == 0 || share == 1);
  TRY(history_begin(memory, prior->d, runs, share, &history_form_filtered, likelihood, out));
  Filtered *self = filtered_of(out);
  self->keep = keep, self->capacity = keep > 0 ? 2 * keep : 1;
  TRY(mixture_copy(memory, prior, &self->prior));
  TRY(history_create(memory, prior->d, out->each_round, likelihood, &self->recent));
  TRY(history_reserve(&self->recent, self->capacity));
  TRY(history_create(memory, prior->d, out->each_round, likelihood, &self->spare));
  TRY(history_reserve(&self->spare, self->capacity));
  TRY(history_create_scratch(memory, prior->d, out->each_round, self));
  return history_filtered_reserve(out, 0);
}

bool history_is_filtered(const History *history) { return history->ops == &history_form_filtered; }

/* Returns `rows` with the runs of `history`, which may be a view of the first runs of another history. */
static History history_first_runs(const History *rows, const History *history) {
  History view = *rows;
  view.runs = view.each_round = history->each_round;
  return view;
}

static void history_filtered_clear(History *history) {
  Filtered *self = filtered_of(history);
  memset(self->forgotten, 0, history_forgotten_entries(history) * sizeof *self->forgotten);
  memset(self->fallbacks, 0, (size_t)history->each_round * sizeof *self->fallbacks);
  history_clear(&self->recent);
}

History history_retained(const History *history) {
  History view = history_first_runs(&filtered_of(history)->recent, history);
  view.temper = history->temper;
  return view;
}

/* Computes to[rows, lanes] += from[rows, B] of runs run[lanes]. */
static void history_gather_lanes(int rows, int lanes, const int *run, size_t runs, const double *from,
                                 double *to) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) to[i * lanes + n] += from[(size_t)i * runs + (size_t)run[n]];
}

/* Adds from[rows, lanes] of the lanes that are `full` to runs run[lanes] of to[rows, B]. */
static void history_scatter_lanes(int rows, int lanes, const bool *full, const int *run, size_t runs,
                                  const double *from, double *to) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++)
      if (full[n]) to[(size_t)i * runs + (size_t)run[n]] += from[i * lanes + n];
}

static double *history_forgotten_precision(const History *history, int c) {
  return filtered_of(history)->forgotten +
         (size_t)c * history_evidence_entries(history->d) * (size_t)history->runs;
}
static double *history_forgotten_vector(const History *history, int c) {
  return history_forgotten_precision(history, c) + (size_t)(history->d * history->d) * (size_t)history->runs;
}
static double *history_forgotten_scale(const History *history, int c) {
  return history_forgotten_vector(history, c) + (size_t)history->d * (size_t)history->runs;
}

void history_forgotten(const HistoryView *view, int c, double *precision, double *vector, double *log_scale) {
  const History *history = view->history;
  const int d = history->d, lanes = view->lanes;
  const size_t runs = (size_t)history->runs;
  int run[CHUNK_LANES];
  ASSERT(view->draws == 1 && lanes <= CHUNK_LANES && !view->shift && !view->scale);
  for (int n = 0; n < lanes; n++) run[n] = view->first + n, log_scale[n] = 0;
  history_gather_lanes(d * d, lanes, run, runs, history_forgotten_precision(history, c), precision);
  history_gather_lanes(d, lanes, run, runs, history_forgotten_vector(history, c), vector);
  history_gather_lanes(1, lanes, run, runs, history_forgotten_scale(history, c), log_scale);
}

/* ---- forgetting */

/* Finds own_precision, own_vector and own_scale, the Gaussians that replace the rows these lanes forget,
 * under a component. */
static void history_find_sites(Filtered *self, const HistoryView *view) {
  const int d = view->history->d, lanes = view->lanes;
  memset(self->own_precision, 0, (size_t)(d * d * lanes) * sizeof *self->own_precision);
  memset(self->own_vector, 0, (size_t)(d * lanes) * sizeof *self->own_vector);
  irls_solve(&self->irls, view, self->prior_precision, self->prior_vector, self->own_precision,
             self->own_vector, self->mode, self->fallbacks);
  ep_solve(&self->ep, view, self->prior_precision, self->prior_vector, self->own_precision, self->own_vector,
           self->log_evidence, self->fallbacks);
  if (self->keep > 0)
    ep_split(&self->ep, view, self->prior_precision, self->prior_vector, self->capacity - self->keep,
             self->own_precision, self->own_vector, self->own_scale);
  else
    memcpy(self->own_scale, self->ep.settled_scale, (size_t)lanes * sizeof *self->own_scale);
}

/* Sets prior_precision and prior_vector to component c with what it has forgotten of these runs. */
static void history_gather_belief(const History *history, int c, int lanes, const int *run) {
  Filtered *self = filtered_of(history);
  const int d = history->d;
  const size_t runs = (size_t)history->runs;
  lanes_repeat(d * d, lanes, self->prior.precision + c * d * d, self->prior_precision);
  lanes_repeat(d, lanes, self->prior.information + c * d, self->prior_vector);
  history_gather_lanes(d * d, lanes, run, runs, history_forgotten_precision(history, c),
                       self->prior_precision);
  history_gather_lanes(d, lanes, run, runs, history_forgotten_vector(history, c), self->prior_vector);
}

/* Adds the rows that these lanes forget to what component c has forgotten. */
static void history_forget_rows(const History *history, const HistoryView *view, int c) {
  Filtered *self = filtered_of(history);
  const int d = history->d, lanes = view->lanes, *run = history_latest_runs(history) + view->first;
  const size_t runs = (size_t)history->runs;
  const bool *full = self->full + view->first;
  history_gather_belief(history, c, lanes, run);
  history_find_sites(self, view);
  history_scatter_lanes(d * d, lanes, full, run, runs, self->own_precision,
                        history_forgotten_precision(history, c));
  history_scatter_lanes(d, lanes, full, run, runs, self->own_vector, history_forgotten_vector(history, c));
  history_scatter_lanes(1, lanes, full, run, runs, self->own_scale, history_forgotten_scale(history, c));
}

/* Computes the mean and variance of u = phi' theta, in prior_vector[lanes] and own_scale[lanes], from
 * prior_precision, prior_vector and own_vector[d, lanes] = phi. */
SIMD_CLONES
static void history_find_marginals(Filtered *self, int d, int lanes, int *jitters) {
  double *restrict half = self->prior_vector, *restrict row = self->own_vector, *restrict v = self->own_scale;
  linalg_cholesky_lanes(d, lanes, self->prior_precision, jitters);
  linalg_forward_lanes(d, lanes, self->prior_precision, half);
  linalg_forward_lanes(d, lanes, self->prior_precision, row);
  for (int n = 0; n < lanes; n++) half[n] *= row[n], v[n] = row[n] * row[n];
  for (int i = 1; i < d; i++)
    for (int n = 0; n < lanes; n++)
      half[n] += half[i * lanes + n] * row[i * lanes + n], v[n] += row[i * lanes + n] * row[i * lanes + n];
}

/* Adds one click of each full lane from `first` on to what component c has forgotten, without a row. */
static void history_absorb_clicks(const History *history, int first, int lanes, int c, const double *phi,
                                  const double *y) {
  Filtered *self = filtered_of(history);
  const int d = history->d, *run = history_latest_runs(history) + first, stride = history->each_round;
  const size_t runs = (size_t)history->runs;
  const bool *full = self->full + first;
  double *precision = history_forgotten_precision(history, c), *vector = history_forgotten_vector(history, c);
  int jitters[CHUNK_LANES] = {0};
  history_gather_belief(history, c, lanes, run);
  lanes_copy(d, lanes, phi + first, stride, self->own_vector, lanes);
  history_find_marginals(self, d, lanes, jitters);
  ep_click(&self->ep.nodes, lanes, y + first, self->prior_vector, self->own_scale, self->lambda, self->nu,
           self->log_evidence);
  for (int n = 0; n < lanes; n++) {
    self->fallbacks[first + n] += jitters[n];
    if (!full[n]) self->lambda[n] = self->nu[n] = self->log_evidence[n] = 0;
    history_forgotten_scale(history, c)[run[n]] += self->log_evidence[n];
  }
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) {
      const double own = phi[i * stride + first + n], site = self->lambda[n] * own;
      vector[(size_t)i * runs + (size_t)run[n]] += self->nu[n] * own;
      for (int j = 0; j <= i; j++) {
        double *low = precision + (size_t)(i * d + j) * runs + (size_t)run[n];
        *low += site * phi[j * stride + first + n];
        precision[(size_t)(j * d + i) * runs + (size_t)run[n]] = *low;
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

/* Drops the forgotten rows of full lanes, which keep the last `keep`. */
static void history_drop_forgotten(const History *history) {
  Filtered *self = filtered_of(history);
  const History before = history_first_runs(&self->recent, history);
  History after = history_first_runs(&self->spare, history);
  history_clear(&after);
  for (int m = 0; m < history->each_round && self->keep > 0; m++)
    history_filtered_copy_rows(&before, m, self->full[m] ? self->capacity - self->keep : 0, &after, m);
  const struct HistoryContent *content = (struct HistoryContent *)after.content;
  self->spare.content = self->recent.content;
  self->recent.content = (struct HistoryContent *)content;
  self->recent.rounds = after.rounds;
}

/* Adds this round's rows to the recent ones; returns whether any lane is then full. */
static bool history_keep_rows(const History *history, const int *arm, const double *phi, const double *y) {
  Filtered *self = filtered_of(history);
  History recent = history_first_runs(&self->recent, history);
  bool any = false;
  history_record(&recent, arm, phi, y);
  self->recent.rounds = recent.rounds;
  for (int m = 0; m < history->each_round; m++) {
    self->full[m] = history_rows(&recent)->length[m] == self->capacity;
    any = any || self->full[m];
  }
  return any;
}

static void history_filtered_append(History *history, const int *arm, const double *phi, const double *y) {
  Filtered *self = filtered_of(history);
  const bool clicks = history->likelihood->ops == &likelihood_logistic && self->capacity == 1;
  const int lanes = history->each_round;
  memset(self->fallbacks, 0, (size_t)lanes * sizeof *self->fallbacks);
  for (int m = 0; m < lanes && clicks; m++) self->full[m] = !arm || arm[m] >= 0;
  if (!clicks && !history_keep_rows(history, arm, phi, y)) return;
  const History recent = history_first_runs(&self->recent, history);
  for (int first = 0; first < lanes; first += CHUNK_LANES) {
    const int left = lanes - first, count = left < CHUNK_LANES ? left : CHUNK_LANES;
    const HistoryView view = {&recent, 1, first, count, NULL, NULL};
    for (int c = 0; c < self->prior.components; c++)
      if (clicks)
        history_absorb_clicks(history, first, count, c, phi, y);
      else
        history_forget_rows(history, &view, c);
  }
  if (!clicks) history_drop_forgotten(history);
}

void history_filtered_fallbacks(const History *history, int64_t *fallbacks) {
  const Filtered *self = filtered_of(history);
  for (int m = 0; m < history->each_round; m++)
    fallbacks[history_latest_runs(history)[m]] += self->fallbacks[m];
}

/* Multiplies what was forgotten by a factor. */
static void history_filtered_discount(History *history, double factor) {
  Filtered *self = filtered_of(history);
  ASSERT(self->keep == 0); /* rows are copied without their factors */
  for (size_t k = 0; k < history_forgotten_entries(history); k++) self->forgotten[k] *= factor;
}

/* ---- single runs */

static void history_filtered_copy_run(const History *from, int m, History *to, int n) {
  const Filtered *old = filtered_of(from), *new = filtered_of(to);
  lanes_copy(old->prior.components * (int)history_evidence_entries(from->d), 1, old->forgotten + m,
             from->runs, new->forgotten + n, to->runs);
  if (old->keep > 0) history_filtered_copy_rows(&old->recent, m, 0, &filtered_of(to)->recent, n);
}

/* Returns the size of a run's state: for each component its packed evidence, followed by log s_c; then the
 * number of rows, and the rows. */
static size_t history_filtered_size(const History *history) {
  const Filtered *self = filtered_of(history);
  const size_t own = (size_t)self->prior.components * (size_t)HISTORY_EVIDENCE_SIZE(history->d);
  return own + (self->keep > 0 ? 1 + (size_t)self->capacity * ((size_t)history->d + 1) : 0);
}

static void history_filtered_store(const History *history, int run, double *out) {
  const Filtered *self = filtered_of(history);
  for (int c = 0; c < self->prior.components; c++) {
    out = history_pack(history, run, history_forgotten_precision(history, c),
                       history_forgotten_vector(history, c), out);
    *out++ = history_forgotten_scale(history, c)[run];
  }
  if (self->keep == 0) return;
  const int rows = history_rows(&self->recent)->length[run];
  *out++ = rows;
  for (int l = 0, d = history->d; l < rows; l++, out += d + 1)
    out[d] = history_observation(&self->recent, run, l, 1, out);
}

static void history_filtered_load(History *history, int run, const double *from) {
  Filtered *self = filtered_of(history);
  for (int c = 0; c < self->prior.components; c++) {
    from = history_unpack(history, run, from, history_forgotten_precision(history, c),
                          history_forgotten_vector(history, c));
    history_forgotten_scale(history, c)[run] = *from++;
  }
  if (self->keep == 0) return;
  const int rows = (int)*from++;
  for (int l = 0, d = history->d; l < rows; l++, from += d + 1)
    history_rows_add(&self->recent, run, 1, from, from[d]);
  if (rows > self->recent.rounds) self->recent.rounds = rows;
}

const HistoryOps history_form_filtered = {.size = sizeof(Filtered),
                                          .reserve = history_filtered_reserve,
                                          .append = history_filtered_append,
                                          .clear = history_filtered_clear,
                                          .copy_run = history_filtered_copy_run,
                                          .discount = history_filtered_discount,
                                          .state = history_filtered_size,
                                          .store = history_filtered_store,
                                          .load = history_filtered_load};
