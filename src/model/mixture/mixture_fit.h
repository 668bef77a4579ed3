/* A mixture of Gaussians fitted to samples of theta (mixture_fit.c). */
#pragma once

#include "model/mixture/mixture.h"

/* Fits by expectation maximisation with full covariances, best of `starts` by likelihood; prepared. The
 * streams of a start are (key, run, round = start). mean_log_likelihood may be NULL. Returns STATUS_INPUT
 * with fewer samples than components. To each variance 1e-6 of itself is added (1e-6 where it is zero): so
 * few or flat samples have a fit too; one component is the Gaussian of their mean and covariance (divided
 * by n). */
Status mixture_fit(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *mean_log_likelihood);
/* Fits until the likelihood rises by a millionth of itself, from the best two starts: for a mixture that
 * stands in for another prior. */
Status mixture_fit_roughly(Arena *memory, int d, int n, const double *theta, int components, int starts,
                           RngKey key, uint32_t run, Mixture *out);

/* Returns the numbers of components to choose from in d dimensions, index = 0, 1, ..: at most 256, falling to
 * 1; 0 ends. */
int mixture_candidate(int d, int index);
/* Returns the most that mixture_try_more tries: at most 1 024. */
int mixture_most(int d);
/* Returns whether n samples are enough for a candidate: d + 1 for each component are, and no less than 8. */
bool mixture_candidate_fits(int d, int n, int components);
/* How many of n samples are held out to choose by: a thousand, in up to ten folds of a tenth each. */
enum { MIXTURE_MOST_HELD_OUT = 2048 };
int mixture_held_out(int n);
int mixture_fold(int n); /* how many a fold has */
/* Tries one candidate, whole and apart from the others: held_out[mixture_held_out(n)] gets the log density
 * of samples under fits to the other folds, the same samples for all candidates, and `out` the fit to all
 * samples, with the streams of mixture_fit. Its covariances have one sample of covariance C^(-2/d) of all
 * samples' variances beside their own, and *shared samples of what all components have in common
 * (EmPlan.shared_items): of 0 to 2 048 as many as the held-out samples' mean log density is highest with. */
Status mixture_try(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *held_out, double *shared);
/* Tries the largest candidate, and twice as many components for as long as that raises the held-out mean by
 * more than a standard error and there are two samples for each parameter. *most is the most that was
 * tried. */
Status mixture_try_more(Arena *memory, int d, int n, const double *theta, int starts, RngKey key,
                        uint32_t run, Mixture *out, double *held_out, double *shared, int *most);

/* Returns the operations of each fit (SamplerOps.cost), in d dimensions, to n samples. */
double mixture_fit_cost(int d, double n, int components, int starts);
double mixture_fit_roughly_cost(int d, double n, int components, int starts);
double mixture_try_cost(int d, double n, int components, int starts);
/* Returns those beyond mixture_try_cost of the largest candidate, if each number that is tried is better. */
double mixture_try_more_cost(int d, double n, int starts);
