/* The unconditional reverse process of a chain, from any stage on, with no evidence in it.
 *
 * `moments`: s_{t-1} given s_t as a Gaussian with the mean and covariance that the chain gives it,
 *
 *   N(w0 s0_hat + wt s_t, beta_tilde_t I + w0^2 C_t),
 *
 * by the moments of the clean sample (denoised_moments.h); exact for Gaussian priors at any number of stages.
 * Where the C_t of a learned predictor is no covariance, the least eigenvalues are raised. `exponential`: the
 * exponential integrator of the reverse equation dx = (x + 2 score) ds + sqrt(2) dw, which freezes the score
 * over a stage and solves the rest exactly, so that its law is off by an error of first order in h,
 *
 *   x' = e^h x + 2 (e^h - 1) score + sqrt(e^2h - 1) normal,  e^h = 1 / sqrt(alpha_t).
 *
 * Where the chain can draw the clean sample exactly, one such draw is the whole process. */
#pragma once

#include "core/arena.h"
#include "sampler/chunk.h"
#include "sampler/diffusion/denoised_moments.h"
#include "sampler/sampler.h"

/* n <= CHUNK_LANES lanes, lane last, in the chain's coordinates. */
typedef struct {
  const Chain *chain;
  bool exponential;
  DenoisedMoments moments;
  int *lane; /* [n]: those that a stage is about */
  double *z, *s, *normal, *eps; /* [d, n]; the last three of the lanes at hand */
  double *covariance, *repaired; /* [d, d, n], [2 d + 1, d]; of `moments` */
  int *jitters; /* [n] */
} TiltReverse;

Status tilt_reverse_create(Arena *memory, const SamplerSetup *setup, bool exponential, TiltReverse *out);

/* Takes one stage of `count` lanes: self->s[d, count], s_t before and s_{t-1} after, from the standard
 * normals self->normal[d, count]. */
void tilt_reverse_stage(TiltReverse *self, int t, int count);

/* Runs from stage[n] (0: nothing to do) to the clean sample, in place on s[d, n]. The streams are those of
 * REVERSE that belong to the chunk's: d normals for each of the stages, at positions of their own. */
void tilt_reverse_run(TiltReverse *self, const Chunk *chunk, const int *stage, double *s, int64_t *fallbacks);
/* Takes one stage of `exponential`, from t to t - 1, in place on s[d, n]; eps[d, n] is scratch. */
void tilt_reverse_exponential(const Chain *chain, int t, int count, double *s, const double *normal,
                              double *eps);
