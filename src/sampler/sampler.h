/* Posterior samplers: draw theta from p(theta | history). One file and one registry line each.
 *
 * B runs, M draws for each run, N = B M lanes, lane last: theta[d, N], lane n belongs to run n / M. */
#pragma once

#include "model/history/history.h"
#include "model/prior/prior.h"
#include "sampler/diagonal.h"

typedef struct Sampler Sampler;
typedef struct Guard Guard; /* sampler/guard.h */

/* What a sampler needs of its prior and likelihood: bits, and the words of `thompson list`. */
#define NEEDS_LIST(ENTRY)                                                                                    \
  ENTRY(MIXTURE, 0, "mixture") /* of Gaussians in closed form */                                             \
  ENTRY(GAUSSIAN, 1, "gaussian") /* a mixture of exactly one */                                              \
  ENTRY(CHAIN, 2, "chain") /* a reverse chain */                                                             \
  ENTRY(CONJUGATE, 3, "conjugate likelihood") /* quadratic in phi' theta */                                  \
  ENTRY(DENSITY, 4, "prior with a density") /* a log density */                                              \
  ENTRY(SCORE, 5, "prior with a score") /* gradient of the log density, exact or learned, and its Hessian */ \
  ENTRY(TRACTABLE, 6, "exact posterior") /* that can be drawn from; the op `fits` says which */              \
  ENTRY(DENOISER, 7, "denoiser for any precision")

#define NEEDS_ENUM(name, place, word) NEEDS_##name = 1 << place,
enum { NEEDS_LIST(NEEDS_ENUM) };
#undef NEEDS_ENUM

typedef struct {
  const Prior *prior; /* not owned; outlives the sampler */
  const Likelihood *likelihood; /* not owned */
  int runs, draws; /* B; the largest M that `sample` will be asked for */
  uint64_t seed; /* with first_run, names the streams of a sampler that moves as it observes */
  uint32_t first_run;
  bool alone; /* draws and moments follow from the history alone: nothing of an earlier round is a start */
  const Config
      *options; /* values of sampler_keys; NULL: every default, for a method without keys of its own */
} SamplerSetup;

/* What the cost of a sampler depends on, all known before anything is fitted. Real numbers, as they go into
 * products. */
typedef struct {
  double d; /* entries of phi */
  bool conjugate; /* the likelihood is */
  double rounds, rows; /* of a history at its end; what a pass goes over, the mean over rounds */
  double runs, draws; /* B, M */
  double drawn; /* share of the rounds in which `sample` is called; 1 in a bandit */
  double components; /* of the prior; 0: it is not a mixture */
  double guarded; /* components that a guard weighs, the wide Gaussian among them; 0: there is no guard */
  /* T; weights of the network of a stage, or of a denoiser; 0: chain or denoiser is exact. */
  double stages, stage_parameters;
  double weights; /* of the network that is the mean reward; 0: it is phi' theta */
  const Config *options; /* of the policy */
} SamplerWork;

typedef struct {
  const char *name, *summary, *reference;
  const char *default_prior; /* standard | exact | a family of model/prior/families.h */
  unsigned needs;
  bool networks; /* theta can be the weights of a network (likelihood.h), with Gaussian rewards */
  /* With a conjugate likelihood, draws come from the exact posterior for every prior that `needs` admits; the
   * conformance tests then compare their mean and covariance with it. */
  bool exact;
  /* Draws from a mixture prior keep their digits however precise Gaussian evidence is (precise.h). */
  bool square_root;
  /* For a method that is biased on purpose: the standard deviation of its draws, over that of the posterior,
   * is between these in every direction (with a Gaussian prior and likelihood). 0: it has no such bias. */
  double narrow, wide;
  const ConfigKey *keys; /* own options, ends with a NULL name; may be NULL */
  /* OPTIONAL. What `needs` cannot say: whether this prior and this likelihood fit. Writes a sentence of at
   * most `size` characters and returns false where they do not. */
  bool (*fits)(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence);
  /* REQUIRED. The only place that allocates: in self->memory. */
  Status (*create)(Sampler *self, const SamplerSetup *setup);
  /* REQUIRED. M draws for each run: theta[d, B M]. `rng` has the lanes' streams at position 0. Numerical
   * fallbacks are added to fallbacks[B]. */
  void (*sample)(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                 int64_t *fallbacks);
  /* REQUIRED. What one round of one run costs: `observe`, and M draws in the share of rounds that has them.
   * In floating-point operations, of which one core is taken to do 2e10 a second (app/estimate.c), and put
   * together from the parts in sampler/cost.h. Within a factor of 3. */
  double (*cost)(const SamplerWork *work);
  /* OPTIONAL. sampler_marginal of a history with `temper` in it. */
  void (*marginal)(Sampler *self, const History *history, RngLanes rng, double *value, double *error,
                   int64_t *fallbacks);
  /* OPTIONAL. sampler_moments in closed form, without a guard, of a history with `temper` in it. Where that
   * depends on whether the prior is a mixture and the likelihood conjugate, `has_moments` says whether; NULL:
   * always. */
  void (*moments)(Sampler *self, const History *history, double *mean, double *covariance,
                  int64_t *fallbacks);
  bool (*has_moments)(bool mixture, bool conjugate);
  /* OPTIONAL. The last observation of `history` is new: called once for each, in order, by samplers that
   * carry a state from round to round (streams: RNG_OBSERVE, run, round = history->rounds). */
  void (*observe)(Sampler *self, const History *history, int64_t *fallbacks);
  /* OPTIONAL. For samplers that carry a state: that of run from_run of `from` becomes that of run to_run of
   * `to`, a sampler that differs from it in the number of runs alone, and `to` counts as notified of all that
   * `from` was. Where only some runs of a history have a new observation (history_latest_runs), a sampler of
   * just these is notified of it, and the others stay as they are (policy/per_arm.c). */
  void (*carry)(const Sampler *from, int from_run, Sampler *to, int to_run);
  /* For samplers whose draw is their state, so that it has to move in every round: `observe` takes uneven
   * histories, and moves the runs without a new observation too. */
  bool restless;
  /* For samplers that read the observations of a history one by one (history_observation, history_since), so
   * that each keeps a row of its own also where the arms stay what they are. */
  bool by_observation;
  /* OPTIONAL. For samplers that carry a Gaussian approximation of the posterior: its mean[d, B] and
   * covariance[d, d, B] as they are now; of a mixture of several it cannot be asked for. The convergence
   * study, which observes one target again and again, asks for it after every step. */
  void (*gaussian)(const Sampler *self, double *mean, double *covariance);
  /* For samplers whose draws are the states of a Markov chain that has the posterior for its target: the
   * convergence study takes the Gaussian of their time average instead. */
  bool chain;
  /* OPTIONAL. For large d, where nothing of the above is called. */
  const DiagonalOps *diagonal;
} SamplerOps;

struct Sampler {
  Arena *memory; /* of whoever created it: where the state and all of its arrays are */
  const SamplerOps *ops;
  SamplerSetup setup;
  int d;
  Guard *guard; /* beside the prior; NULL: none */
  double temper; /* multiplies the log likelihood: the history that ops get is scaled by it */
  double *ess; /* [B], effective sample size behind the last draws; NAN where the method has none */
  void *state;
};

const SamplerOps *sampler_method(int index); /* registry; NULL ends */
const SamplerOps *sampler_find(const char *name);
const char *sampler_name(int index);
/* Replaces *name by the sampler that was chosen with the prior if it is `auto` (auto.c). STATUS_INPUT where
 * none was. */
Status sampler_take_auto(const Prior *prior, const char **name);

/* Returns the options of a sampler: `temper` and `guard`, which all share, and its own. Ends with a NULL
 * name; lives for ever. */
const ConfigKey *sampler_keys(const SamplerOps *method);
const ConfigKey *sampler_shared_keys(void);

/* Creates `method` with the options of `setup`, which may be NULL for a method without keys. Returns
 * STATUS_INPUT with one sentence when prior or likelihood lacks what the method needs, or when the draws
 * are too many. */
Status sampler_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, Sampler *out);
/* Creates the history that a sampler of this setup reads where it has the option `memory` and forgets
 * (model/history/history_filtered.h): one in `share` runs has an observation in a round. Returns STATUS_OK
 * and leaves *forgets false where it does not. */
Status sampler_history(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, int share,
                       bool *forgets, History *out);
/* Returns a view of the history in which the log likelihood is multiplied by the option `temper`. */
History sampler_tempered(const Sampler *sampler, const History *history);
/* Calls ops->sample and checks the outcome: a draw that is not finite becomes 0 and adds one to fallbacks,
 * and so does a run whose evidence is too precise for the method (stand_in.h). `history` may hold fewer runs
 * than the sampler was created for. */
void sampler_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks);

/* Returns whether the method knows the moments of its draws in closed form; `mixture` is NULL for a prior
 * that is no mixture. */
bool sampler_has_moments(const SamplerOps *method, const Mixture *mixture, const Likelihood *likelihood);
/* Computes mean[d, B] and covariance[d, d, B] of the draws that sampler_sample makes, in closed form; where
 * there is none, of rng.draws >= 2 of them, theta[d, B M], which the caller gives and which may otherwise be
 * NULL. Moments that are not finite become 0 and add one to fallbacks[B]. */
void sampler_moments(Sampler *sampler, const History *history, RngLanes rng, double *theta, double *mean,
                     double *covariance, int64_t *fallbacks);

/* Computes the logarithm of the marginal likelihood of each run, of its rewards given phi under the prior,
 * up to the constant of the run that history_log_likelihood leaves out: value[B], and how far it may be
 * off, error[B]: the error of a numerical integral and the standard error of a mean over draws, whose
 * streams are `rng`, as for sampler_sample. Errors of a learned prior are not in it. Returns false, and
 * does nothing, where the method has none. */
bool sampler_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value, double *error,
                      int64_t *fallbacks);

/* Computes weight[B]: the posterior probability that the guard beside the prior has in each run. Returns
 * false, and does nothing, where there is no guard. */
bool sampler_guard_weight(Sampler *sampler, const History *history, double *weight, int64_t *fallbacks);

/* Notifies the sampler of the last observation of `history`: of every one, in order. */
void sampler_observe(Sampler *sampler, const History *history, int64_t *fallbacks);

/* Says why this method cannot run with this prior and likelihood: writes a sentence and returns true;
 * false when it can. */
bool sampler_misfit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood, size_t size,
                    char *sentence);
