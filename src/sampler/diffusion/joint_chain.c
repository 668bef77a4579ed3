#include "sampler/diffusion/joint_chain.h"

#include "core/linalg.h"
#include "core/memory.h"
#include "core/simd.h"
#include "core/vector_algebra.h"
#include "model/likelihood.h"
#include "sampler/cost.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How near to the mode IRLS goes, in standard deviations of the stage. The draw moves by one of them. */
static const double MODE_TOLERANCE = 1e-4;

/* ---- create, destroy */

static size_t lane_row_count(size_t d) { return 4 * d + 2 * d * d + 1; }

/* What the algebra of one strip works on: three matrices and six vectors. In two dimensions, those of the
 * paper, it has a copy of its own, whose loops the compiler unrolls and whose numbers it keeps in registers.
 */
#define STRIP_NUMBERS(d) (3 * (d) * (d) + 6 * (d))

static Status allocate_lanes(JointChain *self) {
  const size_t d = (size_t)self->d, n = (size_t)self->capacity;
  NEW(self->lane_rows, lane_row_count(d) * n);
  NEW(self->precision, d * d * n);
  NEW(self->vector, d * n);
  NEW(self->matrix, d * d * n);
  NEW(self->column, d * n);
  NEW(self->strip, STRIP_NUMBERS(d));
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
  if (likelihood_is_conjugate(setup->likelihood)) return STATUS_OK;
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
  free(self->strip);
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
  self->known = 0;
  lay_out(self, (size_t)view->lanes);
  memset(self->s, 0, vector * sizeof *self->s);
  history_evidence_or_zero(view, self->precision, self->vector);
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

/* ---- given the history: Lambda, b; then W, u */

/* out[lanes] += s' (b - 1/2 image). */
SIMD_CLONES
static void add_quadratic(int d, int lanes, const double *restrict s, const double *restrict b,
                          const double *restrict image, double *restrict out) {
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      out[n] += s[i * lanes + n] * (b[i * lanes + n] - 0.5 * image[i * lanes + n]);
}

SIMD_CLONES
static bool any_rescue(int lanes, const double *rescues) {
  SpecialReal sum = {0}, x;
  for (Strip strip = strip_begin(lanes); strip.count > 0; strip_next(&strip)) {
    strip_load(strip, 1, rescues, &x);
    sum += x;
  }
  double total = 0;
  for (int k = 0; k < SPECIAL_VECTOR; k++) total += sum[k];
  return total > 0;
}

/* What strip_cholesky rescued. */
static void count_rescues(const JointChain *self, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  if (!any_rescue(view->lanes, self->rescues)) return;
  for (int n = 0; n < view->lanes; n++)
    fallbacks[(view->first + n) / view->draws] += (int64_t)self->rescues[n];
}

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

/* W = L^-1 with L L' = M = I + R' Lambda R, and u = W' W R' (b - Lambda s0_hat). */
STRIP_INLINE void condition_strips(JointChain *self, const int d, SpecialReal *scratch) {
  SpecialReal *root = scratch, *precision = root + d * d, *m = precision + d * d, *r = m + d * d;
  SpecialReal *clean = r + d, *image = clean + d, *error = image + d, *u = error + d, *inverse = u + d;
  for (Strip strip = strip_begin(self->view->lanes); strip.count > 0; strip_next(&strip)) {
    SpecialReal rescues = {0};
    strip_load(strip, d * d, self->basis, root);
    strip_load(strip, d, self->deviation, r);
    strip_load(strip, d * d, self->precision, precision);
    strip_load(strip, d, self->clean, clean);
    strip_load(strip, d, self->vector, u);
    strip_multiply(d, precision, clean, image);
    for (int i = 0; i < d; i++) u[i] -= image[i];
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) root[i * d + j] *= r[j];
    strip_multiply_transposed(d, root, u, error);
    for (int j = 0; j < d; j++) {
      for (int i = 0; i < d; i++) clean[i] = root[i * d + j];
      strip_multiply(d, precision, clean, image);
      strip_multiply_transposed(d, root, image, clean);
      clean[j] += 1;
      for (int i = 0; i < d; i++) m[i * d + j] = clean[i];
    }
    strip_cholesky(d, m, inverse, &rescues);
    strip_invert_triangle(d, m, inverse);
    strip_lower(d, m, error, image);
    strip_lower_transposed(d, m, image, u);
    strip_store(strip, d * d, m, self->factor);
    strip_store(strip, d, u, self->shift);
    strip_store(strip, 1, &rescues, self->rescues);
  }
}

SIMD_CLONES
static void condition(JointChain *self) {
  if (self->d == 2) {
    SpecialReal registers[STRIP_NUMBERS(2)];
    condition_strips(self, 2, registers);
  } else {
    condition_strips(self, self->d, self->strip);
  }
}

bool joint_chain_condition(JointChain *self, int t, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  const bool anew = clean_moments_due(&self->moments, self->known, t);
  if (anew) {
    clean_moments_at(&self->moments, t, view->lanes, self->s, self->clean, self->basis, self->deviation,
                     self->matrix, self->column);
    self->known = t;
  } else {
    clean_moments_carry(&self->moments, t, view->lanes, self->s, self->clean, self->deviation);
  }
  if (!likelihood_is_conjugate(view->history->likelihood) && view->history->rounds > 0)
    find_evidence(self, fallbacks);
  condition(self);
  count_rescues(self, fallbacks);
  return anew;
}

/* ---- densities */

void joint_chain_log_likelihood(JointChain *self, const double *s, double *out) {
  const HistoryView *view = self->view;
  const int d = self->d, lanes = view->lanes;
  double *image = self->matrix;
  memset(out, 0, (size_t)lanes * sizeof *out);
  if (likelihood_is_conjugate(view->history->likelihood)) {
    linalg_multiply_lanes(d, lanes, self->precision, s, image);
    add_quadratic(d, lanes, s, self->vector, image, out);
  } else if (view->history->rounds > 0) {
    history_log_likelihood(view, s, out, NULL);
  }
}

/* mode = m = s0_hat + R u. */
SIMD_CLONES
static void find_mode(JointChain *self, double *mode) {
  const int d = self->d;
  SpecialReal *q = self->strip, *r = q + d * d, *clean = r + d, *u = clean + d, *moved = u + d;
  for (Strip strip = strip_begin(self->view->lanes); strip.count > 0; strip_next(&strip)) {
    strip_load(strip, d * d, self->basis, q);
    strip_load(strip, d, self->deviation, r);
    strip_load(strip, d, self->clean, clean);
    strip_load(strip, d, self->shift, u);
    for (int i = 0; i < d; i++) u[i] *= r[i];
    strip_multiply(d, q, u, moved);
    for (int i = 0; i < d; i++) clean[i] += moved[i];
    strip_store(strip, d, clean, mode);
  }
}

/* log_evidence -= 1/2 |u|^2 + 1/2 log det M. */
SIMD_CLONES
static void add_mode_volume(JointChain *self) {
  const int d = self->d;
  SpecialReal *w = self->strip, *u = w + d * d;
  for (Strip strip = strip_begin(self->view->lanes); strip.count > 0; strip_next(&strip)) {
    SpecialReal sum = {0};
    strip_load(strip, 1, self->log_evidence, &sum);
    strip_load(strip, d * d, self->factor, w);
    strip_load(strip, d, self->shift, u);
    for (int i = 0; i < d; i++) sum -= 0.5 * u[i] * u[i];
    strip_add_log_diagonal(d, 1, w, &sum);
    strip_store(strip, 1, &sum, self->log_evidence);
  }
}

void joint_chain_evidence(JointChain *self) {
  double *mode = self->column;
  find_mode(self, mode);
  joint_chain_log_likelihood(self, mode, self->log_evidence);
  add_mode_volume(self);
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

/* In the coordinates whitened by Q diag(g) the law without history is N(0, I), that with it N(D u, K), K = (I
 * - D^2) + D W' W D: y = D u + T z with T T' = K. */
STRIP_INLINE void draw_strips(JointChain *self, Step step, const double *z, double *log_ratio, const int d,
                              SpecialReal *scratch) {
  SpecialReal *q = scratch, *w = q + d * d, *k = w + d * d, *share = k + d * d, *g = share + d;
  SpecialReal *y = g + d, *from = y + d, *s = from + d, *inverse = s + d;
  for (Strip strip = strip_begin(self->view->lanes); strip.count > 0; strip_next(&strip)) {
    SpecialReal rescues = {0}, ratio = {0};
    strip_load(strip, d, self->deviation, share);
    strip_load(strip, d * d, self->factor, w);
    for (int i = 0; i < d; i++) {
      SpecialReal scaled = step.of_clean * share[i], square = step.variance + scaled * scaled, root = square;
      special_inverse_root(&root);
      g[i] = square * root;
      share[i] = scaled * root;
      k[i * d + i] = step.variance * root * root;
    }
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++) {
        SpecialReal sum = w[i * d + i] * w[i * d + j];
        for (int l = i + 1; l < d; l++) sum += w[l * d + i] * w[l * d + j];
        sum *= share[i] * share[j];
        k[i * d + j] = i == j ? k[i * d + j] + sum : sum;
      }
    strip_cholesky(d, k, inverse, &rescues);
    strip_load(strip, d, z, from);
    strip_lower(d, k, from, y);
    strip_load(strip, d, self->shift, s);
    for (int i = 0; i < d; i++) y[i] += share[i] * s[i];
    if (log_ratio) {
      for (int i = 0; i < d; i++) ratio += 0.5 * (from[i] * from[i] - y[i] * y[i]);
      strip_add_log_diagonal(d, 1, k, &ratio);
      strip_store(strip, 1, &ratio, log_ratio);
    }
    for (int i = 0; i < d; i++) y[i] *= g[i];
    strip_load(strip, d * d, self->basis, q);
    strip_multiply(d, q, y, share);
    strip_load(strip, d, self->s, s);
    strip_load(strip, d, self->clean, from);
    for (int i = 0; i < d; i++) s[i] = step.of_state * s[i] + step.of_clean * from[i] + share[i];
    strip_store(strip, d, s, self->s);
    strip_store(strip, 1, &rescues, self->rescues);
  }
}

SIMD_CLONES
static void draw(JointChain *self, Step step, const double *z, double *log_ratio) {
  if (self->d == 2) {
    SpecialReal registers[STRIP_NUMBERS(2)];
    draw_strips(self, step, z, log_ratio, 2, registers);
  } else {
    draw_strips(self, step, z, log_ratio, self->d, self->strip);
  }
}

void joint_chain_draw(JointChain *self, int t, const double *z, double *log_ratio, int64_t *fallbacks) {
  draw(self, step_of(&self->chain->schedule, t), z, log_ratio);
  count_rescues(self, fallbacks);
}

/* With a likelihood that is not conjugate every stage has a mode, a few steps of IRLS from that of the stage
 * before. */
double joint_chain_cost(const SamplerWork *work, double lanes) {
  return work->stages * (cost_moments(work, lanes) + 0.6 * cost_mode(work, lanes));
}
