/* Posterior samplers: draw theta from p(theta | history). One file and one registry line each.
 *
 * B runs, M draws for each run, N = B M lanes, lane last: theta[d, N], lane n belongs to run n / M. */
#pragma once

#include "model/history/history.h"
#include "model/prior/prior.h"
#include "sampler/draw_notes.h"

typedef struct Sampler Sampler;
typedef struct Guard Guard; /* sampler/guard.h */

/* What a sampler requires of its prior and likelihood: as bits, and in the words of `thompson list`. */
#define NEEDS_LIST(ENTRY)                                                                                    \
  ENTRY(MIXTURE, 0, "mixture") /* of Gaussians in closed form */                                             \
  ENTRY(GAUSSIAN, 1, "gaussian") /* a mixture of exactly one */                                              \
  ENTRY(CHAIN, 2, "chain") /* a reverse chain */                                                             \
  ENTRY(CONJUGATE, 3, "conjugate likelihood") /* quadratic in phi' theta */                                  \
  ENTRY(DENSITY, 4, "prior with a density") /* a log density */                                              \
  ENTRY(SCORE, 5, "prior with a score") /* gradient of the log density, exact or learned, and its Hessian */ \
  ENTRY(TRACTABLE, 6, "exact posterior") /* that can be drawn from; the op `fits` decides */                 \
  ENTRY(DENOISER, 7, "denoiser for any precision")

#define NEEDS_ENUM(name, place, word) NEEDS_##name = 1 << place,
enum { NEEDS_LIST(NEEDS_ENUM) };
#undef NEEDS_ENUM

typedef struct {
  const Prior *prior; /* not owned; outlives the sampler */
  const Likelihood *likelihood; /* not owned */
  int runs, draws; /* B; the largest M that `sample` will be called with */
  uint64_t seed; /* with first_run, names the streams of a sampler that moves its state in `update` */
  uint32_t first_run;
  bool for_themselves; /* the draws are what is wanted, not an arm that is chosen by them */
  int observations; /* the most that a run will have, if they are draws for themselves; 0: not known */
  bool diagonal; /* nothing has matrices: histories are diagonal, and so is the prior (observed.h) */
  bool alone; /* draws and moments depend on the history alone: no warm start from an earlier round */
  const Config *options; /* values of sampler_keys; NULL: every default, for a method that adds no keys */
} SamplerSetup;

/* What a method needs of a likelihood that is not concave or is known by a function (likelihood_is_concave).
 */
typedef enum {
  FUNCTIONS_REFUSED, /* it needs more: how rewards depend on phi' theta */
  FUNCTIONS_VALUES,
  FUNCTIONS_GRADIENT, /* and values */
  FUNCTIONS_DEVIANCE /* the same, and values are minus half a sum of squares, which are never above 0 */
} SamplerFunctions;

/* A method. An op that is not REQUIRED may be NULL. */
typedef struct {
  /* ---- what it is, and what it needs */

  const char *name, *summary, *reference;
  const char *default_prior; /* standard | exact | a family of model/prior/prior.h */
  unsigned needs;
  bool networks; /* theta can be the weights of a network (likelihood.h), with Gaussian rewards */
  SamplerFunctions functions;
  const ConfigKey *keys; /* own options, ends with a NULL name; may be NULL */
  /* Decides what `needs` cannot express: whether this prior and this likelihood fit. If they do not, writes a
   * sentence of at most `size` characters and returns false. */
  bool (*fits)(const Prior *prior, const Likelihood *likelihood, size_t size, char *sentence);
  /* Returns STATUS_INPUT with a sentence if options contradict each other or the likelihood: sampler_check
   * asks, before any prior is there. */
  Status (*check)(const Config *options, const Likelihood *likelihood);

  /* ---- draws: REQUIRED */

  /* The only op that allocates: in self->memory. */
  Status (*create)(Sampler *self, const SamplerSetup *setup);
  /* M draws for each run: theta[d, B M]. `rng` has the lanes' streams at position 0. Numerical fallbacks are
   * added to fallbacks[B]. */
  void (*sample)(Sampler *self, const History *history, RngLanes rng, int draws, double *theta,
                 int64_t *fallbacks);

  /* ---- what its draws are promised to be: OPTIONAL */

  /* With a conjugate likelihood, draws come from the exact posterior for every prior that `needs` admits; the
   * conformance tests then compare their mean and covariance with it. */
  bool exact;
  /* If its prior is a mixture and the likelihood conjugate, draws are those of mixture_posterior_sample,
   * which keep the digits of the prior however precise the evidence (sampler/digits.h). */
  bool keeps_digits;
  /* Returns whether its target is the posterior with these options; NULL: always. */
  bool (*targets_posterior)(const Config *options);
  /* For a method that is biased by design: in every direction the standard deviation of its draws, divided by
   * that of the posterior, lies between these (with a Gaussian prior and likelihood). 0: no such bias. */
  double narrow, wide;

  /* ---- closed forms: OPTIONAL */

  /* Does the work of sampler_moments in closed form, without a guard, for a history that already includes
   * `temper`; if moments_need has NEEDS_MIXTURE or NEEDS_CONJUGATE, only for such a prior or likelihood. */
  void (*moments)(Sampler *self, const History *history, double *mean, double *covariance,
                  int64_t *fallbacks);
  unsigned moments_need;
  /* Does the work of sampler_marginal, for a history that already includes `temper`. */
  void (*marginal)(Sampler *self, const History *history, RngLanes rng, double *value, double *error,
                   int64_t *fallbacks);

  /* ---- a state that is carried from round to round: OPTIONAL, `begin` and `update` both or none */

  /* Sets the state of this many runs to that before the first observation. */
  void (*begin)(Sampler *self, int runs);
  /* Makes the update of one round = 1, 2, .., history->rounds (sampler_update_streams). sampler_catch_up says
   * when it is called. */
  void (*update)(Sampler *self, const History *history, int round, int64_t *fallbacks);
  bool at_once; /* one update, of the last round, makes up for all that were missed */
  /* The draw is the state, which therefore has to move in every round: `update` accepts uneven histories, and
   * also moves the runs without a new observation. */
  bool restless;
  /* Does the work of sampler_carry. */
  void (*carry)(const Sampler *from, int from_run, Sampler *to, int to_run);
  /* It reads the observations of a history one by one (history_observation, history_since): each observation
   * keeps its own row even if the arms never change. */
  bool by_observation;

  /* ---- what a draw costs: OPTIONAL */

  /* Returns how many floating-point operations in double precision its algorithm needs for a draw, after one
   * new observation, two for each multiply-add: products, factors and triangles of d x d matrices, with the
   * triangle of a symmetric product alone. Random numbers, what is done entry by entry and the products of a
   * chain's networks are not included. NAN: not known for this setup. */
  double (*operations)(const Sampler *self);

  /* ---- what the convergence study compares, which observes one target again and again: OPTIONAL, one of
   * them */

  /* The state is a Gaussian approximation of the posterior: computes its current mean[d, B] and
   * covariance[d, d, B]. Not available for a mixture of several Gaussians. */
  void (*gaussian)(const Sampler *self, double *mean, double *covariance);
  /* Draws are the states of a Markov chain with the posterior as its target: the Gaussian of their time
   * average is used. */
  bool chain;

  /* ---- draws of one history in fewer coordinates (sampler/observed.h): OPTIONAL */

  /* Returns whether, with `diagonal` in this setup, it makes no matrix for each draw.
   * The prior then has `isotropic`, a chain, a density and a denoiser with add_draw, and no mixture. */
  bool (*vectors)(const SamplerSetup *setup);
  /* Under a mixture it draws from the posterior: for any mixture the coordinates that are observed are enough
   * for it, and the others are drawn given those. */
  bool projects;
} SamplerOps;

struct Sampler {
  Arena *memory; /* the creator's; holds the state and all of its arrays */
  const SamplerOps *ops;
  SamplerSetup setup;
  int d;
  Guard *guard; /* combined with the prior; NULL: none */
  double temper; /* multiplies the log likelihood: ops get a history that is scaled by it */
  int64_t *fallbacks; /* [B], of the last draws, before any are replaced */
  PriorDigits *digits; /* [B], of the last history (history_digits) */
  double *outweighs; /* [B] */
  bool observed; /* draws as sampler/observed.h has it, by samplers of their own, and has no state */
  DrawNotes *notes; /* [B], about the last draws */
  void *state;
  int seen_runs, seen_rounds; /* of the history that the state includes */
};

const SamplerOps *sampler_method(int index); /* of the registry; NULL past the end */
const SamplerOps *sampler_find(const char *name);
const char *sampler_name(int index);
/* Replaces *name, if it is `auto`, by the sampler that was chosen with the prior (auto.c). Returns
 * STATUS_INPUT if none was chosen. */
Status sampler_take_auto(const Prior *prior, const char **name);

/* Returns the options of a sampler: `temper` and `guard`, which all share, and its own. The array ends with a
 * NULL name and is never freed. */
const ConfigKey *sampler_keys(const SamplerOps *method);
const ConfigKey *sampler_shared_keys(void);

/* Returns STATUS_INPUT with one sentence if these options of a method contradict each other or the
 * likelihood; NULL is allowed for a method without keys. */
Status sampler_check(const SamplerOps *method, const Config *options, const Likelihood *likelihood);
/* Creates `method` with the options of `setup`, which may be NULL for a method without keys. Returns
 * STATUS_INPUT with one sentence if the prior or likelihood lacks what the method needs, or if there are too
 * many draws. */
Status sampler_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, Sampler *out);
/* Does the same for the method alone, without temper and guard, and draws with it in the same way. */
Status sampler_create_plain(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, Sampler *out);
void sampler_sample_plain(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks);
/* Returns true, whatever the setup: for SamplerOps.vectors. */
bool sampler_always_vectors(const SamplerSetup *setup);
/* Creates the history for a sampler of this setup if its option `memory` makes it forget
 * (model/history/history_filtered.c): one in `share` runs has an observation in each round. Otherwise creates
 * nothing, sets *forgets to false and returns STATUS_OK. */
Status sampler_history(Arena *memory, const SamplerSetup *setup, int share, bool *forgets, History *out);
/* Returns whether the sampler has the posterior as its target. */
bool sampler_targets_posterior(const Sampler *sampler);
/* Returns whether the posterior is one Gaussian, which is known up to rounding. */
bool sampler_is_gaussian(const Sampler *sampler);
/* Returns a view of the history in which the log likelihood is multiplied by the option `temper`. */
History sampler_tempered(const Sampler *sampler, const History *history);
/* Calls ops->sample and checks the outcome. A draw that is not finite becomes 0 and counts as a fallback, and
 * so does one that is replaced because the evidence is too precise for the method (sampler/digits.h).
 * `history` may hold fewer runs than the sampler was created for. */
void sampler_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks);

/* Returns whether the method knows the moments of its draws in closed form, if the prior is a `mixture` or
 * not, and the likelihood `conjugate` or not. */
bool sampler_has_moments(const SamplerOps *method, bool mixture, bool conjugate);
/* Returns the same for a prior and a likelihood. */
bool sampler_moments_fit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood);
/* Computes mean[d, B] and covariance[d, d, B] of the draws that sampler_sample makes: in closed form or, if
 * there is none, from rng.draws >= 2 draws theta[d, B M], for which the caller provides the memory; otherwise
 * theta may be NULL. Moments that are not finite become 0 and add one to fallbacks[B]. */
void sampler_moments(Sampler *sampler, const History *history, RngLanes rng, double *theta, double *mean,
                     double *covariance, int64_t *fallbacks);

/* Computes value[B], the log marginal likelihood of each run (of its rewards given phi, under the prior), up
 * to the constant of the run that history_log_likelihood leaves out. Also computes error[B], how far it may
 * be off: the error of a numerical integral and the standard error of a mean over draws, whose streams are
 * `rng`, as for sampler_sample; errors of a learned prior are not included. Returns false, and does nothing,
 * if the method has no marginal likelihood. */
bool sampler_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value, double *error,
                      int64_t *fallbacks);

/* Computes weight[B], the posterior probability of the guard's wide Gaussian in each run. Returns false, and
 * does nothing, if there is no guard. */
bool sampler_guard_weight(Sampler *sampler, const History *history, double *weight, int64_t *fallbacks);

/* Notifies the sampler of the last observation of `history`. Must be called for every observation, in
 * order. */
void sampler_observe(Sampler *sampler, const History *history, int64_t *fallbacks);
/* Makes the updates of the rounds that are new to the state of the sampler, for a history that already
 * includes `temper`; samplers need not call it. The state of B runs begins again when a history is shorter
 * than the last one, or has a different number of runs. Rounds that the sampler was not notified of one by
 * one get one update each, at most SAMPLER_MOST_UPDATES, all with the evidence that the history has by then.
 * Every run must have an observation in every new round, unless only one round is new. */
enum { SAMPLER_MOST_UPDATES = 1000 };
void sampler_catch_up(Sampler *sampler, const History *history, int64_t *fallbacks);
/* Copies the state of run from_run of `from` to run to_run of `to`, a sampler that differs only in its number
 * of runs; `to` then counts as notified of all that `from` was. If only some runs of a history have a new
 * observation (history_latest_runs), a sampler of just these runs is notified of it, and the others keep
 * their state (policy/sampling.c). */
void sampler_carry(const Sampler *from, int from_run, Sampler *to, int to_run);

/* Returns the streams for the updates of a round: `lanes` of them from lane `first` on, with `draws` lanes
 * per run. */
RngLanes sampler_update_streams(const Sampler *sampler, int round, int draws, int first, int lanes);

/* Says why this method cannot run with this prior and likelihood: writes a sentence and returns true. Returns
 * false if it can. */
bool sampler_misfit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood, size_t size,
                    char *sentence);
