#define REAL_WIDTH SIMD_DOUBLES
#include "sampler/gradient/lmc_step.h"

#include "core/linalg/linalg.h"
#include "core/linalg/linalg_real.h"
#include "core/real.h"

#include <float.h>

/* How far a chain may stray from the mean of the start, in standard deviations of the start. */
static const double GUARD = 100;

/* Updates on a quadratic potential whose normals are drawn ahead in one batch: the default number in a
 * round. */
enum { MOVES = 10 };

Status lmc_step_create(Arena *memory, const SamplerSetup *setup, Lmc *out) {
  const size_t d = (size_t)setup->prior->d, n = CHUNK_LANES, vector = d * n;
  Potential *potential = &out->potential;
  TRY(potential_create(memory, setup, CHUNK_LANES, potential));
  ALLOCATE(memory, out->theta, d * (size_t)setup->runs * (size_t)setup->draws);
  if (config_has(setup->options, "optimism")) out->feel_good = config_real(setup->options, "optimism");
  TRY(step_size_create(memory, setup, CHUNK_LANES, 2, &out->step));
  if (out->step.by_curvature) TRY(potential_whiten(memory, potential));
  ALLOCATE_ARRAYS(memory, vector, &out->gradient, &out->normal);
  ALLOCATE_ARRAYS(memory, n, &out->h, &out->pull);
  if (!potential->network) ALLOCATE(memory, out->hessian, d * vector);
  if (!potential_has_fixed_hessian(potential)) return STATUS_OK;
  ALLOCATE(memory, out->normals, MOVES * vector);
  ALLOCATE(memory, out->chains, d * (d + 3) * REAL_WIDTH);
  ALLOCATE(memory, out->guard_unit, d);
  for (size_t i = 0; i < d; i++) out->guard_unit[i] = 1 / (GUARD * potential->start_deviation[i]);
  return STATUS_OK;
}

/* ---- the feel-good term */

/* Subtracts the gradient of the feel-good term from gradient[d, n], that of U at z[d, n] in the potential's
 * coordinates; push[d, n] is scratch. */
static void feel_good_subtract(Potential *potential, const double *pull, const double *z, double *push,
                               double *gradient) {
  const int d = potential->d, lanes = potential->view.lanes;
  const double *theta = potential_theta(potential, lanes, z);
  double factor[CHUNK_LANES];
  ASSERT(lanes <= CHUNK_LANES);
  for (int n = 0; n < lanes; n++) {
    double square = 0;
    for (int i = 0; i < d; i++) square += theta[i * lanes + n] * theta[i * lanes + n];
    factor[n] = pull[n] / sqrt(fmax(square, DBL_MIN));
  }
  memcpy(push, theta, (size_t)(d * lanes) * sizeof *push);
  potential_to_gradient(potential, lanes, push); /* overwrites theta */
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) gradient[i * lanes + n] -= factor[n] * push[i * lanes + n];
}

/* ---- the guard */

/* Brings lanes first .. first + count - 1 of the view back within the guard, or to the start's mean where
 * they are not finite; coordinate i of lane first + k is theta[i stride + k]. */
static void lmc_step_guard(const Potential *potential, int first, int count, int stride, double *theta,
                           int64_t *fallbacks) {
  const HistoryView *view = &potential->view;
  for (int i = 0; i < potential->d; i++) {
    const double middle = potential->start_mean[i], limit = GUARD * potential->start_deviation[i];
    for (int k = 0; k < count; k++) {
      double *x = &theta[i * stride + k], away = *x - middle;
      if (isfinite(away) && fabs(away) <= limit) continue;
      *x = isfinite(away) ? middle + copysign(limit, away) : middle;
      fallbacks[(view->first + first + k) / view->draws]++;
    }
  }
}

/* ---- a quadratic potential: a vector of chains makes all its steps before the next one starts, so that its
 * matrices stay in the first-level cache */

/* Makes `count` steps of the chains of lanes `at` with normals[count, d, N]. As long as the squares of their
 * coordinates, in units of the guard, add up to less than 1, no chain is beyond it. */
static void lmc_step_move_chains(const Lmc *work, RealLanes at, int count, double *theta,
                                 int64_t *fallbacks) {
  const Potential *potential = &work->potential;
  const int d = potential->d;
  const double *normal = work->normals;
  Real *precision = (Real *)work->chains, *vector = precision + d * d, *x = vector + d, *image = x + d;
  Real h, pull = {0}, z, away;
  real_load(at, d * d, potential->precision, precision);
  real_load(at, d, potential->vector, vector);
  real_load(at, d, theta, x);
  real_pad((int)at.count, d, x); /* copies make steps of length 0 */
  real_load(at, 1, work->h, &h);
  if (work->feel_good > 0) real_load(at, 1, work->pull, &pull);
  const Real noise = real_root(2 * h);
  for (int k = 0; k < count; k++) {
    Real square = {0}, factor = {0};
    double total = 0;
    if (work->feel_good > 0) { /* pull / |theta| */
      Real length = {0};
      for (int i = 0; i < d; i++) length += x[i] * x[i];
      factor = pull / real_root(length + DBL_MIN);
    }
    linalg_real_multiply(d, precision, x, image);
    for (int i = 0; i < d; i++, normal += at.lanes) {
      real_load(at, 1, normal, &z);
      x[i] -= h * (image[i] - vector[i] - factor * x[i]);
      x[i] += noise * z; /* separate: of two products in one sum, either could be fused with it */
      away = work->guard_unit[i] * (x[i] - potential->start_mean[i]);
      square += away * away;
    }
    for (int n = 0; n < REAL_WIDTH; n++) total += square[n];
    if (!(total < 1))
      lmc_step_guard(potential, (int)at.first, (int)at.count, REAL_WIDTH, (double *)x, fallbacks);
  }
  real_store(at, d, x, theta);
}

/* Makes the updates of a round. All have the same length, and if it was shortened, every one counts as a
 * fallback. */
static void lmc_step_on_quadratic(Lmc *work, RngLanes *rng, double *theta, int64_t *fallbacks) {
  Potential *potential = &work->potential;
  const int d = potential->d, lanes = potential->view.lanes;
  for (int left = work->step.steps; left > 0; left -= MOVES) {
    const int count = left < MOVES ? left : MOVES;
    for (int k = 0; k < count; k++) {
      step_size_choose(&work->step, potential, &(StepPoint){.gradient = NULL}, work->h, fallbacks);
      rng_lanes_normal(rng, d, work->normals + (size_t)(k * d * lanes));
    }
    for (RealLanes at = real_begin(lanes); at.count > 0; real_next(&at))
      lmc_step_move_chains(work, at, count, theta, fallbacks);
  }
}

/* ---- any potential */

/* Makes the updates of a round. Each computes the Hessian, unless the rewards are Gaussian with a linear
 * mean, so that it is known, or the mean is a network, whose Hessian would cost more than the updates. */
static void lmc_step_on_any(Lmc *work, RngLanes *rng, double *theta, int64_t *fallbacks) {
  Potential *potential = &work->potential;
  const int d = potential->d, lanes = potential->view.lanes;
  double *hessian = potential->conjugate ? NULL : work->hessian;
  for (int k = 0; k < work->step.steps; k++) {
    potential_derivatives(potential, theta, work->gradient, hessian);
    if (work->feel_good > 0) feel_good_subtract(potential, work->pull, theta, work->normal, work->gradient);
    const StepPoint point = {.gradient = work->gradient, .hessian = hessian};
    step_size_choose(&work->step, potential, &point, work->h, fallbacks);
    rng_lanes_normal(rng, d, work->normal);
    for (int i = 0; i < d; i++) /* to theta - h g + sqrt(2 h) z */
      for (int n = 0; n < lanes; n++) {
        const int at = i * lanes + n;
        theta[at] +=
            special_two_products(sqrt(2 * work->h[n]), work->normal[at], -work->h[n], work->gradient[at]);
      }
    lmc_step_guard(potential, 0, lanes, lanes, theta, fallbacks);
  }
}

/* Computes pull[n], the weight of the feel-good term times rounds times R; once for all lanes of a run. */
static void lmc_step_find_pull(Lmc *work, const HistoryView *view) {
  const double weight = work->feel_good * work->potential.eta * view->history->temper;
  int last = -1;
  for (int n = 0; n < view->lanes; n++) {
    const int run = (view->first + n) / view->draws;
    if (run == last)
      work->pull[n] = work->pull[n - 1];
    else
      work->pull[n] =
          weight * sqrt(history_observations(view->history, run) * history_squares(view->history, run));
    last = run;
  }
}

void lmc_step_round(Lmc *work, RngLanes *rng, double *theta, int64_t *fallbacks) {
  Potential *potential = &work->potential;
  const HistoryView *view = &potential->view;
  const int d = potential->d, lanes = view->lanes;
  /* One large matrix is no job for vectors, and in z the feel-good term needs theta. */
  const bool quadratic =
      work->normals && !(work->feel_good > 0 && potential->root) && !linalg_lanes_is_single(d, lanes);
  /* The rule `lambda_max` takes the curvature at theta = 0, where that of logistic rewards is largest, or
   * with a network at the chain itself, the only place where the curvature is known. */
  memset(work->gradient, 0, (size_t)(d * lanes) * sizeof *work->gradient);
  step_size_begin(&work->step, potential, potential->network ? theta : work->gradient);
  if (work->feel_good > 0) lmc_step_find_pull(work, view);
  if (quadratic)
    lmc_step_on_quadratic(work, rng, theta, fallbacks);
  else
    lmc_step_on_any(work, rng, theta, fallbacks);
}
