/* Expectation maximisation for a mixture of Gaussians with full covariances (Dempster, Laird and Rubin 1977).
 *
 * The data are items, each of which tells something about its z in R^d; a sample tells everything. Only the
 * E-step knows what an item is: it gives the expected moments of z under each component, so that the same EM
 * serves samples (em_samples.h), tasks of logs (em_logs.h) and anything else that has such moments. z should
 * be in coordinates of unit variance, for which the floor of the covariances is made. */
#pragma once

#include "model/mixture/mixture.h"

#include <math.h>

/* Added to each variance of z, in units of what is local there; scikit-learn's reg_covar. But at least
 * EM_LEAST, of which four digits are left when moments of 1 are subtracted. */
static const double EM_FLOOR = 1e-6, EM_LEAST = 1e-12;

static inline double em_floor(double local) { return fmax(EM_FLOOR * local, EM_LEAST); }

/* Returns the number of the features 1, z_i, z_i z_j (j <= i) of z. */
static inline size_t em_features(int d) { return (size_t)(1 + d + d * (d + 1) / 2); }

typedef struct EmData EmData;
struct EmData {
  int d, items;
  /* [d], at most 1: variance of z in narrow clusters (mixture_frame.h), in which floors and the prior's items
   * are measured; NULL: 1. */
  const double *local;
  /* Adds to sums[C, em_features] the expected features of z and the component, over the first `items` items,
   * under a prepared mixture. Returns the sum of the items' log likelihoods. */
  double (*expect)(EmData *self, int items, const Mixture *mixture, double *sums);
  /* The same with every item assigned to one of `components` centres, which are chosen among the first
   * `items`. */
  void (*seed)(EmData *self, int items, int components, Rng *rng, double *sums);
  /* Computes z[d], a place where an item puts its z. */
  void (*place)(EmData *self, int item, double *z);
};

/* All starts run trial_iterations on the first trial_items; the best `finalists` of them continue with all
 * items until the mean log likelihood rises by no more than `tolerance` of itself, and the best of these
 * wins. */
typedef struct {
  int starts, finalists, trial_items, trial_iterations, most_iterations;
  int first_start; /* names the random streams of the first start */
  double tolerance;
  /* Every covariance includes this many items of covariance C^(-2/d) I, times what is local, in addition to
   * its items (Fraley and Raftery 2007); 0 is maximum likelihood. */
  double prior_items;
  /* And this many whose variances are those of all items about the means of their components, without
   * correlations. */
  double shared_items;
  /* This many of the first components share one covariance, the mean of theirs, with prior_items added only
   * once. */
  int tied;
} EmPlan;

/* Fits a mixture, which is not prepared. Calls the tick of the thread before each iteration
 * (core/core_tick.h). The streams of a start are (key, run, round = first_start + start). *likelihood is the
 * mean log likelihood of the items; may be NULL. Requires data->items >= components. */
Status em_fit(Arena *memory, EmData *data, int components, const EmPlan *plan, RngKey key, uint32_t run,
              Mixture *out, double *likelihood);
/* Continues from the parameters in `mixture`, with all items. */
Status em_continue(EmData *data, const EmPlan *plan, RngKey key, uint32_t run, Mixture *mixture,
                   double *likelihood);

/* Runs one iteration with all items. *likelihood is their mean log likelihood before it; `rng` chooses where
 * a component that has become empty restarts. */
Status em_step(EmData *data, const EmPlan *plan, Rng rng, Mixture *mixture, double *likelihood);
/* Returns whether EM has converged: the mean log likelihood has risen by no more than the tolerance. */
bool em_has_converged(const EmPlan *plan, double before, double now);
