#include "sampler/localised/linearised.h"

#include "core/arena.h"
#include "core/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Passes of the fixed point before a step, at most, and the last move of a coordinate, in its standard
 * deviations, up to which it has settled. There are two at least; from the third on lanes move by half of the
 * way, as they may go to and fro between two modes. */
enum { PASSES = 10 };
static const double SETTLED = 0.5;

Status linearised_create(Arena *memory, int d, Linearised *out) {
  const size_t vector = (size_t)d * DENOISER_LANES, matrix = (size_t)d * vector;
  *out = (Linearised){0};
  TRY(irls_create(memory, d, DENOISER_LANES, 1e-3, &out->irls));
  ALLOCATE(memory, out->settled, DENOISER_LANES);
  ALLOCATE(memory, out->lane_fallbacks, DENOISER_LANES);
  ALLOCATE(memory, out->z, vector);
  ALLOCATE(memory, out->added, vector);
  ALLOCATE(memory, out->gradient, vector);
  ALLOCATE(memory, out->precision, matrix);
  ALLOCATE(memory, out->vector, vector);
  ALLOCATE(memory, out->basis, matrix);
  ALLOCATE(memory, out->eigenvalue, vector);
  ALLOCATE(memory, out->prior_precision, matrix);
  ALLOCATE(memory, out->prior_vector, vector);
  return STATUS_OK;
}

/* Starts z at the mode under the Gaussian N(D, C) of the prior. */
static void start(Linearised *self, Localisation *walk, const HistoryView *view, int *lane_fallbacks,
                  int64_t *fallbacks) {
  const int d = walk->denoiser->d, lanes = view->lanes;
  localisation_no_evidence(d, lanes, self->basis, self->eigenvalue, self->vector);
  memset(self->precision, 0, (size_t)(d * d * lanes) * sizeof *self->precision);
  localisation_moments(walk, 0, lanes, self->basis, self->eigenvalue, self->vector, lane_fallbacks);
  for (int i = 0; i < d * lanes; i++) self->eigenvalue[i] = 1 / fmax(walk->variance[i], 1e-9);
  denoiser_spectral(d, lanes, walk->axes, self->eigenvalue, self->prior_precision);
  linalg_multiply_lanes(d, lanes, self->prior_precision, walk->mean, self->prior_vector);
  irls_solve(&self->irls, view, self->prior_precision, self->prior_vector, self->precision, self->vector,
             self->z, fallbacks);
}

/* Computes vector, basis and eigenvalue at z. */
static void linearise(Linearised *self, int d, const HistoryView *view) {
  const int lanes = view->lanes;
  history_derivatives(view, self->z, NULL, self->gradient, self->precision);
  linalg_multiply_lanes(d, lanes, self->precision, self->z, self->vector);
  for (int i = 0; i < d * lanes; i++) self->vector[i] += self->gradient[i] + self->added[i];
  linalg_eigen_lanes(d, lanes, self->precision, self->basis, self->eigenvalue);
  for (int i = 0; i < d * lanes; i++) self->eigenvalue[i] = fmax(self->eigenvalue[i], 0); /* rounding */
}

/* Returns whether every coordinate of the mean of lane n is near z. */
static bool is_settled(const Linearised *self, const Localisation *walk, int lanes, int n) {
  const int d = walk->denoiser->d;
  for (int i = 0; i < d; i++) {
    double variance = 0;
    for (int k = 0; k < d; k++)
      variance += walk->variance[k * lanes + n] * pow(walk->axes[(i * d + k) * lanes + n], 2);
    if (!(fabs(walk->mean[i * lanes + n] - self->z[i * lanes + n]) <= SETTLED * sqrt(variance))) return false;
  }
  return true;
}

/* Moves z of the lanes that have not settled to the mean by `share` of the way; returns how many there
 * are. That of the others stays, so that D and C stay what they are. */
static int move(Linearised *self, const Localisation *walk, int lanes, double share) {
  int moving = 0;
  for (int n = 0; n < lanes; n++) {
    self->settled[n] = self->settled[n] || is_settled(self, walk, lanes, n);
    if (self->settled[n]) continue;
    moving++;
    for (int i = n; i < walk->denoiser->d * lanes; i += lanes)
      self->z[i] += share * (walk->mean[i] - self->z[i]);
  }
  return moving;
}

/* Finds D and C of step k, with z at its denoised mean. Only fallbacks of the last pass count: z may be
 * anywhere on its way. */
static void find_moments(Linearised *self, Localisation *walk, int k, const HistoryView *view,
                         int *lane_fallbacks) {
  const int d = walk->denoiser->d, lanes = view->lanes;
  const size_t bytes = (size_t)(d * lanes) * sizeof *self->z;
  memset(self->settled, 0, (size_t)lanes * sizeof *self->settled);
  for (int pass = 1, moving = lanes; pass <= PASSES && moving > 0; pass++) {
    linearise(self, d, view);
    memset(self->lane_fallbacks, 0, (size_t)lanes * sizeof *self->lane_fallbacks);
    localisation_moments(walk, k, lanes, self->basis, self->eigenvalue, self->vector, self->lane_fallbacks);
    if (pass == 1)
      memcpy(self->z, walk->mean, bytes);
    else
      moving = move(self, walk, lanes, pass == 2 ? 1 : 0.5);
  }
  memcpy(self->z, walk->mean, bytes);
  for (int n = 0; n < lanes; n++) lane_fallbacks[n] += self->lane_fallbacks[n] + !self->settled[n];
}

void linearised_find(Linearised *self, Localisation *walk, const HistoryView *view, int64_t *fallbacks) {
  int ignored[DENOISER_LANES] = {0};
  memset(self->added, 0, (size_t)(walk->denoiser->d * view->lanes) * sizeof *self->added);
  start(self, walk, view, ignored, fallbacks);
  find_moments(self, walk, 0, view, ignored);
  linearise(self, walk->denoiser->d, view);
}

void linearised_log_ratio(Linearised *self, const HistoryView *view, const double *draw, double *out) {
  const int d = view->history->d, lanes = view->lanes;
  history_log_likelihood(view, draw, out, NULL);
  linalg_multiply_lanes(d, lanes, self->precision, draw, self->gradient);
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      out[n] -= draw[i * lanes + n] * (self->vector[i * lanes + n] - 0.5 * self->gradient[i * lanes + n]);
}

void linearised_draw(Linearised *self, Localisation *walk, const HistoryView *view, RngLanes *rng, double *z,
                     int *lane_fallbacks, int64_t *fallbacks) {
  const int d = walk->denoiser->d, lanes = view->lanes;
  memset(self->added, 0, (size_t)(d * lanes) * sizeof *self->added);
  start(self, walk, view, lane_fallbacks, fallbacks);
  for (int k = 0; k <= walk->steps; k++) {
    find_moments(self, walk, k, view, lane_fallbacks);
    if (k < walk->steps)
      localisation_observe(walk, k, rng, self->added);
    else
      localisation_end(walk, rng, z);
  }
}
