/* The evidence of a block of runs under a conjugate likelihood (DiffTS paper, equation 3). */
#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_internal.h"
#include "model/history/history_root_internal.h"
#include "model/mixture/mixture_evidence.h"

#include <math.h>
#include <string.h>

typedef struct {
  struct HistoryContent common;
  /* In its only block of evidence: */
  double *precision; /* [d, d, B]: sum phi phi' / sigma^2 */
  double *vector; /* [d, B]: sum phi y / sigma^2 */
  double *reward_squares; /* [B]: sum y^2 / sigma^2 */
  EvidenceRoots roots; /* of the runs whose evidence is very precise */
} Evidence;

static Evidence *evidence_of(const History *history) {
  ASSERT(history->ops == &history_form_evidence);
  return (Evidence *)history->content;
}

static Status evidence_reserve(History *history, int rounds) {
  Evidence *self = evidence_of(history);
  const size_t vectors = (size_t)history->d * (size_t)history->runs;
  (void)rounds; /* memory does not grow with them */
  if (self->precision) return STATUS_OK;
  self->precision = history_block(history, 0);
  self->vector = self->precision + vectors * (size_t)history->d;
  self->reward_squares = self->vector + vectors;
  return history_root_create(history->memory, history->d, history->runs, &self->roots);
}

static void evidence_clear(History *history) {
  const Evidence *self = evidence_of(history);
  history_root_clear(&self->roots, history->runs);
}

/* Computes sum[run[n]] += factor a[n] b[n]; in a bandit the lanes are neighbouring runs. */
INLINE void history_add_product(int count, const int *restrict run, double factor, const double *restrict a,
                                const double *restrict b, double *restrict sum) {
  double *restrict to = sum + run[0];
  if (run[count - 1] - run[0] == count - 1)
    for (int n = 0; n < count; n++) to[n] += factor * a[n] * b[n];
  else
    for (int n = 0; n < count; n++) sum[run[n]] += factor * a[n] * b[n];
}

/* Appends one observation to a history of one run: the same products, row by row. */
SIMD_CLONES
static void history_evidence_append_one(size_t d, const Evidence *self, double weight,
                                        const double *restrict phi, double y) {
  double *restrict vector = self->vector;
  for (size_t i = 0; i < d; i++) {
    const double own = phi[i], weighted = weight * own;
    double *restrict row = self->precision + i * d;
    for (size_t j = 0; j < i; j++) row[j] += weight * phi[j] * own;
    for (size_t j = i; j < d; j++) row[j] += weighted * phi[j];
    vector[i] += weighted * y;
  }
  self->reward_squares[0] += weight * y * y;
}

/* Appends one observation to each of the latest runs. Both triangles multiply the same factors in the same
 * order, so the precision stays symmetric to the last bit. */
SIMD_CLONES
static void history_evidence_append(const History *history, const Evidence *self, double weight,
                                    const double *phi, const double *y) {
  const size_t d = (size_t)history->d, columns = (size_t)self->common.columns,
               count = (size_t)history->each_round;
  const int lanes = history->each_round, *run = self->common.latest;
  if (columns == 1) {
    history_evidence_append_one(d, self, weight, phi, y[0]);
    return;
  }
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j < d; j++) {
      const size_t low = i < j ? i : j, high = i < j ? j : i;
      history_add_product(lanes, run, weight, phi + low * count, phi + high * count,
                          self->precision + (i * d + j) * columns);
    }
    history_add_product(lanes, run, weight, phi + i * count, y, self->vector + i * columns);
  }
  history_add_product(lanes, run, weight, y, y, self->reward_squares);
}

static double history_run_trace(const History *history, size_t run) {
  const Evidence *self = evidence_of(history);
  const size_t d = (size_t)history->d;
  double sum = 0;
  for (size_t i = 0; i < d; i++) sum += self->precision[i * (d + 1) * (size_t)self->common.columns + run];
  return sum;
}

/* Gives a run its root, of what it has observed so far. */
static void evidence_start_root(const History *history, int run) {
  const Evidence *self = evidence_of(history);
  const size_t d = (size_t)history->d, n = d + 1, columns = (size_t)self->common.columns, b = (size_t)run;
  double *sums = self->roots.sums;
  for (size_t i = 0; i < d; i++) {
    for (size_t j = 0; j < d; j++) sums[i * n + j] = self->precision[(i * d + j) * columns + b];
    sums[i * n + d] = sums[d * n + i] = self->vector[i * columns + b];
  }
  sums[n * n - 1] = self->reward_squares[b];
  history_root_start(&self->roots, run, history_run_trace(history, b));
}

/* Gives a run that takes its evidence from elsewhere a root if that is precise enough, and no other. */
static void evidence_restart_root(const History *history, int run) {
  const Evidence *self = evidence_of(history);
  self->roots.from[run] = -1;
  if (history_run_trace(history, (size_t)run) > ROOT_FROM) evidence_start_root(history, run);
}

/* Appends the round's observations to the roots, before the evidence includes them, and then to that. */
static void evidence_append(History *history, const int *arm, const double *phi, const double *y) {
  const Evidence *self = evidence_of(history);
  const EvidenceRoots *roots = &self->roots;
  const size_t d = (size_t)history->d, count = (size_t)history->each_round;
  const double weight = 1 / (history->likelihood->noise * history->likelihood->noise);
  for (size_t m = 0; m < count; m++) {
    const int run = self->common.latest[m];
    double square = 0;
    if (arm && arm[m] < 0) continue;
    for (size_t i = 0; i < d; i++) square += phi[i * count + m] * phi[i * count + m];
    if (!history_root_has(roots, run)) {
      if (!(history_run_trace(history, (size_t)run) + weight * square > ROOT_FROM)) continue;
      evidence_start_root(history, run);
    }
    for (size_t i = 0; i < d; i++) roots->row[i] = phi[i * count + m] / history->likelihood->noise;
    roots->row[d] = y[m] / history->likelihood->noise;
    history_root_add(roots, run);
  }
  history_evidence_append(history, self, weight, phi, y);
}

static void evidence_copy_run(const History *from, int m, History *to, int n) {
  history_root_copy(&evidence_of(from)->roots, m, &evidence_of(to)->roots, n);
}

static void evidence_discount(History *history, double factor) {
  history_root_discount(&evidence_of(history)->roots, history->runs, factor);
}

static double evidence_squares(const History *history, int run) {
  const Evidence *self = evidence_of(history);
  const double variance = history->likelihood->noise * history->likelihood->noise;
  double sum = 0;
  for (int i = 0; i < history->d; i++)
    sum += variance * self->precision[(i * history->d + i) * self->common.columns + run];
  return sum;
}

/* Computes to[n] = factor a[run[n]]; in a bandit the lanes are neighbouring runs. */
INLINE void take_lanes(int count, const int *restrict run, double factor, const double *restrict a,
                       double *restrict to) {
  const double *restrict from = a + run[0];
  if (run[count - 1] - run[0] == count - 1)
    for (int n = 0; n < count; n++) to[n] = factor * from[n];
  else
    for (int n = 0; n < count; n++) to[n] = factor * a[run[n]];
}

/* Computes the evidence of a chunk of lanes, where lane n belongs to run[n], in ascending order. In z the log
 * likelihood is -1/2 z' S A S z + z' S (b - A shift), with S = diag(scale) and A = Lambda. */
SIMD_CLONES
static void history_evidence_chunk(const HistoryView *view, int count, const int *restrict run,
                                   double *restrict precision, double *restrict vector) {
  const Evidence *self = evidence_of(view->history);
  const size_t d = (size_t)view->history->d, columns = (size_t)self->common.columns,
               stride = (size_t)view->lanes;
  const double temper = view->history->temper, *shift = view->shift, *scale = view->scale;
  for (size_t i = 0; i < d; i++) {
    double s_i = scale ? scale[i] : 1;
    const double *b = self->vector + i * columns;
    double *restrict b_z = vector + i * stride;
    take_lanes(count, run, 1, b, b_z);
    for (size_t j = 0; j < d; j++) {
      const double *a = self->precision + (i * d + j) * columns;
      take_lanes(count, run, temper * s_i * (scale ? scale[j] : 1), a, precision + (i * d + j) * stride);
      if (!shift) continue;
      for (int n = 0; n < count; n++) b_z[n] -= shift[j] * a[run[n]];
    }
    for (int n = 0; n < count; n++) b_z[n] *= temper * s_i;
  }
}

/* Returns whether the evidence is the whole log likelihood. */
static bool history_is_quadratic(const History *history) {
  return history->rounds == 0 || history->ops == &history_form_evidence || history_is_diagonal(history);
}

bool history_evidence(const HistoryView *view, double *precision, double *vector) {
  const size_t vectors = (size_t)view->history->d * (size_t)view->lanes;
  history_check_view(view);
  if (history_is_diagonal(view->history)) {
    history_diagonal_expand(view, precision, vector);
    return true;
  }
  if (view->history->ops != &history_form_evidence) {
    memset(precision, 0, vectors * (size_t)view->history->d * sizeof *precision);
    memset(vector, 0, vectors * sizeof *vector);
    return history_is_quadratic(view->history);
  }
  for (int from = 0; from < view->lanes; from += CHUNK_LANES) {
    int run[CHUNK_LANES], count = view->lanes - from < CHUNK_LANES ? view->lanes - from : CHUNK_LANES;
    for (int n = 0; n < count; n++) run[n] = (view->first + from + n) / view->draws;
    history_evidence_chunk(view, count, run, precision + from, vector + from);
  }
  return true;
}

void history_residual(const HistoryView *view, double *residual) {
  const History *history = view->history;
  if (history_is_diagonal(history)) {
    for (int n = 0; n < view->lanes; n++) residual[n] = history_diagonal_residual(view);
    return;
  }
  if (history->ops != &history_form_evidence) {
    memset(residual, 0, (size_t)view->lanes * sizeof *residual);
    return;
  }
  const Evidence *self = evidence_of(history);
  const int d = history->d, columns = self->common.columns;
  const double *shift = view->shift;
  for (int n = 0; n < view->lanes; n++) {
    const int run = (view->first + n) / view->draws;
    double sum = self->reward_squares[run];
    if (shift)
      for (int i = 0; i < d; i++) {
        sum -= 2 * shift[i] * self->vector[i * columns + run];
        for (int j = 0; j < d; j++) sum += shift[i] * self->precision[(i * d + j) * columns + run] * shift[j];
      }
    residual[n] = history->temper * fmax(sum, 0);
  }
}

void history_set_evidence(History *history, int rounds, double factor, const double *precision,
                          const double *vector) {
  const Evidence *self = evidence_of(history);
  const size_t vectors = (size_t)history->d * (size_t)history->runs;
  ASSERT(history->runs == self->common.columns);
  for (size_t n = 0; n < vectors * (size_t)history->d; n++) self->precision[n] = factor * precision[n];
  for (size_t n = 0; n < vectors; n++) self->vector[n] = factor * vector[n];
  for (int n = 0; n < history->runs; n++) {
    self->common.observations[n] = rounds;
    self->reward_squares[n] = 0;
    evidence_restart_root(history, n);
  }
  history->rounds = rounds;
}

static void evidence_load(History *history, int run, const double *rest) {
  (void)rest;
  evidence_restart_root(history, run);
}

const HistoryOps history_form_evidence = {.size = sizeof(Evidence),
                                          .reserve = evidence_reserve,
                                          .append = evidence_append,
                                          .clear = evidence_clear,
                                          .copy_run = evidence_copy_run,
                                          .discount = evidence_discount,
                                          .load = evidence_load,
                                          .squares = evidence_squares};

/* ---- a mixture given the evidence */

/* Ratio of evidence to prior above which the root is used: sums still have 7 digits of the prior there. */
static const double BEYOND = 1e9;

/* Returns whether the root of a run takes the place of sums. */
static bool evidence_is_beyond(const History *history, int run, const Mixture *mixture) {
  return history_root_has(&evidence_of(history)->roots, run) &&
         history->temper * history_run_trace(history, (size_t)run) * mixture->widest > BEYOND;
}

/* Does the work of history_condition in those lanes where the root takes the place of sums, whose jitters
 * become 0. */
static void evidence_condition_beyond(const HistoryView *view, const Mixture *mixture, int c, int *jitters,
                                      const Conditioned *out) {
  const History *history = view->history;
  if (history->ops != &history_form_evidence) return;
  const EvidenceRoots *roots = &evidence_of(history)->roots;
  if (!history_root_any(roots, view->first, view->lanes)) return;
  for (int n = 0; n < view->lanes; n++) {
    const Conditioned own = {.factor = out->factor + n,
                             .whitened = out->whitened + n,
                             .log_weight = out->log_weight + n,
                             .common = out->common + n};
    if (!evidence_is_beyond(history, view->first + n, mixture)) continue;
    history_root_condition(roots, history->temper, view->first + n, mixture, c, view->lanes, &own);
    jitters[n] = 0;
  }
}

void history_condition(const HistoryView *view, EvidenceLanes evidence, const Mixture *mixture, int c,
                       double constant, const Conditioned *out) {
  const int d = mixture->d, lanes = view->lanes;
  int jitters[CHUNK_LANES] = {0};
  ASSERT(view->draws == 1 && !view->shift && !view->scale && lanes <= CHUNK_LANES);
  mixture_evidence_add(mixture, c, lanes, evidence.precision, evidence.vector, out->factor, out->whitened);
  linalg_factor_cholesky(d, lanes, out->factor, jitters);
  linalg_factor_forward(d, lanes, out->factor, out->whitened);
  mixture_evidence_weigh(d, lanes, constant, out->factor, out->whitened, out->log_weight);
  memset(out->common, 0, (size_t)lanes * sizeof *out->common);
  evidence_condition_beyond(view, mixture, c, jitters, out);
  for (int n = 0; n < lanes; n++) out->jitters[n] += jitters[n];
}

bool history_digits(const History *history, const Mixture *mixture, PriorDigits *digits, double *outweighs) {
  bool lacking = false;
  if (history->ops != &history_form_evidence) return false;
  const EvidenceRoots *roots = &evidence_of(history)->roots;
  if (!history_root_any(roots, 0, history->runs)) return false;
  for (int run = 0; run < history->runs; run++) {
    digits[run] = DIGITS_KEPT;
    outweighs[run] = 1;
    if (!evidence_is_beyond(history, run, mixture)) continue;
    digits[run] = history_root_digits(roots, history->temper, run, mixture, &outweighs[run]);
    lacking = lacking || digits[run] != DIGITS_KEPT;
  }
  return lacking;
}

/* ---- in the eigenbasis of the precision */

void evidence_basis_apply(const EvidenceBasis *basis, int d, int lanes, bool transpose, const double *x,
                          double *y) {
  if (basis->identity)
    memcpy(y, x, (size_t)d * (size_t)lanes * sizeof *y);
  else if (basis->shared)
    linalg_lanes_multiply_shared(d, lanes, transpose, basis->u, x, y);
  else if (transpose)
    linalg_lanes_multiply_transposed(d, lanes, basis->u, x, y);
  else
    linalg_lanes_multiply(d, lanes, basis->u, x, y);
}

bool evidence_decompose(const HistoryView *view, const double *root, double *matrix, double *column,
                        EvidenceBasis *basis, double *q, double *b) {
  const int d = view->history->d, first_run = view->first / view->draws,
            runs = (view->first + view->lanes - 1) / view->draws - first_run + 1;
  const HistoryView in_theta = history_view(view->history, 1, first_run, runs),
                    each = history_view_in(in_theta, view->shift, view->scale);
  if (!history_is_quadratic(view->history)) return false;
  basis->identity = history_is_diagonal(view->history) && !root;
  if (basis->identity) {
    history_diagonal(view, q, b);
    return true;
  }
  history_evidence(&each, matrix, column);
  if (root) {
    linalg_lanes_congruence(d, runs, true, root, matrix, basis->u);
    linalg_lanes_multiply_shared(d, runs, true, root, column, b);
    memcpy(column, b, (size_t)(d * runs) * sizeof *b);
  }
  linalg_factor_eigen(d, runs, matrix, basis->u, q);
  for (int k = 0; k < d * runs; k++) q[k] = fmax(q[k], 0); /* rounding */
  linalg_lanes_multiply_transposed(d, runs, basis->u, column, b);
  history_repeat_runs(view, first_run, runs, d, q, matrix);
  history_repeat_runs(view, first_run, runs, d, b, matrix);
  basis->shared = runs == 1;
  if (!basis->shared) history_repeat_runs(view, first_run, runs, d * d, basis->u, matrix);
  return true;
}

bool evidence_decompose_lanes(const HistoryView *view, double *matrix, double *column, double *u, double *q,
                              double *b) {
  const int d = view->history->d;
  EvidenceBasis basis = {.u = u};
  if (!evidence_decompose(view, NULL, matrix, column, &basis, q, b)) return false;
  if (basis.shared) history_repeat_runs(view, view->first / view->draws, 1, d * d, u, matrix);
  return true;
}
