/* Moments, mode weights and ranks: they tell what is wrong with the draws of a sampler, whereas a distance
 * only tells how much. x[d, n] are the sampler's draws, y[d, m] those of the exact posterior; means and
 * covariances come from linalg_moments, or are the exact ones. */
#pragma once

#include "model/history/history.h"
#include "model/mixture/mixture.h"

/* Returns |mean(x) - mean(y)|, Euclidean. */
double metric_mean_error(int d, const double *mean_x, const double *mean_y);

/* Returns the total variation between fractions p and q; metric_largest returns the largest fraction. */
double metric_total_variation(int count, const double *p, const double *q);
double metric_largest(int count, const double *p);

/* Returns the mean over x[d, n] of |x - truth|, Euclidean; truth[d]. */
double metric_distance(int d, int n, const double *x, const double *truth);

/* Returns the energy score of x[d, n], n >= 2, over all pairs: the mean |x - truth| minus half the mean |x -
 * x'| of different draws (Gneiting and Raftery 2007, equation 22). Its expectation is lowest if truth is
 * drawn from the same distribution as x. */
double metric_energy_score(int d, int n, const double *x, const double *truth);

/* Computes *out, the share of x[d, n] that are distinct points: 1, unless a sampler copies draws. */
Status metric_distinct(int d, int n, const double *x, double *out);

/* Returns how many of x[d, n] lie below truth[d] along direction[d]: 0 to n. With truth and data from the
 * model, the ranks of exact draws are uniform (simulation-based calibration; Talts, Betancourt, Simpson,
 * Vehtari and Gelman 2018, arXiv:1804.06788). */
int metric_rank(int d, int n, const double *x, const double *truth, const double *direction);

/* Returns how many of values[n] lie below truth. The ranks of exact draws are uniform for any function of
 * theta and the history; the norm and the likelihood find errors of opposite signs, which coordinates miss
 * (Modrak et al. 2023, arXiv:2211.02383). */
int metric_below(int n, const double *values, double truth);
/* Computes norm[n], the lengths of x[d, n]. */
void metric_norms(int d, int n, const double *x, double *norm);
/* Computes log_likelihood[n] of a run's history at x[d, n], up to a constant that depends on the run. work[d
 * (d + 1)] is scratch. */
void metric_log_likelihoods(const History *history, int run, int n, const double *x, double *log_likelihood,
                            double *work);
