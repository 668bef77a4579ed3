#include "sampler/irls.h"

#include "core/linalg.h"
#include "core/memory.h"
#include "core/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Status irls_create(int d, int capacity, double tolerance, Irls *out) {
  const size_t vector = (size_t)d * (size_t)capacity;
  *out = (Irls){.d = d, .capacity = capacity, .tolerance = tolerance};
  NEW(out->gradient, vector);
  NEW(out->step, vector);
  NEW(out->factor, vector * (size_t)d);
  NEW(out->reach, capacity);
  NEW(out->decrement, capacity);
  NEW(out->settled, capacity);
  NEW(out->rescues, capacity);
  return STATUS_OK;
}

void irls_destroy(Irls *irls) {
  free(irls->gradient);
  free(irls->step);
  free(irls->factor);
  free(irls->reach);
  free(irls->decrement);
  free(irls->settled);
  free(irls->rescues);
}

/* out[n] = a + b. */
SIMD_CLONES
static void add(size_t n, const double *restrict a, const double *restrict b, double *restrict out) {
  for (size_t k = 0; k < n; k++) out[k] = a[k] + b[k];
}

/* factor = P + Lambda, and its Cholesky factor. */
static void factorise(Irls *irls, int lanes, const double *prior_precision, const double *precision) {
  add((size_t)(irls->d * irls->d) * (size_t)lanes, prior_precision, precision, irls->factor);
  memset(irls->rescues, 0, (size_t)lanes * sizeof *irls->rescues);
  linalg_cholesky_lanes(irls->d, lanes, irls->factor, irls->rescues);
}

/* The mode under the evidence to start from. */
static void start(Irls *irls, int lanes, const double *prior_precision, const double *prior_vector,
                  const double *precision, const double *vector, double *z) {
  add((size_t)(irls->d * lanes), prior_vector, vector, z);
  factorise(irls, lanes, prior_precision, precision);
  linalg_solve_lanes(irls->d, lanes, irls->factor, z);
}

/* gradient += h - P z: of the log posterior. */
SIMD_CLONES
static void add_prior(int d, int lanes, const double *restrict prior_precision,
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

/* out[lanes] = a' b. */
SIMD_CLONES
static void inner_product(int d, int lanes, const double *restrict a, const double *restrict b,
                          double *restrict out) {
  for (int n = 0; n < lanes; n++) out[n] = 0;
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++) out[n] += a[i * lanes + n] * b[i * lanes + n];
}

/* The pass at z: evidence as (Lambda, g), Cholesky factor, step, delta^2 and R of every lane. */
static void newton_step(Irls *irls, const HistoryView *view, const double *prior_precision,
                        const double *prior_vector, const double *z, double *precision, double *g) {
  const int d = irls->d, lanes = view->lanes;
  const size_t bytes = (size_t)(d * lanes) * sizeof *g;
  const double bend = view->history->likelihood->ops->bend;
  history_derivatives(view, z, irls->settled, g, precision);
  memcpy(irls->gradient, g, bytes);
  add_prior(d, lanes, prior_precision, prior_vector, z, irls->gradient);
  factorise(irls, lanes, prior_precision, precision);
  memcpy(irls->step, irls->gradient, bytes);
  linalg_solve_lanes(d, lanes, irls->factor, irls->step);
  inner_product(d, lanes, irls->gradient, irls->step, irls->decrement);
  if (bend > 0) history_reach(view, irls->step, IRLS_FULL_STEP / bend, irls->reach);
  for (int n = 0; n < lanes; n++) irls->reach[n] = bend > 0 ? bend * irls->reach[n] : 0;
}

/* Settle the lanes that are near enough, move the others; returns how many those are. */
static int move(Irls *irls, int lanes, double *z) {
  int moving = 0;
  for (int n = 0; n < lanes; n++) {
    double reach = irls->reach[n], left = reach * sqrt(fmax(irls->decrement[n], 0));
    if (irls->settled[n]) continue;
    irls->settled[n] = left <= irls->tolerance && reach <= 0.5;
    if (irls->settled[n]) continue;
    double length = reach <= IRLS_FULL_STEP ? 1 : log1p(reach) / reach;
    for (int i = 0; i < irls->d; i++) z[i * lanes + n] += length * irls->step[i * lanes + n];
    moving++;
  }
  return moving;
}

/* The evidence at z, from (Lambda, g) to (Lambda, b), and the last step. Where a lane has not settled b is
 * such that z is the mode. */
static void finish(const Irls *irls, const HistoryView *view, double *z, const double *precision, double *b,
                   int64_t *fallbacks) {
  const int d = irls->d, lanes = view->lanes;
  for (int n = 0; n < lanes; n++)
    fallbacks[(view->first + n) / view->draws] += irls->rescues[n] + (irls->settled[n] ? 0 : 1);
  for (int i = 0; i < d; i++) {
    for (int n = 0; n < lanes; n++)
      if (!irls->settled[n]) b[i * lanes + n] -= irls->gradient[i * lanes + n];
    for (int j = 0; j < d; j++)
      for (int n = 0; n < lanes; n++)
        b[i * lanes + n] += precision[(i * d + j) * lanes + n] * z[j * lanes + n];
  }
  for (int i = 0; i < d; i++)
    for (int n = 0; n < lanes; n++)
      if (irls->settled[n]) z[i * lanes + n] += irls->step[i * lanes + n];
}

void irls_solve(Irls *irls, const HistoryView *view, const double *prior_precision,
                const double *prior_vector, double *precision, double *vector, double *mode,
                int64_t *fallbacks) {
  const int lanes = view->lanes;
  ASSERT(lanes <= irls->capacity && view->history->d == irls->d);
  for (int n = 0; n < lanes; n++) irls->settled[n] = false;
  start(irls, lanes, prior_precision, prior_vector, precision, vector, mode);
  newton_step(irls, view, prior_precision, prior_vector, mode, precision, vector);
  for (int pass = 1; pass < IRLS_PASSES && move(irls, lanes, mode) > 0; pass++)
    newton_step(irls, view, prior_precision, prior_vector, mode, precision, vector);
  finish(irls, view, mode, precision, vector, fallbacks);
}
