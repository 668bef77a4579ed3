/* A mixture of Gaussians fitted to samples of theta (mixture_fit.c). */
#pragma once

#include "model/mixture/mixture.h"

/* Fits by expectation maximisation with full covariances, and keeps the best of `starts` by likelihood; the
 * mixture is prepared. The streams of a start are (key, run, round = start). Returns STATUS_INPUT with fewer
 * samples than components. Each variance is raised by 1e-6 of itself (by 1e-6 if it is zero), so few or
 * constant samples have a fit too; one component is the Gaussian of their mean and covariance (divided by
 * n). */
Status mixture_fit(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out);
/* Fits until the likelihood rises by no more than a millionth of itself, from the best two starts: for a
 * mixture that only approximates another prior. */
Status mixture_fit_roughly(Arena *memory, int d, int n, const double *theta, int components, int starts,
                           RngKey key, uint32_t run, Mixture *out);

/* Returns the candidate numbers of components in d dimensions, index = 0, 1, ..: from at most 256 down to 1,
 * then 0. */
int mixture_candidate(int d, int index);
/* Returns the most components that mixture_try_more tries: at most 1 024. */
int mixture_most(int d);
/* Returns whether n samples are enough for a candidate: those outside a fold must be at least d + 1, and at
 * least 8, for each component. */
bool mixture_candidate_fits(int d, int n, int components);
/* How many of n samples are held out to choose by: a thousand, in up to ten folds of a tenth each. */
enum { MIXTURE_MOST_HELD_OUT = 2048 };
int mixture_held_out(int n);
int mixture_fold(int n); /* samples of a fold */
/* Tries one candidate, independently of the others: held_out[mixture_held_out(n)] gets the log density of
 * samples under fits to the samples outside their folds, the same samples for all candidates, and `out` the
 * fit to all samples, with the streams of mixture_fit. In addition to its own samples, each covariance
 * includes one sample whose covariance is C^(-2/d) times the variances of all samples, and *shared samples of
 * what all components have in common (EmPlan.shared_items): the number from 0 to 2 048 for which the mean log
 * density of the held-out samples is highest. */
Status mixture_try(Arena *memory, int d, int n, const double *theta, int components, int starts, RngKey key,
                   uint32_t run, Mixture *out, double *held_out, double *shared);
/* Tries the largest candidate, then doubles the number of components while that raises the held-out mean by
 * more than a standard error and there are two samples for each parameter. *most is the largest number that
 * was tried. */
Status mixture_try_more(Arena *memory, int d, int n, const double *theta, int starts, RngKey key,
                        uint32_t run, Mixture *out, double *held_out, double *shared, int *most);

/* How the number of components of a fitted mixture was chosen: the candidates and the mean log density of
 * samples that they were not fitted to. */
enum { MIXTURE_MOST_CANDIDATES = 16 };

typedef struct {
  int count; /* 0: there was no choice */
  int components[MIXTURE_MOST_CANDIDATES]; /* ascending */
  double held_out[MIXTURE_MOST_CANDIDATES]; /* mean log density */
  double error[MIXTURE_MOST_CANDIDATES]; /* standard error of its paired difference to the highest */
  double shared[MIXTURE_MOST_CANDIDATES]; /* EmPlan.shared_items of its fit */
  int chosen;
  int most; /* most components that were tried: the last candidate's, or more that were no better */
} MixtureChoice;

/* Chooses the fewest components whose mean is below the highest by no more than one standard error of the
 * difference (Breiman et al. 1984). `density` of each candidate is the log density of the same n samples. */
void mixture_choice_make(int n, int count, const int *components, const double *const *density,
                         MixtureChoice *out);
