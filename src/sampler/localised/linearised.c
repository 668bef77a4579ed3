#include "sampler/localised/linearised.h"

#include "core/linalg.h"

#include <math.h>
#include <string.h>

/* How often the Gaussian is found; the first is right where the prior is one. */
enum { PASSES = 5 };
/* What the Gaussian may have, in the coordinates of the denoiser. */
static const double LEAST_PRECISION = 1e-3, LEAST_VARIANCE = 1e-9;

Status linearised_create(Arena *memory, int d, Linearised *out) {
  const size_t vector = (size_t)d * DENOISER_LANES, matrix = (size_t)d * vector;
  *out = (Linearised){0};
  TRY(irls_create(memory, d, DENOISER_LANES, 1e-2, &out->irls));
  TRY(ep_create(memory, d, DENOISER_LANES, EP_TOLERANCE, &out->ep));
  ALLOCATE(memory, out->lane_fallbacks, DENOISER_LANES);
  ALLOCATE_ARRAYS(memory, matrix, double, &out->scratch, &out->precision, &out->basis, &out->prior_precision);
  ALLOCATE_ARRAYS(memory, vector, double, &out->vector, &out->eigenvalue, &out->prior_vector);
  ALLOCATE(memory, out->log_evidence, DENOISER_LANES);
  return STATUS_OK;
}

/* Finds the Gaussian in the prior's place: with it mean and covariance of the posterior under the evidence
 * are D and C. Where C is wider than such a Gaussian can make it, between modes, the Gaussian is a wide one
 * that keeps D. */
static void find_gaussian(Linearised *self, Localisation *walk, int lanes) {
  const int d = walk->denoiser->d, entries = d * lanes;
  memcpy(self->scratch, self->vector, (size_t)entries * sizeof *self->vector);
  localisation_moments(walk, 0, lanes, self->basis, self->eigenvalue, self->scratch, self->lane_fallbacks);
  for (int i = 0; i < entries; i++) self->eigenvalue[i] = 1 / fmax(walk->variance[i], LEAST_VARIANCE);
  denoiser_spectral(d, lanes, walk->axes, self->eigenvalue, self->prior_precision);
  for (int i = 0; i < d * entries; i++) self->prior_precision[i] -= self->precision[i];
  linalg_eigen_lanes(d, lanes, self->prior_precision, self->basis, self->eigenvalue);
  for (int i = 0; i < entries; i++) self->eigenvalue[i] = fmax(self->eigenvalue[i], LEAST_PRECISION);
  denoiser_spectral(d, lanes, self->basis, self->eigenvalue, self->prior_precision);
  for (int i = 0; i < d * entries; i++) self->scratch[i] = self->prior_precision[i] + self->precision[i];
  linalg_multiply_lanes(d, lanes, self->scratch, walk->mean, self->prior_vector);
  for (int i = 0; i < entries; i++) self->prior_vector[i] -= self->vector[i];
}

/* Computes basis and eigenvalue of the precision. */
static void decompose(Linearised *self, int d, int lanes) {
  linalg_eigen_lanes(d, lanes, self->precision, self->basis, self->eigenvalue);
  for (int i = 0; i < d * lanes; i++) self->eigenvalue[i] = fmax(self->eigenvalue[i], 0); /* rounding */
}

/* Finds the evidence for runs, draws = 1: expectation propagation from the mode under the prior's Gaussian,
 * then under the Gaussian that the prior is there, and again. */
static void find_evidence_of_runs(Linearised *self, Localisation *walk, const HistoryView *view,
                                  int64_t *fallbacks) {
  const int d = walk->denoiser->d, lanes = view->lanes;
  localisation_no_evidence(d, lanes, self->basis, self->eigenvalue, self->vector);
  memset(self->precision, 0, (size_t)(d * d * lanes) * sizeof *self->precision);
  find_gaussian(self, walk, lanes);
  irls_solve(&self->irls, view, self->prior_precision, self->prior_vector, self->precision, self->vector,
             self->scratch, fallbacks);
  for (int pass = 1; pass <= PASSES; pass++) {
    if (pass > 1) find_gaussian(self, walk, lanes);
    ep_solve(&self->ep, view, self->prior_precision, self->prior_vector, self->precision, self->vector,
             self->log_evidence, fallbacks);
    decompose(self, d, lanes);
  }
}

void linearised_find(Linearised *self, Localisation *walk, const HistoryView *view, int64_t *fallbacks) {
  const int d = walk->denoiser->d, first = view->first / view->draws / TILE_LANES * TILE_LANES;
  const int runs = (view->first + view->lanes - 1) / view->draws - first + 1;
  const HistoryView once = {view->history, 1, first, runs, view->shift, view->scale};
  ASSERT(runs <= DENOISER_LANES);
  find_evidence_of_runs(self, walk, &once, fallbacks);
  history_repeat_runs(view, first, runs, d * d, self->precision, self->scratch);
  history_repeat_runs(view, first, runs, d * d, self->basis, self->scratch);
  history_repeat_runs(view, first, runs, d, self->eigenvalue, self->scratch);
  history_repeat_runs(view, first, runs, d, self->vector, self->scratch);
}

void linearised_log_ratio(Linearised *self, const HistoryView *view, const double *draw, double *out) {
  const int d = view->history->d, lanes = view->lanes;
  history_log_likelihood(view, draw, out, NULL);
  linalg_multiply_lanes(d, lanes, self->precision, draw, self->scratch);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      out[n] -= draw[i * lanes + n] * (self->vector[i * lanes + n] - 0.5 * self->scratch[i * lanes + n]);
}
