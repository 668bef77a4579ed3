/* The baseline `smc` of tilted transport: draws from nu_t ~ p_t(x) exp(b_t' x - x' Q_t x / 2), the law of one
 * stage of a chain under a quadratic tilt, by tempered sequential Monte Carlo (smc_tempered.c). Each run has
 * its own cloud, from which its draws are picked. */
#pragma once

#include "sampler/sampler.h"

typedef struct TiltCloud TiltCloud;

/* Creates clouds of `particles`. Returns STATUS_INPUT, with a sentence, if the chain has no density. */
Status tilt_cloud_create(Arena *memory, const SamplerSetup *setup, int particles, TiltCloud **out);
/* Returns the cost of the clouds of `tilted` (sampler.h, `cost`). */
double tilt_cloud_cost(const SamplerWork *work);

/* Makes M draws for one run at stage t into s[d, stride], given basis[d, d], q[d] and b[d] of the tilt there.
 * `rng` has the run's streams at position 0; `run` is its index in `history`. Returns the effective sample
 * size. */
double tilt_cloud_draw(TiltCloud *cloud, int t, const double *basis, const double *q, const double *b,
                       const History *history, int run, RngLanes rng, int stride, double *s,
                       int64_t *fallbacks);
