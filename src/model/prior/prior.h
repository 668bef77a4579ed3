/* Priors: what an agent believes about theta before the first observation, and what that belief can do.
 *
 * Each family has one constant descriptor; an instance is {ops, capabilities, state}. A capability that is
 * NULL means "cannot do it"; samplers list what they need, and a prior that lacks it is refused. Arrays hold
 * N lanes, lane last: theta[d, N]. */
#pragma once

#include "io/config/config.h"
#include "io/io_dataset.h"
#include "model/denoiser/denoiser.h"
#include "model/denoiser/denoiser_isotropic.h"
#include "model/logs/logs.h"
#include "model/network/network_store.h"

#include <sys/types.h> /* pthread_mutex_t, without the functions of pthread.h */

typedef struct Prior Prior;

/* How a prior is fitted; a plain copy of the keys `prior.*` of a study. */
typedef struct {
  int components, starts; /* mixture: number of components (0: by held-out likelihood); starts of EM */
  ScheduleRule schedule; /* of a chain */
  bool standardise;
  bool closed_only; /* a mixture gets no chain and no denoiser, which nothing will ask for */
  int hidden_count, hidden[NETWORK_MOST_HIDDEN]; /* widths of the hidden layers; none: by PriorOps.settle */
  LastStage last_stage;
  /* Training of networks: most Adam steps; batch; checks without improvement before an early stop. Steps,
   * batch and learning_rate that are 0 are set by PriorOps.settle. */
  int steps, batch, patience;
  double learning_rate;
  double contamination, guard_width; /* training_samples.h */
  uint64_t seed;
  uint32_t replicate; /* with `seed`, names the streams of this fit */
} PriorFit;

/* The keys of a fit, without the prefix that they have in a study file; the last name is NULL. */
extern const ConfigKey fit_keys[];

/* Returns the settings of a fit, from the keys prior.* of a setting; those that are `auto` are left to the
 * family (prior_settle). */
PriorFit fit_of_keys(const Config *setting, uint64_t seed, uint32_t replicate);

/* Reads the settings from key=value texts, with defaults for the rest; `what` names their source in
 * messages. */
Status fit_of_options(const char *what, int count, const char *const *texts, uint64_t seed, PriorFit *out);

/* What every prior of a family can do, known before one is fitted; PRIOR_LOGS: it can be fitted to logs of
 * past tasks (logs_fit.h), while other families are fitted to draws from the tasks' posteriors. */
enum { PRIOR_MIXTURE = 1 << 0, PRIOR_CHAIN = 1 << 1, PRIOR_DENOISER = 1 << 2, PRIOR_LOGS = 1 << 3 };

/* What a prior is fitted to: one of the two, not owned; the other is NULL. */
typedef struct {
  const Samples *samples;
  const Logs *logs;
} FitSource;

/* Returns the number of dimensions of theta. */
static inline int fit_source_dimension(const FitSource *source) {
  return source->logs ? source->logs->d : source->samples->d;
}

/* A family in the registry can be fitted and stored. A prior outside the registry, such as the known
 * distribution of theta* (problem/problem_theta.h), needs only `sample`; the other members that families must
 * have are then NULL. */
typedef struct {
  const char *name, *summary, *reference;
  unsigned able; /* of a family: PRIOR_MIXTURE | .. */

  /* REQUIRED. Draw N samples, theta[d, N]. */
  void (*sample)(const Prior *prior, RngLanes *rng, double *theta);
  /* REQUIRED of a family. Write a prior to a file, and read it back; `load` fills a zeroed instance. */
  Status (*save)(const Prior *prior, StoreFile *file);
  Status (*load)(Prior *prior, StoreFile *file, const PriorFit *chain_settings);

  /* REQUIRED of a family, but for `parts`. Fitting is split into independent parts so that ranks can share
   * it: `parts` of them (NULL: one), each giving part_size doubles; `assemble` makes the prior from all
   * parts[parts, part_size]. `fit_part` does not depend on other parts, on ranks or on order. */
  int (*parts)(const PriorFit *fit);
  size_t (*part_size)(const PriorFit *fit, int d);
  Status (*fit_part)(const PriorFit *fit, const FitSource *source, int part, double *out);
  Status (*assemble)(Prior *prior, const PriorFit *fit, const FitSource *source, const double *parts);
  /* OPTIONAL. Number of parameters of its network, or of one stage's network; NULL: it has no network. */
  size_t (*network_size)(const PriorFit *fit, int d);
  /* REQUIRED of a family. Print everything in `fit` that the fitted prior depends on: fits that print the
   * same text are the same. */
  void (*describe_fit)(const PriorFit *fit, FILE *out);
  /* OPTIONAL. Number of Gaussians in the mixture that the prior will be, in closed form; with it samplers can
   * refuse a prior before the fit. */
  int (*components)(const PriorFit *fit);

  /* OPTIONAL. Choose what `fit` leaves to the family, for d dimensions. */
  void (*settle)(PriorFit *fit, int d);
  /* OPTIONAL. Print what the fit found out about itself, as the end of a sentence or as several lines. */
  void (*report)(const Prior *prior, FILE *out);
  /* OPTIONAL. Return a sentence if the fit's own check on held-out samples fails, or it cannot fit, else
   * NULL. */
  const char *(*doubt)(const Prior *prior);

  /* OPTIONAL. Compute the log density, out[N]. */
  void (*log_density)(const Prior *prior, int lanes, const double *theta, double *out);
  /* OPTIONAL. Compute score[d, N] and, unless it is NULL, its Jacobian hessian[d, d, N]. For a density this
   * is the Hessian of its logarithm and symmetric; for a learned score it need not be. */
  void (*score)(const Prior *prior, int lanes, const double *theta, double *score, double *hessian);
} PriorOps;

/* A guard for a prior that may be wrong (sampler/guard.h): a wide Gaussian with this weight and `width` times
 * the prior's standard deviations; `shrink` multiplies the standard deviations of draws from its posterior.
 * Weight 0: no guard. */
typedef struct {
  double weight, width, shrink;
  int tasks; /* number of tasks that the weight is learned from (prior_wide_learn); 0: it is given */
} PriorGuard;

/* The calls of a prior that another process computes. After the first one that failed there are no more, and
 * all numbers are 0. */
typedef struct {
  Status status; /* of the failure */
  char sentence[1024];
  double seconds; /* CPU time of that process */
} PriorElsewhere;

struct Prior {
  Arena *memory; /* the creator's; holds the state and all of its arrays */
  const PriorOps *ops;
  int d;
  const Mixture *mixture; /* NULL: not a mixture (of one or more Gaussians) in closed form */
  const Chain *chain; /* NULL: no reverse chain */
  const Denoiser *denoiser; /* NULL: no posterior moments for observations of arbitrary precision */
  /* In the chain's coordinates z, whose scale is then the same in all directions; NULL: it is not given as a
   * mixture of isotropic Gaussians. */
  const Isotropic *isotropic;
  /* For a prior that is not itself a mixture: a mixture fitted to the same samples; NULL: none. */
  const Mixture *companion;
  PriorGuard guard; /* what samplers use unless told otherwise */
  bool hypercube; /* uniform on the vertices of {-1, 1}^d */
  /* Names the coordinates that are constant, or linear combinations of others, up to rounding, where
   * prior_stand_in has a mixture; or says for how many agents it was learned from rough posteriors
   * (logs_describe_few); NULL: nothing of this. */
  const char *note;
  /* CPU seconds of the fit, and of the fit of any prior it is based on, stored in the prior file; 0 if it was
   * not fitted. */
  double seconds_fit;
  /* Standard deviation of the Gaussian rewards in the logs it was learned from, given or learned; 0 for any
   * other prior. Stored in the prior file. */
  double noise;
  /* Name of the likelihood of the rewards in those logs; NULL: there were none, or the prior file is older
   * and says nothing. Stored in the prior file. */
  const char *rewards;
  /* Name of the sampler that was chosen with it (train --family auto), stored in the prior file; otherwise
   * NULL. */
  const char *auto_sampler;
  /* What happened in another process that computes the prior; NULL: this one does. */
  const PriorElsewhere *elsewhere;
  void *state; /* private to one .c file */
  /* Held while something works in the scratch of the prior, which its networks, its chain and its denoiser
   * have; NULL: one thread uses the prior. */
  pthread_mutex_t *turn;
};

/* Returns the number of parts of a fit. */
static inline int prior_parts(const PriorOps *family, const PriorFit *fit) {
  return family->parts ? family->parts(fit) : 1;
}

/* Calls family->settle if there is one. Everything below that takes a PriorFit takes a settled one. */
void prior_settle(const PriorOps *family, PriorFit *fit, int d);

/* Returns the failure of the process that computes the prior, with its sentence; STATUS_OK if there is none.
 * What was drawn since then is of no use. */
Status prior_check(const Prior *prior);
/* Returns the CPU seconds that it has spent so far. */
static inline double prior_seconds_elsewhere(const Prior *prior) {
  return prior->elsewhere ? prior->elsewhere->seconds : 0;
}

/* Returns what a user should know before using the prior: the result of prior->ops->doubt, else prior->note;
 * NULL if there is nothing. */
const char *prior_doubt(const Prior *prior);
/* Returns the name of the likelihood of the rewards in the logs that the prior was learned from; NULL: there
 * were none, or it is not known. */
const char *prior_rewards(const Prior *prior);
/* Writes prior_doubt, or that the prior was learned from rewards with another likelihood; returns whether
 * there is anything to say. */
bool prior_doubt_under(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence);

/* Limits of prior->companion of a prior that does not correct a mixture: it has one component for every 20
 * samples, at most COMPANION_COMPONENTS, and in more than COMPANION_MOST dimensions there is none. */
enum { COMPANION_MOST = 64, COMPANION_COMPONENTS = 10 };

/* Returns a closed-form mixture to use in place of the prior: its `mixture`, else `companion`, else NULL. */
const Mixture *prior_stand_in(const Prior *prior);
/* Returns STATUS_INPUT if prior_stand_in finds none, so that this prior cannot have a guard. */
Status prior_check_guard(const Prior *prior);

/* Returns the standard deviation of Gaussian rewards: `given`; if that is 0, the prior's `noise`; else 1. */
double prior_noise(const Prior *prior, double given);

/* Returns a family of the registry or its name; NULL past the end, or if no family has this name. */
const PriorOps *prior_family(int index);
const PriorOps *prior_find(const char *name);
const char *prior_name(int index);
const char *prior_closed_name(int index); /* counts only the families in closed form */

/* Makes a prior from all parts[parts, part_size] of its fit. */
Status fit_source_assemble(Arena *memory, const FitSource *source, const PriorOps *family,
                           const PriorFit *fit, const double *parts, Prior *out);

/* Fits all parts in this process, in order, and assembles them (for tests and `train`; a study spreads the
 * parts over ranks, with the same result). */
Status fit_source_whole(Arena *memory, const FitSource *source, const PriorOps *family, const PriorFit *fit,
                        Prior *out);
Status prior_fit(Arena *memory, const PriorOps *family, const PriorFit *fit, const Samples *samples,
                 Prior *out);
/* Sets the note of a finished prior that names the coordinates which do not vary on their own. */
Status prior_find_fixed(Prior *prior);
/* Creates a Gaussian or mixture prior with these components (copied) and the exact chain of
 * `chain_settings`. */
Status prior_from_mixture(Arena *memory, const Mixture *mixture, const PriorFit *chain_settings, Prior *out);
/* Creates a copy of a closed-form prior with another mixture (copied) of the same number of components. */
Status prior_replace_mixture(Arena *memory, const Prior *prior, const Mixture *mixture,
                             const PriorFit *chain_settings, Prior *out);
/* Creates a mixture of isotropic Gaussians (copied), with their exact chain (prior_isotropic.c). Outside the
 * registry. Only where its matrices are small does it have a `mixture`, a density and a denoiser too. */
Status prior_isotropic(Arena *memory, const Isotropic *mixture, const PriorFit *chain_settings, Prior *out);
/* Returns whether its matrices are small. */
bool prior_isotropic_has_matrices(const Isotropic *mixture);
/* Creates such a prior with the stages and the one scale of the chain `like`, and this shift[d] (copied). It
 * has matrices on request, whatever d; without them its denoiser is that of denoiser_diagonal_create. */
Status prior_isotropic_like(Arena *memory, const Isotropic *mixture, const Chain *like, const double *shift,
                            bool matrices, Prior *out);
/* Creates N(0, I_d). */
Status prior_standard(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
/* Creates the same for the d weights of a network (prior.c): it has no matrices, so d can be large, and no
 * chain. Outside the registry. */
Status prior_weights(int d, Prior *out);
/* Creates the uniform prior on the vertices of {-1, 1}^d (prior_ising.c). Outside the registry: nothing is
 * fitted or stored. */
Status prior_ising(Arena *memory, int d, const PriorFit *chain_settings, Prior *out);
/* Computes, for m observations of theta, mean[m, d] and covariance[m, d, d] of the prior times exp(b' theta -
 * theta' M theta / 2), from b[m, d] and M[m, d, d]. Returns 0, or another number on failure: the draws that
 * needed it then count as numerical fallbacks, as do those whose results are not finite. */
typedef int GivenDenoiser(void *context, int m, int d, const double *b, const double *precision, double *mean,
                          double *covariance);
/* Creates a prior with this denoiser (prior_given.c). Outside the registry: nothing is fitted or stored. */
Status prior_given(Arena *memory, int d, GivenDenoiser *function, void *context, Prior *out);

/* Saves a prior file (NetCDF, attribute `prior` = family name). prior_load reads one, which may be a
 * hand-written Gaussian or mixture; `chain_settings` gives the schedule of their exact chain. After a failure
 * *out is zero. */
Status prior_save(const Prior *prior, const char *path);
/* Writes the prior into an open file, which may hold other attributes. */
Status prior_put(const Prior *prior, StoreFile *file);
Status prior_load(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out);
/* Reads the prior from an open file, which may hold more. After a failure *out is zero. */
Status prior_get(Arena *memory, StoreFile *file, const PriorFit *chain_settings, Prior *out);
/* Loads a file that prior_save wrote to a place where nobody else writes (store_open_own). */
Status prior_load_own(Arena *memory, const char *path, const PriorFit *chain_settings, Prior *out);

/* ---- the wide Gaussian that guards a learned prior which may be wrong (sampler/guard.h), and how much
 * weight it deserves, learned from tasks other than those of the prior.
 *
 * Each task comes from the learned prior or, with probability g, from the wide Gaussian. g is Beta(g0, 1 -
 * g0), of mean g0 and worth one task, because a wrong prior is wrong for most tasks. The weight for the next
 * task is the posterior mean of g, given the marginal likelihoods of the tasks under both. */

static const double WIDE_WIDTH = 2; /* unless a study says otherwise (guard_width) */

/* Creates a wide Gaussian about the mean of the mixture, with independent coordinates and `width` times
 * its standard deviations; prepared. */
Status prior_wide_create(Arena *memory, const Mixture *mixture, double width, Mixture *out);
/* Learns the weight from the tasks: *weight is g0 > 0 on entry, and the posterior mean of g on return. */
Status prior_wide_learn(const Mixture *mixture, double width, const Logs *tasks, double *weight);
/* Returns the posterior mean of g, from log_ratio[tasks]: each task's log marginal likelihood under the wide
 * Gaussian minus that under the learned prior. share[tasks + 1] is scratch. */
double prior_wide_posterior_mean(double weight, int tasks, const double *log_ratio, double *share);
