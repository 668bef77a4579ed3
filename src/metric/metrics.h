/* The registry's list: one line for each metric of posterior draws. `name` is the curve in the results,
 * `word` the word of the key `metrics` that asks for it (several may share one); measure_NAME is defined in
 * draws.c, or in its own file. BESIDE: compares draws with exact ones; its curve NAME_floor compares a
 * second set of exact draws with the first, which a perfect sampler reaches. EXACT: measures the exact draws
 * alone. ALONE: needs no exact draws. */
#pragma once

#include "metric/emd.h"
#include "metric/wasserstein.h"
#include "model/history/history.h"
#include "model/mixture/mixture.h"

#define METRIC_LIST(BESIDE, EXACT, ALONE)                                                                    \
  BESIDE(emd, "emd", "earth mover's distance to exact posterior draws")                                      \
  BESIDE(sliced_wasserstein, "sliced_wasserstein", "sliced Wasserstein distance to exact posterior draws")   \
  BESIDE(max_sliced_wasserstein, "sliced_wasserstein",                                                       \
         "max-sliced Wasserstein distance to exact posterior draws")                                         \
  BESIDE(sd_ratio, "sd_ratio", "standard deviation of the draws over that of exact posterior draws")         \
  BESIDE(mode_weight_error, "mode_weight",                                                                   \
         "total variation between the mode weights of the draws and of exact draws")                         \
  EXACT(largest_mode, "mode_weight", "share of the exact draws in the fullest mode")                         \
  BESIDE(mean_error, "moments", "distance between the means of the draws and of exact draws")                \
  BESIDE(covariance_error, "moments",                                                                        \
         "relative Frobenius distance between the covariances of the draws and of exact draws")              \
  BESIDE(distance, "distance", "mean distance of the draws to theta*")                                       \
  ALONE(rank, "rank", "rank of theta* among the draws, in a random direction")                               \
  ALONE(rank_norm, "rank_norm", "rank of |theta*| among the norms of the draws")                             \
  ALONE(rank_log_likelihood, "rank_log_likelihood",                                                          \
        "rank of the history's likelihood at theta* among its values at the draws")

/* Points and their moments (linalg_moments). */
typedef struct {
  int n;
  double *theta; /* [d, n] */
  double *mean, *covariance; /* [d], [d, d] */
} Cloud;

/* Draws of one run, exact posterior draws to compare them with, and everything that measuring may need.
 * Nothing is owned. */
typedef struct {
  int d;
  const Cloud *x, *y; /* the draws; exact draws */
  const double *truth; /* theta*[d] */
  const History *history; /* the history of the draws, that of run `run` */
  int run;
  const Mixture *modes; /* the mixture that theta* is from; NULL: it is not from a mixture of Gaussians */
  Rng directions; /* the stream of random directions */
  double *work; /* [metric_work(d, max(n, m), C)], scratch: n and m points, C modes */
  Emd *emd; /* NULL if the word emd is not asked for */
  Wasserstein *wasserstein;
} Comparison;

/* Returns how many doubles a metric needs as scratch. */
static inline size_t metric_work(int d, int points, int modes) {
  return (size_t)d * (size_t)(d + 1) + 3 * (size_t)points + 2 * (size_t)modes;
}

/* Computes *out, the metric. Returns STATUS_INPUT if a point is not finite and the metric notices. */
typedef Status Measure(const Comparison *self, double *out);

#define METRIC_DECLARE(name, word, text) Measure measure_##name;
METRIC_LIST(METRIC_DECLARE, METRIC_DECLARE, METRIC_DECLARE)
#undef METRIC_DECLARE
