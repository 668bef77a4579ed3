/* Priors: what an agent believes about theta before the first observation, and what that belief can do.
 *
 * One constant descriptor for each family; an instance is {ops, capabilities, state}. A capability that is
 * NULL means "cannot do it"; samplers list what they need and are refused a prior that lacks it. N lanes,
 * lane last: theta[d, N]. */
#pragma once

#include "io/config/config.h"
#include "io/dataset.h"
#include "model/denoiser/chain.h"
#include "model/denoiser/denoiser.h"
#include "model/logs/logs.h"
#include "model/network/network_store.h"

typedef struct Prior Prior;

/* How a prior is fitted; a plain copy of the keys `prior.*` of a study. */
typedef struct {
  int components, starts; /* mixture: number of components, 0 is chosen by held-out likelihood; EM starts */
  ScheduleRule schedule; /* of a chain */
  bool standardise;
  int hidden_count, hidden[NETWORK_MOST_HIDDEN]; /* widths of the hidden layers; none: PriorOps.settle */
  LastStage last_stage;
  /* Network training: Adam steps at most; batch; checks without improvement before an early stop. 0 steps,
   * batch or learning_rate: PriorOps.settle. */
  int steps, batch, patience;
  double learning_rate;
  double contamination, guard_width; /* contamination.h */
  uint64_t seed;
  uint32_t replicate; /* names the streams of this fit, with `seed` */
} PriorFit;

/* What every prior of a family can do, known before one is fitted. */
enum { PRIOR_MIXTURE = 1 << 0, PRIOR_CHAIN = 1 << 1, PRIOR_DENOISER = 1 << 2 };

/* A family of the registry can be fitted and has files. A prior outside of it, such as the known distribution
 * of theta* (problem/theta_prior.h), only needs `sample`; the rest of what families must have
 * is NULL. */
typedef struct {
  const char *name, *summary, *reference;
  unsigned able; /* of a family: PRIOR_MIXTURE | .. */

  /* REQUIRED. N samples: theta[d, N]. */
  void (*sample)(const Prior *prior, RngLanes *rng, double *theta);
  /* REQUIRED of a family. Write to and read from a prior file; `load` fills a zeroed instance. */
  Status (*save)(const Prior *prior, StoreFile *file);
  Status (*load)(Prior *prior, StoreFile *file, const PriorFit *chain_settings);

  /* REQUIRED of a family. Fitting is split into independent parts so that ranks can share it: `parts` of
   * them, each giving part_size doubles; `assemble` makes the prior of all parts [parts, part_size].
   * `fit_part` does not depend on other parts, on ranks or on order. */
  int (*parts)(const PriorFit *fit);
  size_t (*part_size)(const PriorFit *fit, int d);
  Status (*fit_part)(const PriorFit *fit, const Samples *samples, int part, double *out);
  Status (*assemble)(Prior *prior, const PriorFit *fit, const Samples *samples, const double *parts);
  /* OPTIONAL. Parameters of its network, or of that of a stage; NULL: it has none. */
  size_t (*network_size)(const PriorFit *fit, int d);
  /* OPTIONAL. The same from logs of past tasks (logs_fit.h); a family without is fitted to posterior draws of
   * the tasks. */
  size_t (*logs_part_size)(const PriorFit *fit, int d);
  Status (*fit_logs_part)(const PriorFit *fit, const Logs *logs, int part, double *out);
  Status (*assemble_logs)(Prior *prior, const PriorFit *fit, const Logs *logs, const double *parts);
  /* REQUIRED of a family. Print everything of `fit` that the fitted prior depends on: fits that print the
   * same are the same. */
  void (*describe_fit)(const PriorFit *fit, FILE *out);
  /* OPTIONAL. What all parts together cost, fitted to so many samples, or to so many tasks with so many rows
   * of each (0 where none are kept): operations as those of SamplerOps.cost, within a factor of 3. NULL: next
   * to nothing. */
  double (*cost)(const PriorFit *fit, int d, double samples);
  double (*logs_cost)(const PriorFit *fit, int d, double tasks, double rows);
  /* OPTIONAL, so that samplers can refuse a prior before the fit: of how many Gaussians it is a mixture in
   * closed form. */
  int (*components)(const PriorFit *fit);

  /* OPTIONAL, of families that learn networks. Choose what `fit` leaves to the family, for d dimensions. */
  void (*settle)(PriorFit *fit, int d);
  /* OPTIONAL. What the fit found out about itself, as the end of a sentence, or more lines. */
  void (*report)(const Prior *prior, FILE *out);
  /* OPTIONAL. Returns a sentence where the fit's own check on held-out samples fails, else NULL. */
  const char *(*doubt)(const Prior *prior);

  /* OPTIONAL. out[N]; out[d, N]. */
  void (*log_density)(const Prior *prior, int lanes, const double *theta, double *out);
  void (*score)(const Prior *prior, int lanes, const double *theta, double *out);
  /* out[d, N] = J(theta)' v with J the Jacobian of the score. That of a density is its Hessian and symmetric;
   * that of a learned score need not be. out must not overlap v. */
  void (*hessian_product)(const Prior *prior, int lanes, const double *theta, const double *v, double *out);
} PriorOps;

/* What stands beside a prior that may be wrong (sampler/guard.h): a Gaussian of this weight and of so many
 * standard deviations of the prior; `shrink` multiplies those of posterior draws from it. Weight 0:
 * nothing. */
typedef struct {
  double weight, width, shrink;
  int tasks; /* that the weight is learned from (wide.h); 0: it is given */
} PriorGuard;

struct Prior {
  Arena *memory; /* of whoever created it: where the state and all of its arrays are */
  const PriorOps *ops;
  int d;
  const Mixture *mixture; /* NULL: not a mixture (of one or more) in closed form */
  const Chain *chain; /* NULL: no reverse chain */
  const Denoiser *denoiser; /* NULL: no posterior moments for any precision */
  /* For a prior that is no mixture itself: one that was fitted to the same samples; NULL: none. */
  const Mixture *beside;
  PriorGuard guard; /* what samplers put beside it unless they are told otherwise */
  bool hypercube; /* uniform on the vertices of {-1, 1}^d */
  /* CPU seconds that the fit took, that of a prior before it included, stored in the prior file; 0 when it
   * was not fitted. */
  double seconds_fit;
  /* Standard deviation of the Gaussian rewards of the logs that it was learned from, given or learned; 0 of
   * any other prior. Stored in the prior file. */
  double noise;
  /* Name of the sampler that was chosen with it (train --family auto), stored in the prior file; else
   * NULL. */
  const char *auto_sampler;
  void *state; /* known to one .c file */
};

/* Calls family->settle, where there is one. */
void prior_settle(const PriorOps *family, PriorFit *fit, int d);

/* Returns what prior->ops->doubt says, NULL where there is none. */
const char *prior_doubt(const Prior *prior);

/* Returns a mixture in closed form in the place of the prior: itself, or the one beside it; NULL: none. */
const Mixture *prior_stand_in(const Prior *prior);
/* Returns STATUS_INPUT where there is none, so that nothing can be put beside this prior. */
Status prior_check_guard(const Prior *prior);

/* Returns the standard deviation of Gaussian rewards: `given`, or if that is 0 the prior's `noise`, or 1. */
double prior_noise(const Prior *prior, double given);

/* Returns a member of the registry; NULL ends. */
const PriorOps *prior_family(int index);
const PriorOps *prior_find(const char *name);
const char *prior_name(int index);
const char *prior_closed_name(int index); /* of the families in closed form */

/* Fits all parts here, in order, and assembles (tests, `train`; a study spreads the parts over ranks with
 * the same result). */
Status prior_fit(Arena *memory, const PriorOps *family, const PriorFit *fit, const Samples *samples,
                 Prior *out);
/* Creates a Gaussian or mixture prior with these components (copied) and the exact chain of
 * `chain_settings`. */
Status prior_from_mixture(Arena *memory, const Mixture *mixture, const PriorFit *chain_settings, Prior *out);
/* Creates a closed-form prior that is the same but for the mixture, of as many components (copied). */
Status prior_replace_mixture(Arena *memory, const Prior *prior, const Mixture *mixture,
                             const PriorFit *chain_settings, Prior *out);
/* Creates N(0, I_d). */
Status prior_standard(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
/* Creates the same for the d weights of a network (prior_weights.c): no matrices, so d can be large, and
 * no chain. Outside of the registry. */
Status prior_weights(int d, Prior *out);
/* Creates the uniform prior on the vertices of {-1, 1}^d (prior_ising.c). Outside of the registry: nothing
 * is fitted or stored. */
Status prior_ising(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
/* Computes, for m observations of theta, mean[m, d] and covariance[m, d, d] of the prior times exp(b' theta -
 * theta' M theta / 2), from b[m, d] and M[m, d, d]. Returns 0, or anything else when it cannot: the draws
 * that asked are numerical fallbacks then, as those with a result that is not finite. */
typedef int GivenDenoiser(void *context, int m, int d, const double *b, const double *precision, double *mean,
                          double *covariance);
/* Creates a prior with this denoiser (prior_given.c). Outside of the registry: nothing is fitted or
 * stored. */
Status prior_given(Arena *memory, int d, GivenDenoiser *function, void *context, Prior *out);
/* Computes, for m noisy samples x[m, d] of stage t = 1 .. T, mean[m, d] = E[x_0 | x_t = x], where x_t =
 * sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise. Returns 0, or anything else when it cannot: draws that
 * asked are not finite then, and numerical fallbacks. */
typedef int GivenMean(void *context, int m, int d, const double *x, int t, double *mean);
/* Creates a prior with the chain of this function, for alpha_bar[T], which falls from below 1 to above 0
 * (prior_score.c). Outside of the registry: nothing is fitted or stored. */
Status prior_score(Arena *memory, int d, int stages, const double *alpha_bar, GivenMean *function,
                   void *context, Prior *out);

/* Saves a prior file (NetCDF, attribute `prior` = family name). Loads a prior file, also a hand-written
 * Gaussian or mixture; `chain_settings` gives the schedule of their exact chain. After a failure *out is
 * zero. */
Status prior_save(const Prior *prior, const char *path);
/* Writes the prior into an open file, which may hold other attributes. */
Status prior_put(const Prior *prior, StoreFile *file);
Status prior_load(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out);
/* Reads the prior out of an open file, which may hold more. After a failure *out is zero. */
Status prior_get(Arena *memory, StoreFile *file, const PriorFit *chain_settings, Prior *out);
/* Loads a file that prior_save has written, where nobody else writes (store_open_own). */
Status prior_load_own(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out);
