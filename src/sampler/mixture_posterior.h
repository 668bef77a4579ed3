/* The posterior under a mixture of Gaussians: exact with a conjugate likelihood, by the Laplace approximation
 * of every component (irls.h) with any other.
 *
 * With evidence (Lambda, b) the posterior is a mixture again, with new weights (model/mixture_evidence.h;
 * Hong et al. 2022, Thompson sampling with a mixture prior).
 *
 * Under the Laplace approximation every component has evidence of its own, taken at its own mode m: the log
 * likelihood near m is l(m) - b' m + m' Lambda m / 2 + b' theta - theta' Lambda theta / 2, and the first
 * three terms are added to the logarithm of the weight. That makes it the Laplace evidence of the component.
 */
#ifndef SAMPLER_MIXTURE_POSTERIOR_H
#define SAMPLER_MIXTURE_POSTERIOR_H

#include "core/arena.h"
#include "core/rng.h"
#include "model/history.h"
#include "model/mixture.h"

typedef struct MixturePosterior MixturePosterior;

/* For histories of at most `runs` runs; the prior outlives it. */
Status mixture_posterior_create(Arena *memory, const Mixture *prior, const Likelihood *likelihood, int runs,
                                MixturePosterior **out);
/* From now on `factor` multiplies the standard deviations of draws that are from this component. */
void mixture_posterior_shrink(MixturePosterior *state, int component, double factor);
/* As sampler_sample: theta[d, N]; component[N], unless it is NULL, is the one that each draw is from. A draw
 * uses 1 uniform and d normals of its stream. */
void mixture_posterior_sample(MixturePosterior *state, const History *history, RngLanes rng, int draws,
                              double *theta, int *component, int64_t *fallbacks);
/* mean[d, B] and covariance[d, d, B] of these draws, in closed form: of those from components first .. end -
 * 1 alone, whose weights are taken to add up to 1. */
void mixture_posterior_moments(MixturePosterior *state, const History *history, int first, int end,
                               double *mean, double *covariance, int64_t *fallbacks);
/* log_evidence[C, B]: the logarithm of the weight of each component times the mean likelihood under it; with
 * a conjugate likelihood up to half the residual (history_residual), with any other up to what
 * history_log_likelihood leaves out. */
void mixture_posterior_evidence(MixturePosterior *state, const History *history, double *log_evidence,
                                int64_t *fallbacks);

#endif
