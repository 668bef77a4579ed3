/* The unconditional reverse process of a chain, from any stage on, without evidence.
 *
 * `moments`: draws s_{t-1} given s_t from the Gaussian with the mean and covariance that the chain gives it,
 *
 *   N(w0 s0_hat + wt s_t, beta_tilde_t I + w0^2 C_t),
 *
 * computed from the moments of the clean sample (diffusion_moments.h). It is exact for Gaussian priors with
 * any number of stages. If the C_t of a learned predictor is not a covariance, the least eigenvalues are
 * raised. `exponential`: the exponential integrator of the reverse equation dx = (x + 2 score) ds + sqrt(2)
 * dw, which freezes the score over a stage and solves the rest exactly, so that the error of its law is of
 * first order in h,
 *
 *   x' = e^h x + 2 (e^h - 1) score + sqrt(e^2h - 1) normal,  e^h = 1 / sqrt(alpha_t).
 *
 * If the chain can draw the clean sample exactly, one such draw is the whole process. */
#pragma once

#include "core/chunk.h"
#include "model/denoiser/denoiser_chain.h"
#include "sampler/diffusion/diffusion_moments.h"
#include "sampler/sampler.h"

/* n <= lanes lanes, lane last, in the chain's coordinates. */
typedef struct {
  const Chain *chain;
  bool exponential;
  DenoisedMoments moments; /* not with `exponential` if nothing has matrices (SamplerSetup.diagonal) */
  int *lane; /* [n]: the lanes that take part in a stage */
  double *z, *s, *normal, *eps; /* [d, n]; the last three are packed for these lanes */
  double *covariance, *repaired; /* [d, d, n], [2 d + 1, d]; only with `moments` */
  int *jitters; /* [n] */
} TiltReverse;

/* Creates it, for chunks of at most so many lanes. */
Status tilt_reverse_create(Arena *memory, const SamplerSetup *setup, int lanes, bool exponential,
                           TiltReverse *out);

/* Takes one stage in `count` lanes: self->s[d, count] goes from s_t to s_{t-1}, with the standard normals
 * self->normal[d, count]. */
void tilt_reverse_stage(TiltReverse *self, int t, int count);

/* Runs from stage[n] (0: nothing to do) to the clean sample, in place on s[d, n]. The streams are the REVERSE
 * substreams of the chunk's: d normals per stage, each stage at a different position. */
void tilt_reverse_run(TiltReverse *self, const Chunk *chunk, const int *stage, double *s, int64_t *fallbacks);

/* ---- the flow of a quadratic tilt along the Ornstein-Uhlenbeck process (Bruna and Han, Tilted transport,
 * equation 1), in closed form for each eigenvalue of Q.
 *
 * X_s = e^-s X_0 + sqrt(1 - e^-2s) w, so stage t of a chain has alpha_bar_t = e^-2s, and with c = e^2s - 1 =
 * (1 - alpha_bar_t) / alpha_bar_t
 *
 *   q_t = (1 + c) q / (1 - c q),  b_t = sqrt(1 + c) b / (1 - c q):
 *
 * if X_t has the law nu_t ~ p_t(x) exp(b_t' x - x' Q_t x / 2), the reverse process of the prior, without any
 * evidence, takes it to the posterior nu_0. The flow ends where c lambda_max(Q) = 1 (the time T* of the
 * paper); the distance to that end is measured by 1 - c lambda_max. */

/* Returns c of a stage, 0 .. T. */
static inline double tilt_flow_reach(const Schedule *schedule, int t) {
  return (1 - schedule->alpha_bar[t]) / schedule->alpha_bar[t];
}

/* Returns the last stage with c largest <= 1 - margin, at most T; 0 if there is none. */
int tilt_flow_stage(const Schedule *schedule, double largest, double margin);

/* Moves q[n] and b[n], `stride` apart, to their values at c, in place, eigenvalue by eigenvalue; c q < 1.
 * Zeros stay zeros. */
void tilt_flow(int n, int stride, double c, double *q, double *b);
