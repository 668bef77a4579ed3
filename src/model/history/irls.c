#include "model/history/irls.h"

#include "core/lanes.h"
#include "core/linalg/linalg.h"
#include "model/history/history_passes.h"

#include <math.h>
#include <string.h>

Status irls_create(Arena *memory, int d, int capacity, double tolerance, Irls *out) {
  const size_t vector = (size_t)d * (size_t)capacity;
  *out = (Irls){.d = d, .capacity = capacity, .tolerance = tolerance};
  ALLOCATE_ARRAYS(memory, vector, &out->gradient, &out->step, &out->trial);
  ALLOCATE(memory, out->factor, vector * (size_t)d);
  ALLOCATE_ARRAYS(memory, capacity, &out->reach, &out->decrement, &out->slope, &out->length, &out->low,
                  &out->high);
  ALLOCATE(memory, out->jitters, capacity);
  ALLOCATE_ARRAYS(memory, capacity, &out->settled, &out->idle, &out->stuck);
  return STATUS_OK;
}

/* Computes factor = P + Lambda and then its Cholesky factor. */
static void history_mode_factorise(Irls *irls, int lanes, const double *prior_precision,
                                   const double *precision) {
  lanes_sum((size_t)(irls->d * irls->d) * (size_t)lanes, prior_precision, precision, irls->factor);
  memset(irls->jitters, 0, (size_t)lanes * sizeof *irls->jitters);
  linalg_factor_cholesky(irls->d, lanes, irls->factor, irls->jitters);
}

/* Adds the prior's h - P z, which makes `gradient` that of the log posterior. */
SIMD_CLONES
static void history_mode_add_prior(int d, int lanes, const double *restrict prior_precision,
                                   const double *restrict prior_vector, const double *restrict z,
                                   double *restrict gradient) {
  for (int i = 0; i < d; i++) {
    double *restrict g = gradient + (size_t)i * (size_t)lanes;
    const double *restrict h = prior_vector + (size_t)i * (size_t)lanes;
    for (int n = 0; n < lanes; n++) g[n] += h[n];
    for (int j = 0; j < d; j++) {
      const double *restrict p = prior_precision + (size_t)(i * d + j) * (size_t)lanes;
      const double *restrict x = z + (size_t)j * (size_t)lanes;
      for (int n = 0; n < lanes; n++) g[n] -= p[n] * x[n];
    }
  }
}

/* Computes out[lanes] = a' b. */
SIMD_CLONES
static void history_mode_products(int d, int lanes, const double *restrict a, const double *restrict b,
                                  double *restrict out) {
  for (int n = 0; n < lanes; n++) out[n] = 0;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) out[n] += a[i * lanes + n] * b[i * lanes + n];
}

/* What a call is about, with the evidence (Lambda, g) at the last point. */
typedef struct {
  Irls *irls;
  const HistoryView *view;
  PriorLanes prior;
  double *precision, *g;
} Problem;

/* Makes a pass at z, which gives the evidence as (Lambda, g) and the gradient of the log posterior. */
static void history_mode_gradient(const Problem *p, const double *z, const bool *skip) {
  const int d = p->irls->d, lanes = p->view->lanes;
  history_derivatives(p->view, z, skip, p->g, p->precision);
  memcpy(p->irls->gradient, p->g, (size_t)(d * lanes) * sizeof *z);
  history_mode_add_prior(d, lanes, p->prior.precision, p->prior.vector, z, p->irls->gradient);
}

/* Makes a pass at z, and computes the Cholesky factor, step, delta^2 and R of every lane. */
static void history_mode_newton_step(const Problem *p, const double *z) {
  Irls *irls = p->irls;
  const HistoryView *view = p->view;
  const int d = irls->d, lanes = view->lanes;
  const double concordance = view->history->likelihood->ops->self_concordance;
  history_mode_gradient(p, z, irls->settled);
  history_mode_factorise(irls, lanes, p->prior.precision, p->precision);
  memcpy(irls->step, irls->gradient, (size_t)(d * lanes) * sizeof *z);
  linalg_factor_solve(d, lanes, irls->factor, irls->step);
  history_mode_products(d, lanes, irls->gradient, irls->step, irls->decrement);
  if (concordance > 0) history_reach(view, irls->step, IRLS_FULL_STEP / concordance, irls->reach);
  for (int n = 0; n < lanes; n++) irls->reach[n] = concordance > 0 ? concordance * irls->reach[n] : 0;
}

/* Settles the lanes that are close enough; returns how many are still moving. */
static int history_mode_settle(Irls *irls, int lanes) {
  int moving = 0;
  for (int n = 0; n < lanes; n++) {
    double reach = irls->reach[n], delta = sqrt(fmax(irls->decrement[n], 0));
    if (!irls->settled[n])
      irls->settled[n] = reach <= 0.5 && 0.5 * reach * exp(reach) * delta <= irls->tolerance;
    irls->stuck[n] = irls->stuck[n] || !isfinite(reach) || !isfinite(delta);
    moving += irls->settled[n] || irls->stuck[n] ? 0 : 1;
  }
  return moving;
}

/* Computes trial = z + a p, which is z bit for bit if a = 0. */
static void history_mode_set_trial(Irls *irls, int lanes, const double *z) {
  for (int i = 0; i < irls->d; i++)
    for (int k = i * lanes, n = 0; n < lanes; k++, n++)
      irls->trial[k] = irls->length[n] > 0 ? z[k] + irls->length[n] * irls->step[k] : z[k];
}

/* Moves the lanes that are neither settled nor stuck: by full steps, unless they reach too far to step
 * without a trial. */
static void history_mode_move(const Problem *p, double *z) {
  Irls *irls = p->irls;
  const int d = irls->d, lanes = p->view->lanes;
  int searching = 0;
  for (int n = 0; n < lanes; n++) {
    const double reach = irls->reach[n];
    const bool still = irls->settled[n] || irls->stuck[n];
    irls->length[n] = irls->high[n] = still ? 0 : 1;
    irls->idle[n] = still || reach <= IRLS_FULL_STEP;
    irls->low[n] = irls->idle[n] ? irls->length[n] : log1p(reach) / reach;
    searching += irls->idle[n] ? 0 : 1;
  }
  history_mode_set_trial(irls, lanes, z);
  while (searching > 0) {
    history_mode_gradient(p, irls->trial, irls->idle);
    history_mode_products(d, lanes, irls->gradient, irls->step, irls->slope);
    /* Halve the brackets of the searching lanes. A bracket with no number between its ends cannot become
     * narrower, and its lane is stuck. */
    searching = 0;
    for (int n = 0; n < lanes; n++) {
      if (irls->idle[n]) continue;
      *(irls->slope[n] >= 0 ? &irls->low[n] : &irls->high[n]) = irls->length[n];
      const double low = irls->low[n], high = irls->high[n], middle = 0.5 * (low + high);
      irls->idle[n] = !((high - low) * irls->reach[n] > IRLS_FULL_STEP);
      if (!irls->idle[n]) irls->idle[n] = irls->stuck[n] = !(low < middle && middle < high);
      irls->length[n] = irls->idle[n] ? low : middle;
      searching += irls->idle[n] ? 0 : 1;
    }
    history_mode_set_trial(irls, lanes, z);
  }
  memcpy(z, irls->trial, (size_t)(d * lanes) * sizeof *z);
}

void irls_solve(Irls *irls, const HistoryView *view, PriorLanes prior, EvidenceLanes evidence, double *mode,
                int64_t *fallbacks) {
  const int d = irls->d, lanes = view->lanes;
  double *precision = evidence.precision, *vector = evidence.vector;
  const Problem problem = {.irls = irls, .view = view, .prior = prior, .precision = precision, .g = vector};
  ASSERT(lanes <= irls->capacity && view->history->d == irls->d);
  for (int n = 0; n < lanes; n++) irls->settled[n] = irls->stuck[n] = false;
  lanes_sum((size_t)d * (size_t)lanes, prior.vector, vector, mode);
  history_mode_factorise(irls, lanes, prior.precision, precision);
  linalg_factor_solve(d, lanes, irls->factor, mode);
  history_mode_newton_step(&problem, mode);
  int moving = history_mode_settle(irls, lanes);
  for (int pass = 1; pass < IRLS_PASSES && moving > 0; pass++) {
    history_mode_move(&problem, mode);
    history_mode_newton_step(&problem, mode);
    moving = history_mode_settle(irls, lanes);
  }
  for (int n = 0; n < lanes; n++)
    fallbacks[(view->first + n) / view->draws] += irls->jitters[n] + (irls->settled[n] ? 0 : 1);
  /* From (Lambda, g) to (Lambda, b), and then the last step. If a lane has not settled, its b makes z the
   * mode. */
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < lanes; n++)
      if (!irls->settled[n]) vector[i * lanes + n] -= irls->gradient[i * lanes + n];
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++)
        vector[i * lanes + n] += precision[(i * d + j) * lanes + n] * mode[j * lanes + n];
  }
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      if (irls->settled[n]) mode[i * lanes + n] += irls->step[i * lanes + n];
}
