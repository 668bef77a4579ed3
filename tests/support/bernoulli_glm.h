/* Observation 1 of the task bernoulli_glm of a public benchmark of simulation-based inference (Lueckmann et
 * al. 2021, sbi-benchmark/sbibm, MIT licence): 100 clicks in 10 dimensions, and the moments of the posterior,
 * by importance sampling (effective size 286 789, standard errors up to 0.0012) and by expectation
 * propagation at its fixed point, both from NumPy programs that share no code with this one. */
#pragma once

#include "sampler_fixture.h"

enum { GLM_D = 10, GLM_ROWS = 100 };

/* Means and standard deviations of the posterior and of EP's Gaussian, and the logs of their evidence. */
extern const double GLM_MEAN[GLM_D], GLM_SD[GLM_D], GLM_EP_MEAN[GLM_D], GLM_EP_SD[GLM_D];
extern const double GLM_LOG_EVIDENCE, GLM_EP_LOG_EVIDENCE;

/* Fills in precision[D, D] of the prior, whose mean is 0: variance 2 of the first entry, and F'F of the
 * others, F = B B + diag(sqrt(i / 9)), B = I with -1 below the diagonal. */
void glm_prior_precision(double *precision);

/* Computes row l: 1, then the stimulus at l and before; returns its click. */
double glm_row(int l, double phi[GLM_D]);

/* Returns the history, `runs` times side by side; `likelihood` is logistic and outlives it. */
History glm_history(Arena *memory, int runs, const Likelihood *likelihood);
