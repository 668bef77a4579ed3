/* The updates of Langevin chains in a round (lmc.c): theta <- theta - h grad U(theta) + sqrt(2 h) z.
 *
 * With the feel-good term of Feel-Good Thompson sampling (Zhang 2022), mu max_a phi(x_s, a)' theta is
 * subtracted from U for every round s: the best reward that theta promises in that round. A history holds
 * only the arms that were played, not all that were available. So the maximum is taken over the ball that the
 * features lie in, where it is R |theta| with R the root mean square length of the features seen so far:
 * close to the truth if the arms fill a ball, and a stand-in otherwise. Zhang's cap on the term is left out,
 * since the prior outweighs a term that grows linearly. eta multiplies the term as it does the loss. If
 * rewards are not Gaussian, the natural parameter phi' theta takes the place of the reward.
 *
 * N lanes, lane last; a lane is one chain. */
#pragma once

#include "sampler/gradient/step_size.h"

typedef struct {
  Potential potential;
  double *theta; /* [d, B M] in chunks, lane last within each: the chains; z if the potential is whitened */
  StepSize step;
  double feel_good; /* mu; 0: none */
  double *gradient, *normal, *h, *pull; /* [d, n], [d, n], [n], [n] */
  double *hessian; /* [d, d, n]; NULL with a network */
  /* NULL unless the potential is quadratic: normals drawn ahead; scratch for a vector of chains; 1 over the
   * distance that a coordinate may have from the start's mean. */
  double *normals, *chains, *guard_unit; /* [10, d, n], [d (d + 3)] vectors, [d] */
} Lmc;

/* Creates chains, which are updated CHUNK_LANES at once. The potential is whitened if the rule of the steps
 * looks at the curvature. Reads the option `optimism` if there is one, and the keys of potential.h and
 * step_size.h. */
Status lmc_step_create(Arena *memory, const SamplerSetup *setup, Lmc *out);

/* Makes all updates of a round of theta[d, n], for the lanes of the potential's view, with d normals of every
 * stream for each. */
void lmc_step_round(Lmc *work, RngLanes *rng, double *theta, int64_t *fallbacks);
