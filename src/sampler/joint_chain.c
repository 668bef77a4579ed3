#include "sampler/joint_chain.h"

#include "core/linalg.h"
#include "core/memory.h"
#include "core/simd.h"
#include "model/likelihood.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How near to the mode IRLS goes, in standard deviations of the stage. The draw moves by one of them. */
static const double MODE_TOLERANCE = 1e-4;

/* ---- create, destroy */

static size_t lane_row_count(size_t d) { return 4 * d + 2 * d * d + 1; }

static Status allocate_lanes(JointChain *self) {
  const size_t d = (size_t)self->d, n = (size_t)self->capacity;
  NEW(self->lane_rows, lane_row_count(d) * n);
  NEW(self->precision, d * d * n);
  NEW(self->vector, d * n);
  NEW(self->matrix, d * d * n);
  NEW(self->column, 2 * d * n);
  NEW(self->rescues, n);
  return STATUS_OK;
}

Status joint_chain_create(const SamplerSetup *setup, bool from_loss, int capacity, JointChain *out) {
  const Chain *chain = setup->prior->chain;
  const size_t d = (size_t)chain->d, n = (size_t)capacity;
  *out = (JointChain){.d = chain->d, .capacity = capacity, .chain = chain};
  if (d * d > INT_MAX / n)
    return status_set(STATUS_INPUT, "joint moments of %d lanes in %d dimensions are too large", capacity,
                      chain->d);
  TRY(clean_moments_create(setup->prior, from_loss, &out->moments));
  TRY(allocate_lanes(out));
  if (setup->likelihood->ops->conjugate) return STATUS_OK;
  NEW(out->prior_precision, d * d * n);
  NEW(out->prior_vector, d * n);
  return irls_create(out->d, capacity, MODE_TOLERANCE, &out->irls);
}

void joint_chain_destroy(JointChain *self) {
  clean_moments_destroy(&self->moments);
  irls_destroy(&self->irls);
  double *blocks[] = {self->precision, self->vector,          self->lane_rows,   self->matrix,
                      self->column,    self->prior_precision, self->prior_vector};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
  free(self->rescues);
}

/* ---- lanes */

/* Cut the block of lanes into rows for n lanes. */
static void lay_out(JointChain *self, size_t n) {
  const size_t d = (size_t)self->d, vector = d * n, matrix = d * vector;
  self->s = self->lane_rows;
  self->clean = self->s + vector;
  self->deviation = self->clean + vector;
  self->shift = self->deviation + vector;
  self->basis = self->shift + vector;
  self->factor = self->basis + matrix;
  self->log_evidence = self->factor + matrix;
}

void joint_chain_begin(JointChain *self, const HistoryView *view) {
  const size_t vector = (size_t)self->d * (size_t)view->lanes;
  ASSERT(view->lanes <= self->capacity);
  self->view = view;
  lay_out(self, (size_t)view->lanes);
  memset(self->s, 0, vector * sizeof *self->s);
  if (view->history->likelihood->ops->conjugate) {
    history_evidence(view->history, view->draws, view->first, view->lanes, view->shift, view->scale,
                     self->precision, self->vector);
  } else {
    memset(self->precision, 0, (size_t)self->d * vector * sizeof *self->precision);
    memset(self->vector, 0, vector * sizeof *self->vector);
  }
}

void joint_chain_copy_lanes(JointChain *self, const int *from) {
  const int lanes = self->view->lanes;
  const size_t rows = lane_row_count((size_t)self->d);
  double *copy = self->column;
  for (size_t k = 0; k < rows; k++) {
    double *row = self->lane_rows + k * (size_t)lanes;
    for (int n = 0; n < lanes; n++) copy[n] = row[from[n]];
    memcpy(row, copy, (size_t)lanes * sizeof *row);
  }
}

/* ---- small algebra */

/* x[n] *= a[n]. */
SIMD_CLONES
static void scale_by(size_t n, const double *restrict a, double *restrict x) {
  for (size_t k = 0; k < n; k++) x[k] *= a[k];
}

/* x[n] = a - x[n]. */
SIMD_CLONES
static void subtract_from(size_t n, const double *restrict a, double *restrict x) {
  for (size_t k = 0; k < n; k++) x[k] = a[k] - x[k];
}

/* x[n] = a x[n] + b y[n]. */
SIMD_CLONES
static void combine(size_t n, double a, double *restrict x, double b, const double *restrict y) {
  for (size_t k = 0; k < n; k++) x[k] = a * x[k] + b * y[k];
}

/* out[lanes] += factor |x|^2. */
SIMD_CLONES
static void add_square(int d, int lanes, double factor, const double *restrict x, double *restrict out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) out[n] += factor * x[i * lanes + n] * x[i * lanes + n];
}

/* out[lanes] += s' (b - 1/2 image). */
SIMD_CLONES
static void add_quadratic(int d, int lanes, const double *restrict s, const double *restrict b,
                          const double *restrict image, double *restrict out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      out[n] += s[i * lanes + n] * (b[i * lanes + n] - 0.5 * image[i * lanes + n]);
}

/* out[lanes] += factor log det L; the logarithms are of products of TOGETHER pivots, which lie between 1e-30
 * and 1e30. `product`[lanes] is scratch. */
static void add_log_determinant(int d, int lanes, double factor, const double *l, double *product,
                                double *out) {
  enum { TOGETHER = 8 };
  for (int first = 0; first < d; first += TOGETHER) {
    for (int n = 0; n < lanes; n++) product[n] = 1;
    for (int i = first; i < d && i < first + TOGETHER; i++)
      scale_by((size_t)lanes, l + (i * d + i) * lanes, product);
    for (int n = 0; n < lanes; n++) out[n] += factor * log(product[n]);
  }
}

/* y = R' x. */
static void to_whitened(const JointChain *self, const double *x, double *y) {
  linalg_multiply_transposed_lanes(self->d, self->view->lanes, self->basis, x, y);
  scale_by((size_t)(self->d * self->view->lanes), self->deviation, y);
}

static void factorise(JointChain *self, double *a, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  int total = 0;
  memset(self->rescues, 0, (size_t)view->lanes * sizeof *self->rescues);
  linalg_cholesky_lanes(self->d, view->lanes, a, self->rescues);
  for (int n = 0; n < view->lanes; n++) total += self->rescues[n];
  if (total == 0) return;
  for (int n = 0; n < view->lanes; n++) fallbacks[(view->first + n) / view->draws] += self->rescues[n];
}

/* ---- given the history: Lambda, b; then L, u */

/* p[d, d, lanes] = Q diag(1 / r^2) Q'. */
SIMD_CLONES
static void invert_covariance(int d, int lanes, const double *restrict q, const double *restrict r,
                              double *restrict p) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j < d; j++) {
      double *restrict p_ij = p + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++) p_ij[n] = 0;
      for (int k = 0; k < d; k++) {
        const double *restrict q_ik = q + (i * d + k) * lanes, *restrict q_jk = q + (j * d + k) * lanes,
                               *restrict r_k = r + k * lanes;
        for (int n = 0; n < lanes; n++) p_ij[n] += q_ik[n] * q_jk[n] / (r_k[n] * r_k[n]);
      }
    }
}

/* The evidence at the mode of N(s0_hat, C_t) times the likelihood. IRLS starts at s0_hat: the evidence of the
 * last stage was taken elsewhere, and under Poisson rewards it can lead to where exp(u) has no bounds. */
static void find_evidence(JointChain *self, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  const size_t vector = (size_t)self->d * (size_t)view->lanes;
  memset(self->precision, 0, (size_t)self->d * vector * sizeof *self->precision);
  memset(self->vector, 0, vector * sizeof *self->vector);
  invert_covariance(self->d, view->lanes, self->basis, self->deviation, self->prior_precision);
  linalg_multiply_lanes(self->d, view->lanes, self->prior_precision, self->clean, self->prior_vector);
  irls_solve(&self->irls, view, self->prior_precision, self->prior_vector, self->precision, self->vector,
             self->column, fallbacks);
}

/* L with L L' = M = I + R' Lambda R. */
static void factorise_whitened(JointChain *self, int64_t *fallbacks) {
  const int d = self->d, lanes = self->view->lanes;
  double *column = self->column, *image = column + d * lanes;
  for (int j = 0; j < d; j++) {
    for (int i = 0; i < d; i++) {
      memcpy(column + i * lanes, self->basis + (i * d + j) * lanes, (size_t)lanes * sizeof *column);
      scale_by((size_t)lanes, self->deviation + j * lanes, column + i * lanes);
    }
    linalg_multiply_lanes(d, lanes, self->precision, column, image);
    to_whitened(self, image, column);
    for (int n = 0; n < lanes; n++) column[j * lanes + n] += 1;
    for (int i = 0; i < d; i++)
      memcpy(self->factor + (i * d + j) * lanes, column + i * lanes, (size_t)lanes * sizeof *column);
  }
  factorise(self, self->factor, fallbacks);
}

void joint_chain_condition(JointChain *self, int t, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  const int d = self->d, lanes = view->lanes;
  clean_moments_at(&self->moments, t, lanes, self->s, self->clean, self->basis, self->deviation, self->matrix,
                   self->column);
  if (!view->history->likelihood->ops->conjugate && view->history->rounds > 0) find_evidence(self, fallbacks);
  factorise_whitened(self, fallbacks);
  double *error = self->column;
  linalg_multiply_lanes(d, lanes, self->precision, self->clean, error);
  subtract_from((size_t)(d * lanes), self->vector, error); /* b - Lambda s0_hat */
  to_whitened(self, error, self->shift);
  linalg_solve_lanes(d, lanes, self->factor, self->shift);
}

/* ---- densities */

void joint_chain_log_likelihood(JointChain *self, const double *s, double *out) {
  const HistoryView *view = self->view;
  const int d = self->d, lanes = view->lanes;
  double *image = self->matrix;
  memset(out, 0, (size_t)lanes * sizeof *out);
  if (view->history->likelihood->ops->conjugate) {
    linalg_multiply_lanes(d, lanes, self->precision, s, image);
    add_quadratic(d, lanes, s, self->vector, image, out);
  } else if (view->history->rounds > 0) {
    history_log_likelihood(view, s, out, NULL);
  }
}

/* log L(m) - 1/2 |u|^2 - 1/2 log det M. */
void joint_chain_evidence(JointChain *self) {
  const int d = self->d, lanes = self->view->lanes;
  double *deviation = self->column, *mode = deviation + d * lanes;
  memcpy(deviation, self->shift, (size_t)(d * lanes) * sizeof *deviation);
  scale_by((size_t)(d * lanes), self->deviation, deviation);
  linalg_multiply_lanes(d, lanes, self->basis, deviation, mode);
  combine((size_t)(d * lanes), 1, mode, 1, self->clean);
  joint_chain_log_likelihood(self, mode, self->log_evidence);
  add_square(d, lanes, -0.5, self->shift, self->log_evidence);
  add_log_determinant(d, lanes, -1, self->factor, self->column, self->log_evidence);
}

/* ---- the step */

typedef struct {
  double of_clean, of_state, variance; /* w0, wt, beta_tilde */
} Step;

static Step step_of(const Schedule *schedule, int t) {
  const double *bar = schedule->alpha_bar;
  if (t > schedule->stages) return (Step){sqrt(bar[t - 1]), 0, 1 - bar[t - 1]};
  Step step = {.variance = schedule->beta_tilde[t]};
  schedule_bridge_factors(schedule, t, &step.of_clean, &step.of_state);
  return step;
}

/* w[d, d, lanes] <- L^-1 in the lower triangle; `column`[d, lanes] is scratch. */
static void invert_factor(int d, int lanes, const double *l, double *w, double *column) {
  for (int j = 0; j < d; j++) {
    memset(column, 0, (size_t)(d * lanes) * sizeof *column);
    for (int n = 0; n < lanes; n++) column[j * lanes + n] = 1;
    linalg_forward_lanes(d, lanes, l, column);
    for (int i = j; i < d; i++)
      memcpy(w + (i * d + j) * lanes, column + i * lanes, (size_t)lanes * sizeof *column);
  }
}

/* D = w0 r / g and g. */
SIMD_CLONES
static void whitening(int n, Step step, const double *restrict r, double *restrict share,
                      double *restrict g) {
  for (int k = 0; k < n; k++) {
    double scaled = step.of_clean * r[k];
    g[k] = sqrt(step.variance + scaled * scaled);
    share[k] = scaled / g[k];
  }
}

/* Lower triangle of k[d, d, lanes] = (I - D^2) + D W' W D from the lower triangle of W = L^-1. */
SIMD_CLONES
static void whitened_covariance(int d, int lanes, double variance, const double *restrict share,
                                const double *restrict g, const double *restrict w, double *restrict k) {
  for (int i = 0; i < d; i++)
    for (int j = 0; j <= i; j++) {
      const double *restrict share_i = share + i * lanes, *restrict share_j = share + j * lanes;
      double *restrict k_ij = k + (i * d + j) * lanes;
      for (int n = 0; n < lanes; n++) k_ij[n] = 0;
      for (int l = i; l < d; l++) {
        const double *restrict w_i = w + (l * d + i) * lanes, *restrict w_j = w + (l * d + j) * lanes;
        for (int n = 0; n < lanes; n++) k_ij[n] += w_i[n] * w_j[n];
      }
      for (int n = 0; n < lanes; n++) k_ij[n] *= share_i[n] * share_j[n];
    }
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      k[(i * d + i) * lanes + n] += variance / (g[i * lanes + n] * g[i * lanes + n]);
}

/* y[d, lanes] = T z + D u with T lower triangular. */
SIMD_CLONES
static void whitened_draw(int d, int lanes, const double *restrict t, const double *restrict z,
                          const double *restrict share, const double *restrict u, double *restrict y) {
  for (int i = 0; i < d; i++) {
    double *restrict y_i = y + i * lanes;
    for (int n = 0; n < lanes; n++) y_i[n] = share[i * lanes + n] * u[i * lanes + n];
    for (int j = 0; j <= i; j++) {
      const double *restrict t_ij = t + (i * d + j) * lanes, *restrict z_j = z + j * lanes;
      for (int n = 0; n < lanes; n++) y_i[n] += t_ij[n] * z_j[n];
    }
  }
}

void joint_chain_draw(JointChain *self, int t, double *z, double *log_ratio, int64_t *fallbacks) {
  const int d = self->d, lanes = self->view->lanes, count = d * lanes;
  const Step step = step_of(&self->chain->schedule, t);
  double *share = self->column, *g = share + count, *whitened = self->matrix;
  invert_factor(d, lanes, self->factor, self->matrix, self->column);
  whitening(count, step, self->deviation, share, g);
  whitened_covariance(d, lanes, step.variance, share, g, self->matrix, self->factor);
  factorise(self, self->factor, fallbacks);
  whitened_draw(d, lanes, self->factor, z, share, self->shift, whitened);
  if (log_ratio) {
    memset(log_ratio, 0, (size_t)lanes * sizeof *log_ratio);
    add_square(d, lanes, 0.5, z, log_ratio);
    add_square(d, lanes, -0.5, whitened, log_ratio);
    add_log_determinant(d, lanes, 1, self->factor, share, log_ratio);
  }
  scale_by((size_t)count, g, whitened);
  linalg_multiply_lanes(d, lanes, self->basis, whitened, z);
  combine((size_t)count, step.of_state, self->s, step.of_clean, self->clean);
  combine((size_t)count, 1, self->s, 1, z);
}
