/* Linear Thompson sampling as the VITS paper runs it (Agrawal and Goyal 2013): draws from N(V^-1 b, V^-1 /
 * eta), V = lambda I + X'X, which is the target exp(-U) of potential.h when that is quadratic. With `eta:
 * auto` and lambda = 1 it is the posterior, and the method is that of `ts`.
 *
 * A draw uses d normals of its stream. */
#include "core/linalg.h"
#include "core/memory.h"
#include "sampler/chunk.h"
#include "sampler/methods.h"
#include "sampler/potential.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  Potential potential;
  double *normal; /* [d, n] */
  int *rescues; /* [n] */
} Lints;

static void lints_destroy(Sampler *sampler) {
  Lints *self = sampler->state;
  potential_destroy(&self->potential);
  free(self->normal);
  free(self->rescues);
  free(self);
}

static Status lints_create(Sampler *sampler, const SamplerSetup *setup) {
  Lints *self;
  NEW(self, 1);
  sampler->state = self;
  TRY(potential_create(setup, CHUNK_LANES, &self->potential));
  NEW(self->normal, (size_t)sampler->d * CHUNK_LANES);
  NEW(self->rescues, CHUNK_LANES);
  return STATUS_OK;
}

/* With the precision P = L L': theta = L^-T (L^-1 b + z). */
static void lints_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                         int64_t *fallbacks) {
  Lints *self = sampler->state;
  double *factor = self->potential.precision, *mean = self->potential.vector;
  const int d = sampler->d;
  for (Chunk chunk = chunk_begin(rng); chunk.lanes > 0; chunk_next(&chunk, rng)) {
    potential_at(&self->potential, &(HistoryView){history, draws, chunk.first, chunk.lanes, NULL, NULL});
    memset(self->rescues, 0, CHUNK_LANES * sizeof *self->rescues);
    linalg_cholesky_lanes(d, chunk.lanes, factor, self->rescues);
    linalg_forward_lanes(d, chunk.lanes, factor, mean);
    rng_lanes_normal(&chunk.rng, d, self->normal);
    for (int i = 0; i < d * chunk.lanes; i++) self->normal[i] += mean[i];
    linalg_backward_lanes(d, chunk.lanes, factor, self->normal);
    chunk_store(&chunk, d, self->normal, theta);
    for (int n = 0; n < chunk.lanes; n++) fallbacks[(chunk.first + n) / draws] += self->rescues[n];
  }
}

static const ConfigKey KEYS[] = {POTENTIAL_KEYS, {.name = NULL}};

const SamplerOps sampler_lints = {
    .name = "lints",
    .summary = "Linear Thompson sampling: draws from the Gaussian of precision eta (lambda I + X'X)",
    .reference = "Agrawal and Goyal (2013); VITS paper, Section 4.1",
    .default_prior = "standard",
    .needs = NEEDS_GAUSSIAN | NEEDS_CONJUGATE,
    .exact = true,
    .keys = KEYS,
    .create = lints_create,
    .destroy = lints_destroy,
    .sample = lints_sample,
};
