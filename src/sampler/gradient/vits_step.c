#define REAL_WIDTH SIMD_DOUBLES
#include "sampler/gradient/vits_step.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "core/linalg/linalg_kernel.h"
#include "core/real.h"

#include <string.h>

/* How far a mean may be from the start's mean, and how wide a Gaussian may be, in standard deviations of the
 * start: beyond that, a learned score means nothing. */
static const double GUARD = 100;

/* Updates between two refreshes of C: the default number in a round. */
enum { REFRESH = 10 };

Status vits_step_create(Arena *memory, VitsKind kind, const SamplerSetup *setup, int capacity,
                        VitsStep *out) {
  const size_t d = (size_t)setup->prior->d, n = (size_t)capacity, vector = d * n, matrix = d * vector;
  *out = (VitsStep){.kind = kind, .d = setup->prior->d};
  TRY(step_size_create(memory, setup, capacity, 1, &out->step));
  if (kind == VITS_HESSIAN_FREE)
    out->samples = (int)config_int(setup->options, "samples");
  else
    out->controlled = config_is(setup->options, "gradient", "controlled") ||
                      (config_is(setup->options, "gradient", "auto") && out->step.by_curvature);
  ALLOCATE_ARRAYS(memory, vector, &out->theta, &out->gradient, &out->spread, &out->lengths, &out->eps,
                  &out->at_mean);
  ALLOCATE_ARRAYS(memory, n, &out->h, &out->dot);
  ALLOCATE_ARRAYS(memory, matrix, &out->hessian, &out->excess, &out->product);
  if (kind == VITS_HESSIAN_FREE)
    ALLOCATE_ARRAYS(memory, matrix, &out->directions, &out->points, &out->gradients, &out->linear);
  ALLOCATE(memory, out->scratch, linalg_kernel_scratch(out->d));
  return STATUS_OK;
}

void vits_start(const Potential *potential, int lanes, int first, int last, VitsGaussian q) {
  const int d = potential->d;
  for (int i = 0; i < d; i++) {
    for (int n = first; n < last; n++) q.mean[i * lanes + n] = potential->start_mean[i];
    for (int j = 0; j < d; j++)
      for (int n = first; n < last; n++) {
        const double deviation = i == j ? potential->start_deviation[i] : 0;
        const bool full = potential->start_root;
        q.root[(i * d + j) * lanes + n] = full ? potential->start_root[i * d + j] : deviation;
        q.inverse[(i * d + j) * lanes + n] = full     ? potential->start_inverse[i * d + j]
                                             : i == j ? 1 / deviation
                                                      : 0;
      }
  }
}

/* ---- elementwise, over lanes */

void vits_place(int d, int lanes, VitsGaussian q, const double *eps, double *theta) {
  linalg_lanes_multiply(d, lanes, q.root, eps, theta);
  lanes_add((size_t)d * (size_t)lanes, 1, q.mean, theta);
}

/* Computes x[rows, lanes] -= h[lanes] y[rows, lanes]. */
static void vits_step_subtract_scaled(int rows, int lanes, const double *h, const double *y, double *x) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real step, own, other;
    real_load(at, 1, h, &step);
    for (int i = 0; i < rows; i++) {
      real_load(at, 1, x + i * lanes, &own);
      real_load(at, 1, y + i * lanes, &other);
      own -= step * other;
      real_store(at, 1, &own, x + i * lanes);
    }
  }
}

/* Computes B += h (C' - AB), given product = AB, and spread[d, n], the sums of squares of the rows of B. */
static void vits_step_move_root(int d, int lanes, const double *h, const double *inverse,
                                const double *product, double *root, double *spread) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real step, c, x, b;
    real_load(at, 1, h, &step);
    for (int i = 0; i < d; i++) {
      Real sum = {0};
      for (int j = 0; j < d; j++) {
        real_load(at, 1, inverse + (j * d + i) * lanes, &c);
        real_load(at, 1, product + (i * d + j) * lanes, &x);
        real_load(at, 1, root + (i * d + j) * lanes, &b);
        b += step * (c - x);
        sum += b * b;
        real_store(at, 1, &b, root + (i * d + j) * lanes);
      }
      real_store(at, 1, &sum, spread + i * lanes);
    }
  }
}

/* Computes X -= A, both symmetric, and bound[n] = linalg_kernel_moment_bound of the X before. */
static void vits_step_subtract_hessian(int d, int lanes, const double *a, double *excess, double *bound) {
  for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at)) {
    Real trace = {0}, square = {0}, x, subtracted;
    for (int i = 0; i < d; i++) {
      Real off_diagonal = {0};
      for (int j = 0; j <= i; j++) {
        real_load(at, 1, a + (i * d + j) * lanes, &subtracted);
        real_load(at, 1, excess + (i * d + j) * lanes, &x);
        if (j < i) {
          off_diagonal += x * x;
        } else {
          trace += x;
          square += 2 * off_diagonal + x * x;
        }
        x -= subtracted;
        real_store(at, 1, &x, excess + (i * d + j) * lanes);
        real_store(at, 1, &x, excess + (j * d + i) * lanes);
      }
    }
    for (int n = 0; n < (int)at.count; n++)
      bound[at.first + (size_t)n] = linalg_kernel_moment_bound(d, trace[n], square[n]);
  }
}

/* ---- the Hessian-free estimate: the gradients at all points of a set are computed together */

void vits_step_estimate(VitsStep *work, Potential *potential, VitsGaussian q, RngLanes *rng) {
  const int d = work->d, lanes = potential->view.lanes, vector = d * lanes, matrix = d * vector;
  double *sum = work->product, *eps = work->directions, *gradient = work->gradients;
  memset(sum, 0, (size_t)matrix * sizeof *sum);
  memset(work->gradient, 0, (size_t)vector * sizeof *work->gradient);
  potential_derivatives(potential, q.mean, work->at_mean, NULL);
  for (int first = 0; first < work->samples; first += d) {
    const int count = work->samples - first < d ? work->samples - first : d;
    /* A set of eps, each standard normal and all orthogonal: lengths are independent of directions, so length
     * times direction is still standard normal. */
    for (int m = 0; m < count; m++) rng_lanes_normal(rng, d, eps + m * vector);
    linalg_factor_orthonormalise(count, d, lanes, eps, work->lengths);
    for (int i = 0; i < count * d; i++)
      for (int n = 0; n < lanes; n++) eps[i * lanes + n] *= work->lengths[i / d * lanes + n];
    linalg_lanes_multiply_vectors(count, d, lanes, eps, false, q.root, work->points);
    for (int m = 0; m < count; m++) lanes_add((size_t)vector, 1, q.mean, work->points + m * vector);
    potential_gradients(potential, count, work->points, gradient);
    linalg_lanes_multiply_vectors(count, d, lanes, eps, true, q.inverse, work->linear);
    for (int m = 0; m < count; m++)
      for (int i = 0, k = m * vector; i < vector; i++, k++) {
        const double rest = gradient[k] - work->linear[k];
        work->gradient[i] += rest;
        gradient[k] = rest - work->at_mean[i]; /* r_m */
      }
    linalg_lanes_add_outer(count, d, lanes, eps, gradient, sum);
  }
  for (int i = 0; i < vector; i++) work->gradient[i] /= work->samples;
  for (int i = 0; i < matrix; i++) sum[i] = sum[i] / work->samples + q.inverse[i];
  linalg_lanes_product_transposed(d, lanes, q.inverse, sum, work->hessian);
  linalg_lanes_symmetrise(d, lanes, work->hessian);
}

/* ---- updates */

/* Computes g at one draw and, unless it is `known` because it does not depend on the draw, A into
 * work->hessian. */
static void evaluate_at_draw(VitsStep *work, Potential *potential, VitsGaussian q, bool known,
                             RngLanes *rng) {
  const int d = work->d, lanes = potential->view.lanes;
  rng_lanes_normal(rng, d, work->eps);
  vits_place(d, lanes, q, work->eps, work->theta);
  potential_derivatives(potential, work->theta, work->gradient, known ? NULL : work->hessian);
  if (work->controlled) {
    linalg_lanes_multiply_transposed(d, lanes, q.inverse, work->eps, work->theta);
    lanes_add((size_t)d * (size_t)lanes, -1, work->theta, work->gradient);
  }
}

/* Brings C, which drifts from B^-1, back by one Newton-Schulz iteration, C <- C (2I - BC). If long steps have
 * taken it too far away for that, B^-1 is computed again (step_size.h says when this counts as a
 * fallback). */
static void vits_step_refresh_inverse(VitsStep *work, const HistoryView *view, VitsGaussian q,
                                      int64_t *fallbacks) {
  const int d = work->d, lanes = view->lanes, matrix = d * d * lanes;
  double *residual = work->product, *refreshed = work->hessian, *inverted = work->excess;
  bool all = true;
  linalg_lanes_product(d, lanes, q.root, q.inverse, residual);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) residual[(i * d + i) * lanes + n] -= 1;
  linalg_lanes_coarse_bound(d, lanes, residual, work->dot);
  linalg_lanes_product(d, lanes, q.inverse, residual, refreshed);
  for (int n = 0; n < lanes; n++) all = all && work->dot[n] < 1;
  if (all) {
    lanes_add((size_t)matrix, -1, refreshed, q.inverse);
    return;
  }
  linalg_lanes_invert(d, lanes, q.root, inverted);
  for (int i = 0; i < d * d; i++)
    for (int n = 0; n < lanes; n++) {
      const bool near = work->dot[n] < 1;
      double *c = q.inverse + i * lanes + n;
      *c = near ? *c - refreshed[i * lanes + n] : inverted[i * lanes + n];
    }
  if (work->step.by_curvature) return;
  for (int n = 0; n < lanes; n++)
    if (!(work->dot[n] < 1)) fallbacks[(view->first + n) / view->draws]++;
}

void vits_step_excess(VitsStep *work, int lanes, const double *hessian, VitsGaussian q) {
  const int d = work->d;
  linalg_lanes_gram(d, lanes, q.inverse, work->excess);
  vits_step_subtract_hessian(d, lanes, hessian, work->excess, work->dot);
}

void vits_step_move(VitsStep *work, int lanes, const double *hessian, VitsGaussian q) {
  const int d = work->d;
  double *excess = work->excess;
  linalg_lanes_product(d, lanes, hessian, q.root, work->product);
  vits_step_move_root(d, lanes, work->h, q.inverse, work->product, q.root, work->spread);
  if (work->kind != VITS_ONE) {
    linalg_lanes_product(d, lanes, q.inverse, excess, work->product);
    vits_step_subtract_scaled(d * d, lanes, work->h, work->product, q.inverse);
  } else if (!linalg_lanes_is_single(d, lanes)) { /* C <- C S^-1 */
    for (int i = 0; i < d * d; i++)
      for (int n = 0; n < lanes; n++)
        excess[i * lanes + n] = work->h[n] * excess[i * lanes + n] + (i % (d + 1) == 0);
    linalg_kernel_invert(d, lanes, excess, work->scratch);
    linalg_lanes_product(d, lanes, q.inverse, excess, work->product);
    memcpy(q.inverse, work->product, (size_t)(d * d * lanes) * sizeof *q.inverse);
  }
}

/* Brings the coordinates of mu back within the guard, and shrinks B (C grows by the same factor) until its
 * largest variance is within it. Every lane where anything was beyond is a fallback. */
static void vits_step_guard(const VitsStep *work, const Potential *potential, VitsGaussian q,
                            int64_t *fallbacks) {
  const HistoryView *view = &potential->view;
  const double *middle = potential->start_mean;
  const int d = work->d, lanes = view->lanes;
  int64_t beyond = 0;
  for (int i = 0; i < d; i++) {
    const double limit = GUARD * potential->start_deviation[i];
    for (int k = i * lanes; k < (i + 1) * lanes; k++)
      beyond |= !((fabs(q.mean[k] - middle[i]) <= limit) & (work->spread[k] <= limit * limit));
  }
  if (!beyond) return;
  for (int n = 0; n < lanes; n++) {
    double shrink = 1;
    bool touched = false;
    for (int i = 0; i < d; i++) {
      const double limit = GUARD * potential->start_deviation[i], variance = work->spread[i * lanes + n];
      double *mean = &q.mean[i * lanes + n], away = *mean - middle[i];
      touched = touched || !(fabs(away) <= limit) || variance > limit * limit;
      if (fabs(away) > limit) *mean = middle[i] + copysign(limit, away);
      if (variance > limit * limit) shrink = fmin(shrink, limit / sqrt(variance));
    }
    if (shrink < 1)
      for (int k = n; k < d * d * lanes; k += lanes) {
        q.root[k] *= shrink;
        q.inverse[k] /= shrink;
      }
    if (touched) fallbacks[(view->first + n) / view->draws]++;
  }
}

/* Adds x - x over the rows to sum[n]: 0 as long as all are finite, else not a number. */
static void vits_step_flag_not_finite(int rows, int lanes, const double *restrict x, double *restrict sum) {
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < lanes; n++) sum[n] += x[i * lanes + n] - x[i * lanes + n];
}

void vits_step_round(VitsStep *work, Potential *potential, VitsGaussian q, RngLanes *rng,
                     int64_t *fallbacks) {
  const HistoryView view = potential->view;
  const int d = work->d, lanes = view.lanes;
  const int64_t before =
      (int64_t)rng->round * work->step.steps; /* updates in the rounds before, counted from round 0 */
  const bool drifts = work->kind != VITS_ONE || !linalg_lanes_is_single(d, lanes);
  const bool known = work->kind != VITS_HESSIAN_FREE && potential_has_fixed_hessian(potential);
  const double *hessian = known ? potential->precision : work->hessian;
  const StepPoint point = {.gradient = work->gradient,
                           .hessian = known ? NULL : hessian,
                           .factor = q.inverse,
                           .factor_bound = work->dot};
  step_size_begin(&work->step, potential, q.mean);
  for (int k = 0; k < work->step.steps; k++) {
    if (drifts && (before + k) % REFRESH == 0) vits_step_refresh_inverse(work, &view, q, fallbacks);
    if (work->kind == VITS_HESSIAN_FREE)
      vits_step_estimate(work, potential, q, rng);
    else
      evaluate_at_draw(work, potential, q, known, rng);
    /* the lines of vits_step.h */
    if (!drifts) linalg_lanes_invert(d, lanes, q.root, q.inverse);
    vits_step_excess(work, lanes, hessian, q);
    step_size_choose(&work->step, potential, &point, work->h, fallbacks);
    vits_step_subtract_scaled(d, lanes, work->h, work->gradient, q.mean);
    vits_step_move(work, lanes, hessian, q);
    vits_step_guard(work, potential, q, fallbacks);
  }
  memset(work->dot, 0, (size_t)lanes * sizeof *work->dot);
  vits_step_flag_not_finite(d, lanes, q.mean, work->dot);
  vits_step_flag_not_finite(d * d, lanes, q.root, work->dot);
  vits_step_flag_not_finite(d * d, lanes, q.inverse, work->dot);
  for (int n = 0; n < lanes; n++) {
    if (isfinite(work->dot[n])) continue;
    vits_start(potential, lanes, n, n + 1, q);
    fallbacks[(view.first + n) / view.draws]++;
  }
}

/* Counts the lines of vits_step.h, and A B: with one exact inverse of a definite matrix in VITS-I. */
double vits_step_operations(const VitsStep *work) {
  const double d = work->d, vector = 2 * d * d, product = d * vector, gram = d * d * (d + 1),
               inverse = d * d * d;
  const double set = work->samples * 5 * vector; /* made orthogonal, B eps, grad U, C' eps, eps r' */
  const double refresh = 2 * product / REFRESH;
  double update = refresh + gram + product + 3 * vector;
  update += work->kind == VITS_ONE ? inverse + product : product;
  if (work->kind == VITS_HESSIAN_FREE) update += product + set;
  return step_size_operations(&work->step, work->d) + work->step.steps * update;
}
