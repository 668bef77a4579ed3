/* The posterior under a mixture of Gaussians: exact with a conjugate likelihood (mixture_exact.c), and with
 * any other approximated component by component (mixture_approximate.c).
 *
 * With evidence (Lambda, b) the posterior is a mixture again, with new weights
 * (model/mixture/mixture_evidence.h; Hong et al. 2022, Thompson sampling with a mixture prior).
 *
 * With `candidates` J > 1 a draw is one of J draws theta from that mixture, made a little wider, each from
 * some component c: one is kept with probability proportional to p(y | theta) over its approximation under c,
 * and to the ratio of the densities of c before and after widening (core/reservoir.h). For large J the draws
 * are therefore from the posterior itself, whatever the approximation; a few candidates are enough if it is
 * good. Where expectation propagation itself shows that it is not (ep_widen), as with clicks that are all
 * alike under a wide prior, the draw is moved by steps that leave the posterior under its component as it is
 * (sampler/mixture/slice.h); moments, which have no draws, then count as a fallback. */
#pragma once

#include "io/config/config_rows.h"
#include "model/history/history.h"
#include "model/mixture/mixture.h"

typedef struct MixturePosterior MixturePosterior;

/* Options for a likelihood that is not conjugate. */
typedef struct {
  bool laplace;
  int candidates; /* J >= 1 */
  bool forgets; /* histories forget (model/history/history_filtered.c) */
  int keep; /* at least this many of the last rows are not forgotten */
  bool alone; /* as in SamplerSetup */
  bool strict; /* moments that may be off by a fifth count as a fallback too */
} MixtureOptions;

/* Returns the values of these options, or the defaults if `options` is NULL or does not have them. */
MixtureOptions mixture_posterior_options(const Config *options);
/* Does the work of sampler_check: `memory` excludes some other options. */
Status mixture_posterior_check(const Config *options, const Likelihood *likelihood);
/* Returns whether these options, which may be NULL, make histories forget: only rows can be forgotten. */
bool mixture_posterior_forgets(const Config *options, const Likelihood *likelihood);
/* The keys of these options, to be included in a sampler's own keys. */
#define MIXTURE_POSTERIOR_KEYS                                                                               \
  {WORD("approximation", "ep",                                                                               \
        "approximation of the posterior if rewards are not Gaussian, for each component of the prior: ep, "  \
        "expectation propagation; laplace, as in the papers"),                                               \
   .words = "ep laplace"},                                                                                   \
      {INT("candidates", 1, 100000, "auto",                                                                  \
           "candidates per draw by ep, of which one is kept by likelihood; 1: the approximation itself; "    \
           "auto: 8, or 1 with memory: filtered"),                                                           \
       .words = "auto"},                                                                                     \
      {WORD("memory", "full",                                                                                \
            "what is kept if rewards are not Gaussian: full, all observations; filtered, the Gaussians "     \
            "with which ep replaces them one by one; {keep: N}, these and the last N observations"),         \
       .words = "full filtered", .parts = true},                                                             \
  {                                                                                                          \
    INT("memory.keep", 1, 1000000, NULL,                                                                     \
        "observations kept unchanged; older ones are replaced by Gaussians, N at a time")                    \
  }

/* Returns whether the posterior of every mixture is exact under this likelihood. */
bool mixture_posterior_is_exact(const Likelihood *likelihood);
/* Returns whether draws of this history can be moved by slice steps: the posterior is approximate, and all
 * observations are kept. */
bool mixture_posterior_has_steps(const History *history);
/* Creates the posterior for histories of at most `runs` runs; the prior must outlive it. */
Status mixture_posterior_create(Arena *memory, const Mixture *prior, const Likelihood *likelihood, int runs,
                                MixtureOptions options, MixturePosterior **out);
/* Sets the number of slice steps from now on, for comparisons that show how many suffice; this and the next
 * are for likelihoods that are not conjugate. */
void mixture_posterior_set_steps(MixturePosterior *self, int steps);
/* Returns whether slice steps have moved any of the draws of the last mixture_posterior_sample. */
bool mixture_posterior_moved(const MixturePosterior *self);
/* Multiplies the standard deviations of draws from this component by `factor` from now on. */
void mixture_posterior_scale_component(MixturePosterior *self, int component, double factor);
/* Draws theta[d, N] as sampler_sample does, and sets component[N], unless it is NULL, to the component that
 * each draw is from. A draw uses 1 uniform and d normals of its stream; with several candidates each of them
 * uses these and one more uniform. */
void mixture_posterior_sample(MixturePosterior *self, const History *history, RngLanes rng, int draws,
                              double *theta, int *component, int64_t *fallbacks);
/* Returns the logarithm of the evidence of all components together (mixture_posterior_evidence) for a run of
 * the last mixture_posterior_sample, which made several draws of each. */
double mixture_posterior_marginal(const MixturePosterior *self, int run);
/* Computes mean[d, B] and covariance[d, d, B] of these draws (with several candidates, of the approximation)
 * in closed form, with a fallback where that is not to be trusted, for draws from components first .. end - 1
 * alone, with their weights scaled to add up to 1. */
void mixture_posterior_moments(MixturePosterior *self, const History *history, int first, int end,
                               double *mean, double *covariance, int64_t *fallbacks);
/* Computes log_evidence[C, B]: the logarithm of the weight of each component times the mean likelihood under
 * it. With a conjugate likelihood it is exact up to half the residual (history_residual); with any other it
 * is approximate, with a fallback where that is not to be trusted, and up to what history_log_likelihood
 * leaves out. */
void mixture_posterior_evidence(MixturePosterior *self, const History *history, double *log_evidence,
                                int64_t *fallbacks);
/* Computes log_evidence[C, N] of N histories that have the precision of run `run` of this one, whose
 * likelihood is conjugate, but each its own b[d, N]: the matrices are factored once. Scratch: whitened[d, N].
 */
void mixture_posterior_evidence_shared(MixturePosterior *self, const History *history, int run, int lanes,
                                       const double *b, double *whitened, double *log_evidence);
/* Returns the logarithm of the summed evidence of this many components, whose entries are `stride` apart. */
double mixture_posterior_log_sum(int components, int stride, const double *log_evidence);
