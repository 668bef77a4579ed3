#define REAL_WIDTH SIMD_DOUBLES
#include "sampler/diffusion/joint_chain.h"

#include "core/linalg/linalg.h"
#include "core/linalg/linalg_real.h"
#include "core/real.h"
#include "model/history/history_passes.h"

#include <limits.h>

/* How close to the mode IRLS gets, in standard deviations of the stage. The draw itself moves by one of
 * them. */
static const double MODE_TOLERANCE = 1e-4;

/* ---- creation */

static size_t joint_chain_lane_rows(size_t d) { return 4 * d + 2 * d * d + 1; }

/* Scratch for the algebra of a vector of lanes: three matrices and six vectors. Two dimensions, as in the
 * paper, have a separate copy of the algebra, whose loops the compiler unrolls and whose numbers it keeps in
 * registers. */
#define SCRATCH_VECTORS(d) (3 * (d) * (d) + 6 * (d))

Status joint_chain_create(Arena *memory, const SamplerSetup *setup, bool from_loss, int capacity,
                          JointChain *out) {
  const Chain *chain = setup->prior->chain;
  const size_t d = (size_t)chain->d, n = (size_t)capacity;
  *out = (JointChain){.d = chain->d, .capacity = capacity, .chain = chain};
  if (d * d > INT_MAX / n)
    return status_set(STATUS_INPUT, "joint moments of %d lanes in %d dimensions are too large", capacity,
                      chain->d);
  TRY(diffusion_moments_create(memory, setup->prior, from_loss, &out->moments));
  ALLOCATE(memory, out->lane_rows, joint_chain_lane_rows(d) * n);
  ALLOCATE_ARRAYS(memory, d * d * n, &out->precision, &out->matrix);
  ALLOCATE_ARRAYS(memory, d * n, &out->vector, &out->column);
  ALLOCATE(memory, out->vectors, SCRATCH_VECTORS(d) * REAL_WIDTH);
  ALLOCATE(memory, out->jitters, n);
  const int lanes = likelihood_rows(setup->likelihood, capacity);
  ALLOCATE(memory, out->prior_precision, d * d * (size_t)lanes);
  ALLOCATE(memory, out->prior_vector, d * (size_t)lanes);
  return irls_create(memory, out->d, lanes, MODE_TOLERANCE, &out->irls);
}

/* ---- lanes */

/* Divides the block lane_rows into the arrays of these lanes. */
void joint_chain_begin(JointChain *self, const HistoryView *view) {
  const size_t d = (size_t)self->d, vector = d * (size_t)view->lanes, matrix = d * vector;
  ASSERT(view->lanes <= self->capacity);
  self->view = view;
  self->known = 0;
  self->s = self->lane_rows;
  self->denoised = self->s + vector;
  self->deviation = self->denoised + vector;
  self->shift = self->deviation + vector;
  self->basis = self->shift + vector;
  self->factor = self->basis + matrix;
  self->log_marginal = self->factor + matrix;
  memset(self->s, 0, vector * sizeof *self->s);
  self->whole = history_evidence(view, self->precision, self->vector);
}

void joint_chain_copy_lanes(JointChain *self, const int *from) {
  const int lanes = self->view->lanes;
  const size_t rows = joint_chain_lane_rows((size_t)self->d);
  double *copy = self->column;
  for (size_t k = 0; k < rows; k++) {
    double *row = self->lane_rows + k * (size_t)lanes;
    for (int n = 0; n < lanes; n++) copy[n] = row[from[n]];
    memcpy(row, copy, (size_t)lanes * sizeof *row);
  }
}

/* ---- given the history: Lambda, b; then W, u */

/* Counts the pivots that linalg_real_cholesky jittered among the fallbacks. */
static void joint_chain_count_jitters(const JointChain *self, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  for (int n = 0; n < view->lanes; n++)
    if (self->jitters[n] > 0) fallbacks[(view->first + n) / view->draws] += (int64_t)self->jitters[n];
}

/* Finds the evidence at the mode of N(s0_hat, C_t) times the likelihood. IRLS starts at s0_hat: the evidence
 * of the last stage was taken at another point, and with Poisson rewards it can lead to where exp(u) is
 * unbounded. */
static void joint_chain_find_evidence(JointChain *self, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  const size_t vector = (size_t)self->d * (size_t)view->lanes;
  memset(self->precision, 0, (size_t)self->d * vector * sizeof *self->precision);
  memset(self->vector, 0, vector * sizeof *self->vector);
  for (size_t k = 0; k < vector; k++) self->column[k] = 1 / (self->deviation[k] * self->deviation[k]);
  linalg_factor_spectral(self->d, view->lanes, self->basis, self->column, self->prior_precision);
  linalg_lanes_multiply(self->d, view->lanes, self->prior_precision, self->denoised, self->prior_vector);
  const PriorLanes prior = {.precision = self->prior_precision, .vector = self->prior_vector};
  const EvidenceLanes evidence = {.precision = self->precision, .vector = self->vector};
  irls_solve(&self->irls, view, prior, evidence, self->column, fallbacks);
}

/* Computes W = L^-1 with L L' = M = I + R' Lambda R, and u = W' W R' (b - Lambda s0_hat). */
INLINE void condition_vectors(JointChain *self, const int d, Real *scratch) {
  Real *root = scratch, *precision = root + d * d, *m = precision + d * d, *r = m + d * d;
  Real *denoised = r + d, *image = denoised + d, *error = image + d, *u = error + d, *inverse = u + d;
  for (RealLanes at = real_begin(self->view->lanes); at.count > 0; real_next(&at)) {
    Real jitters = {0};
    real_load(at, d * d, self->basis, root);
    real_load(at, d, self->deviation, r);
    real_load(at, d * d, self->precision, precision);
    real_load(at, d, self->denoised, denoised);
    real_load(at, d, self->vector, u);
    linalg_real_multiply(d, precision, denoised, image);
    for (int i = 0; i < d; i++) u[i] -= image[i];
    for (int i = 0; i < d; i++)
      for (int j = 0; j < d; j++) root[i * d + j] *= r[j];
    linalg_real_multiply_transposed(d, root, u, error);
    for (int j = 0; j < d; j++) {
      for (int i = 0; i < d; i++) denoised[i] = root[i * d + j];
      linalg_real_multiply(d, precision, denoised, image);
      linalg_real_multiply_transposed(d, root, image, denoised);
      denoised[j] += 1;
      for (int i = 0; i < d; i++) m[i * d + j] = denoised[i];
    }
    linalg_real_cholesky(d, m, inverse, &jitters);
    linalg_real_invert_triangle(d, m, inverse);
    linalg_real_lower(d, m, error, image);
    linalg_real_lower_transposed(d, m, image, u);
    real_store(at, d * d, m, self->factor);
    real_store(at, d, u, self->shift);
    real_store(at, 1, &jitters, self->jitters);
  }
}

bool joint_chain_condition(JointChain *self, int t, int64_t *fallbacks) {
  const HistoryView *view = self->view;
  const bool computed = diffusion_moments_due(&self->moments, self->known, t);
  if (computed) {
    const MomentLanes moments = {.mean = self->denoised, .basis = self->basis, .deviation = self->deviation};
    diffusion_moments_at(&self->moments, t, view->lanes, self->s, moments, self->matrix, self->column);
    self->known = t;
  } else {
    diffusion_moments_carry(&self->moments, t, view->lanes, self->s, self->denoised, self->deviation);
  }
  if (!self->whole) joint_chain_find_evidence(self, fallbacks);
  if (self->d == 2) {
    Real registers[SCRATCH_VECTORS(2)];
    condition_vectors(self, 2, registers);
  } else {
    condition_vectors(self, self->d, (Real *)self->vectors);
  }
  joint_chain_count_jitters(self, fallbacks);
  return computed;
}

/* ---- densities */

void joint_chain_log_likelihood(JointChain *self, const double *s, double *out) {
  const HistoryView *view = self->view;
  if (!self->whole) {
    history_log_likelihood(view, s, out, NULL);
    return;
  }
  memset(out, 0, (size_t)view->lanes * sizeof *out);
  linalg_lanes_add_quadratic(self->d, view->lanes, 1,
                             (LanesQuadratic){.matrix = self->precision, .vector = self->vector}, s,
                             self->matrix, out);
}

/* Computes the log likelihood at the mode m = s0_hat + R u, minus 1/2 |u|^2 + 1/2 log det M. */
void joint_chain_marginal(JointChain *self) {
  const int d = self->d, lanes = self->view->lanes;
  double *mode = self->column;
  Real *matrix = (Real *)self->vectors, *u = matrix + d * d, *r = u + d, *denoised = r + d,
       *moved = denoised + d;
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    real_load(at, d * d, self->basis, matrix);
    real_load(at, d, self->deviation, r);
    real_load(at, d, self->denoised, denoised);
    real_load(at, d, self->shift, u);
    for (int i = 0; i < d; i++) u[i] *= r[i];
    linalg_real_multiply(d, matrix, u, moved);
    for (int i = 0; i < d; i++) denoised[i] += moved[i];
    real_store(at, d, denoised, mode);
  }
  joint_chain_log_likelihood(self, mode, self->log_marginal);
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real sum;
    real_load(at, 1, self->log_marginal, &sum);
    real_load(at, d * d, self->factor, matrix);
    real_load(at, d, self->shift, u);
    for (int i = 0; i < d; i++) sum -= 0.5 * u[i] * u[i];
    linalg_real_add_log(d, 1, d + 1, matrix, &sum);
    real_store(at, 1, &sum, self->log_marginal);
  }
}

/* ---- the step */

typedef struct {
  double of_denoised, of_state, variance; /* w0, wt, beta_tilde */
} Transition;

/* g^2 = beta_tilde + w0^2 r^2, from w0 r. */
#define SPREAD(transition, scaled) ((transition).variance + (scaled) * (scaled))

/* Computes root[n] = 1 / g. */
static void joint_chain_invert_spreads(int n, Transition transition, const double *r, double *root) {
  for (RealLanes at = real_begin(n); at.count > 0; real_next(&at)) {
    Real x;
    real_load(at, 1, r, &x);
    const Real scaled = transition.of_denoised * x;
    x = SPREAD(transition, scaled);
    x = real_inverse_root(x);
    real_store(at, 1, &x, root);
  }
}

/* Adds log det T to log_ratio, given the diagonal[d, lanes] of T. */
static void add_log_ratio(JointChain *self, const double *diagonal, double *log_ratio) {
  Real *x = (Real *)self->vectors, ratio;
  for (RealLanes at = real_begin(self->view->lanes); at.count > 0; real_next(&at)) {
    real_load(at, self->d, diagonal, x);
    real_load(at, 1, log_ratio, &ratio);
    linalg_real_add_log(self->d, 1, 1, x, &ratio);
    real_store(at, 1, &ratio, log_ratio);
  }
}

/* Draws in the coordinates whitened by Q diag(g), where the law without history is N(0, I) and the law with
 * it is N(D u, K), K = (I - D^2) + D W' W D: y = D u + T z with T T' = K. In each lane every operation waits
 * for the one before, so the cheap parts, the roots before and the logarithms after, run in separate loops,
 * which keep the processor busy with many lanes at once: root[d, lanes] comes from
 * joint_chain_invert_spreads, and with log_ratio is replaced by the diagonal of T. log_ratio still lacks log
 * det T. */
INLINE void joint_chain_draw_vectors(JointChain *self, Transition transition, const double *z, double *root,
                                     double *log_ratio, const int d, Real *scratch) {
  Real *q = scratch, *w = q + d * d, *k = w + d * d, *share = k + d * d, *g = share + d;
  Real *y = g + d, *from = y + d, *s = from + d, *inverse = s + d;
  for (RealLanes at = real_begin(self->view->lanes); at.count > 0; real_next(&at)) {
    Real jitters = {0}, ratio = {0};
    real_load(at, d, self->deviation, share);
    real_load(at, d, root, g);
    real_load(at, d * d, self->factor, w);
    for (int i = 0; i < d; i++) {
      const Real scaled = transition.of_denoised * share[i], inverted = g[i];
      g[i] = SPREAD(transition, scaled) * inverted;
      share[i] = scaled * inverted;
      k[i * d + i] = transition.variance * inverted * inverted;
    }
    for (int i = 0; i < d; i++)
      for (int j = 0; j <= i; j++) {
        Real sum = w[i * d + i] * w[i * d + j];
        for (int l = i + 1; l < d; l++) sum += w[l * d + i] * w[l * d + j];
        sum *= share[i] * share[j];
        k[i * d + j] = i == j ? k[i * d + j] + sum : sum;
      }
    linalg_real_cholesky(d, k, inverse, &jitters);
    real_load(at, d, z, from);
    linalg_real_lower(d, k, from, y);
    real_load(at, d, self->shift, s);
    for (int i = 0; i < d; i++) y[i] += share[i] * s[i];
    if (log_ratio) {
      for (int i = 0; i < d; i++) ratio += 0.5 * (from[i] * from[i] - y[i] * y[i]);
      for (int i = 0; i < d; i++) from[i] = k[i * d + i];
      real_store(at, 1, &ratio, log_ratio);
      real_store(at, d, from, root);
    }
    for (int i = 0; i < d; i++) y[i] *= g[i];
    real_load(at, d * d, self->basis, q);
    linalg_real_multiply(d, q, y, share);
    real_load(at, d, self->s, s);
    real_load(at, d, self->denoised, from);
    for (int i = 0; i < d; i++)
      s[i] = transition.of_state * s[i] + transition.of_denoised * from[i] + share[i];
    real_store(at, d, s, self->s);
    real_store(at, 1, &jitters, self->jitters);
  }
}

void joint_chain_draw(JointChain *self, int t, const double *z, double *log_ratio, int64_t *fallbacks) {
  const Schedule *schedule = &self->chain->schedule;
  const double *bar = schedule->alpha_bar;
  double *root = self->column;
  Transition transition = {sqrt(bar[t - 1]), 0, 1 - bar[t - 1]}; /* from stage T + 1 */
  if (t <= schedule->stages) {
    transition.variance = schedule->beta_tilde[t];
    schedule_bridge_factors(schedule, t, &transition.of_denoised, &transition.of_state);
  }
  joint_chain_invert_spreads(self->d * self->view->lanes, transition, self->deviation, root);
  if (self->d == 2) {
    Real registers[SCRATCH_VECTORS(2)];
    joint_chain_draw_vectors(self, transition, z, root, log_ratio, 2, registers);
  } else {
    joint_chain_draw_vectors(self, transition, z, root, log_ratio, self->d, (Real *)self->vectors);
  }
  if (log_ratio) add_log_ratio(self, root, log_ratio);
  joint_chain_count_jitters(self, fallbacks);
}
