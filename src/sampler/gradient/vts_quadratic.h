/* The steps of vts_bound.h where U is quadratic, for VECTOR_LANES runs side by side: the same ascent, with
 * the Cholesky factor of the precision taken once and the products that a step leaves kept for the next.
 * Runs halve their steps by themselves, and rest when their bound no longer rises; exponentials and
 * logarithms are those of core/special.h, so results agree with vts_bound.h to rounding. */
#ifndef SAMPLER_GRADIENT_VTS_QUADRATIC_H
#define SAMPLER_GRADIENT_VTS_QUADRATIC_H

#include "core/arena.h"
#include "core/special.h"
#include "sampler/gradient/potential.h"

typedef struct {
  const Potential *potential; /* not owned */
  int components; /* M */
  SpecialReal *scratch;
} VtsQuadratic;

Status vts_quadratic_create(Arena *memory, const Potential *potential, int components, VtsQuadratic *out);

/* At most `steps` steps of every run of the potential's view (one draw for each), while each raises F by more
 * than `enough`. Of these runs: weight[n, M], mean[n, M, d], variance[n, M, d]; jittered factorisations are
 * added to fallbacks[n]. */
void vts_quadratic_fit(VtsQuadratic *self, int steps, double enough, double *weight, double *mean,
                       double *variance, int64_t *fallbacks);

#endif
