/* The registry's list: one line for each metric of posterior draws. `name` is the curve in the results,
 * `word` the word of the key `metrics` that asks for it (several may share one); measure_NAME is defined in
 * metrics.c, or in its own file. BESIDE: compares draws with exact ones; its curve NAME_floor compares a
 * second set of exact draws with the first, which a perfect sampler reaches. EXACT: measures the exact draws
 * alone. ALONE: needs no exact draws. */
#pragma once

#include "metric/emd.h"
#include "metric/wasserstein.h"
#include "model/denoiser/denoiser_isotropic.h"
#include "model/history/history_density.h"
#include "model/mixture/mixture.h"

#define METRIC_LIST(BESIDE, EXACT, ALONE)                                                                    \
  BESIDE(emd, "emd", "earth mover's distance to exact posterior draws")                                      \
  BESIDE(sliced_wasserstein, "sliced_wasserstein", "sliced Wasserstein distance to exact posterior draws")   \
  BESIDE(max_sliced_wasserstein, "max_sliced_wasserstein",                                                   \
         "max-sliced Wasserstein distance to exact posterior draws")                                         \
  BESIDE(sd_ratio, "sd_ratio", "standard deviation of the draws over that of exact posterior draws")         \
  BESIDE(mode_weight_error, "mode_weight",                                                                   \
         "total variation between the mode weights of the draws and of exact draws")                         \
  EXACT(largest_mode, "mode_weight", "share of the exact draws in the fullest mode")                         \
  BESIDE(mean_error, "moments", "distance between the means of the draws and of exact draws")                \
  BESIDE(covariance_error, "moments",                                                                        \
         "relative Frobenius distance between the covariances of the draws and of exact draws")              \
  BESIDE(marginal_mean_error, "marginals",                                                                   \
         "largest error of the mean of a coordinate, in standard deviations of exact draws")                 \
  BESIDE(marginal_sd_error, "marginals", "largest relative error of the standard deviation of a coordinate") \
  BESIDE(distance, "distance", "mean distance of the draws to theta*")                                       \
  ALONE(rank, "rank", "rank of theta* among the draws, in a random direction")                               \
  ALONE(rank_norm, "rank_norm", "rank of |theta*| among the norms of the draws")                             \
  ALONE(rank_log_likelihood, "rank_log_likelihood",                                                          \
        "rank of the history's likelihood at theta* among its values at the draws")

/* Points and their moments (linalg_moments). */
typedef struct {
  int n;
  double *theta; /* [d, n] */
  double *mean; /* [d] */
  double *covariance; /* [d, d]; NULL: it is not formed, and products of the points take its place */
} Cloud;
/* Returns whether it is not formed: there are many dimensions, and fewer points. */
static inline bool metric_without_covariance(int d, int points) { return d > points && d > 64; }

/* Draws of one run, exact posterior draws to compare them with, and everything that measuring may need.
 * Nothing is owned. */
typedef struct {
  int d;
  const Cloud *x, *y; /* the draws; exact draws */
  const double *truth; /* theta*[d] */
  const History *history; /* the history of the draws, that of run `run` */
  int run;
  HistoryDensity *density; /* scratch */
  /* The mixture that theta* is from, with matrices or, if it is isotropic, without; both NULL: it is not from
   * one of Gaussians. */
  const Mixture *modes;
  const Isotropic *isotropic;
  int projections; /* directions of the sliced distances */
  Rng directions; /* the stream of random directions */
  double *work; /* [metric_work(d, max(n, m), C)], scratch: n and m points, C modes */
  Emd *emd; /* NULL if the word emd is not asked for */
  Wasserstein *wasserstein;
} Comparison;

/* Returns how many doubles a metric needs as scratch. */
static inline size_t metric_work(int d, int points, int modes) {
  return (size_t)d + 3 * (size_t)points + 2 * (size_t)modes;
}

/* Computes *out, the metric. Returns STATUS_INPUT if a point is not finite and the metric notices. */
typedef Status Measure(const Comparison *self, double *out);

#define METRIC_DECLARE(name, word, text) Measure measure_##name;
METRIC_LIST(METRIC_DECLARE, METRIC_DECLARE, METRIC_DECLARE)
#undef METRIC_DECLARE

/* ---- parts of the metrics: moments, mode weights and ranks tell what is wrong with the draws of a sampler,
 * whereas a distance only tells how much. x[d, n] are the sampler's draws; means come from linalg_moments, or
 * are the exact ones. */

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
/* Computes values[n] of the run's log likelihood at x[d, n], and *truth at theta*, up to the same constant.
 */
void metric_log_likelihoods(const Comparison *self, const Cloud *x, double *values, double *truth);
