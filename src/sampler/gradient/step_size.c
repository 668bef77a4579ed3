#include "sampler/gradient/step_size.h"

#include "core/linalg/linalg_lanes.h"
#include "core/simd.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The a = h lambda_max that a step is shortened to, and the largest that the rule `lambda_max` uses. */
static const double SAFE = 0.5;

Status step_size_create(Arena *memory, const SamplerSetup *setup, int capacity, double limit, StepSize *out) {
  const Config *options = setup->options;
  const size_t n = (size_t)capacity, d = (size_t)setup->prior->d;
  *out = (StepSize){.steps = (int)config_int(options, "steps"),
                    .by_curvature = config_is(options, "step_rule", "lambda_max"),
                    .limit = limit};
  out->size = out->by_curvature ? 0.4 : 0.01;
  if (!config_is(options, "step_size", "auto")) out->size = config_real(options, "step_size");
  if (out->by_curvature) out->size = fmin(out->size, SAFE);
  ALLOCATE_ARRAYS(memory, n, &out->bound, &out->checked, &out->shortened);
  ALLOCATE(memory, out->trial, d * n);
  if (!likelihood_has_network(setup->likelihood)) ALLOCATE(memory, out->scratch, 3 * d * d * n);
  return STATUS_OK;
}

/* Computes h[n] by the rule eta_t, before any shortening. */
static void step_size_by_evidence(const StepSize *step, const Potential *potential, double *h) {
  const HistoryView *view = &potential->view;
  for (int n = 0; n < view->lanes; n++) {
    const double t = fmax(1, history_observations(view->history, (view->first + n) / view->draws));
    h[n] = step->size / (potential->unit * view->history->temper * t);
  }
}

/* Begins a rule. eta_t only needs to know whether L is small enough, and for rewards that are not Gaussian
 * not even that; so it computes the fine bound, which costs two products, only if the coarse one does not
 * decide. */
void step_size_begin(StepSize *step, Potential *potential, const double *reference) {
  const int lanes = potential->view.lanes;
  bool enough = !step->by_curvature && !potential->network;
  if (enough && !potential->conjugate) return;
  if (enough) {
    potential_ceiling(potential, reference, step->bound, NULL);
    step_size_by_evidence(step, potential, step->checked);
    for (int n = 0; n < lanes; n++) enough = enough && step->checked[n] * step->bound[n] < step->limit;
  }
  if (!enough) potential_ceiling(potential, reference, step->bound, step->scratch);
}

double step_size_operations(const StepSize *step, int d) {
  const double square = (double)d * d * (d + 1);
  return step->by_curvature ? 2 * square : 0;
}

/* Computes h <- SAFE / bound where h bound >= limit. */
SIMD_CLONES
static void step_size_shorten(int lanes, double limit, const double *restrict bound, double *restrict h,
                              double *restrict shortened) {
  for (int n = 0; n < lanes; n++) {
    int far = h[n] * bound[n] >= limit;
    h[n] = far ? SAFE / (bound[n] > DBL_MIN ? bound[n] : DBL_MIN) : h[n];
    shortened[n] = far ? 1 : shortened[n];
  }
}

/* Keeps h lambda_max below the limit, for the matrix M or with `gram` for M'M; step->checked holds a cheap
 * bound on lambda_max. The fine bound costs two products, so it is computed only if some lane needs it and
 * used only in such lanes; never for a network's matrices. */
static void step_size_keep_stable(StepSize *step, int d, int lanes, const double *matrix, bool gram,
                                  double limit, double *h) {
  bool all = true;
  for (int n = 0; n < lanes; n++) all = all && h[n] * step->checked[n] < limit;
  if (all) return;
  if (step->scratch) {
    double *fine = step->trial, *square = step->scratch + 2 * d * d * lanes;
    if (gram) linalg_lanes_gram(d, lanes, matrix, square);
    linalg_lanes_fine_bound(d, lanes, gram ? square : matrix, fine, step->scratch);
    for (int n = 0; n < lanes; n++)
      if (h[n] * step->checked[n] >= limit) step->checked[n] = fine[n];
  }
  step_size_shorten(lanes, limit, step->checked, h, step->shortened);
}

/* Computes h[n] by the rule `lambda_max`. */
static void step_size_by_curvature(const StepSize *step, int lanes, double *h) {
  for (int n = 0; n < lanes; n++) h[n] = step->size / fmax(step->bound[n], DBL_MIN);
}

void step_size_choose(StepSize *step, Potential *potential, const StepPoint *at, double *h,
                      int64_t *fallbacks) {
  const int d = potential->d, lanes = potential->view.lanes;
  const HistoryView *view = &potential->view;
  memset(step->shortened, 0, (size_t)lanes * sizeof *step->shortened);
  if (step->by_curvature)
    step_size_by_curvature(step, lanes, h);
  else
    step_size_by_evidence(step, potential, h);
  if (potential->conjugate || potential->network)
    step_size_shorten(lanes, step->limit, step->bound, h, step->shortened);
  if (at->hessian) {
    if (step->scratch)
      linalg_lanes_moment_bound(d, lanes, at->hessian, step->checked);
    else
      linalg_lanes_coarse_bound(d, lanes, at->hessian, step->checked);
    step_size_keep_stable(step, d, lanes, at->hessian, false, step->limit, h);
  }
  if (at->factor) {
    memcpy(step->checked, at->factor_bound, (size_t)lanes * sizeof *at->factor_bound);
    step_size_keep_stable(step, d, lanes, at->factor, true, 1, h);
  }
  if (potential->self_concordance > 0) { /* keeps to the part of the step that can be trusted */
    for (int i = 0; i < d; i++)
      for (int n = 0; n < lanes; n++) step->trial[i * lanes + n] = h[n] * at->gradient[i * lanes + n];
    potential_trust(potential, step->trial, step->checked);
    for (int n = 0; n < lanes; n++) {
      h[n] *= step->checked[n];
      if (step->checked[n] < 1) step->shortened[n] = 1;
    }
  }
  if (step->by_curvature) return;
  for (int n = 0; n < lanes; n++)
    if (step->shortened[n] > 0) fallbacks[(view->first + n) / view->draws]++;
}
