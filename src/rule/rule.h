/* Rules: what to do with a belief. A sampler says what theta may be, a rule which arm to play; it sees the
 * belief and the features of the arms, no world and no sampler's inside. One registry line each.
 *
 * B runs in a block, K arms, run last: features[K, d, B]. */
#pragma once

#include "sampler/sampler.h"

typedef struct Rule Rule;

/* What a rule needs of a belief: bits, and the words of `thompson list`. */
#define RULE_NEEDS_LIST(ENTRY)                                                                               \
  ENTRY(DRAW, 0, "one draw")                                                                                 \
  ENTRY(MOMENTS, 1, "mean and covariance") /* in closed form, or of `rule_draws` draws */

#define RULE_NEEDS_ENUM(name, place, word) RULE_NEEDS_##name = 1 << place,
enum { RULE_NEEDS_LIST(RULE_NEEDS_ENUM) };
#undef RULE_NEEDS_ENUM

/* What is believed of theta in each run; what the rule does not need is NULL. */
typedef struct {
  int d, runs; /* B */
  const double *theta; /* [d, B], a draw */
  const double *mean, *covariance; /* [d, B], [d, d, B] */
} RuleBelief;

typedef struct {
  const char *name, *summary, *reference;
  unsigned needs;
  const ConfigKey *keys; /* own options, whose names no other rule has; ends with a NULL name; may be NULL */
  /* OPTIONAL. Allocates in self->memory. */
  Status (*create)(Rule *self);
  /* REQUIRED. The arm of each run, the first of equals, when `choices` were made before: arm[B]; and what it
   * is chosen by, top[B], unless that is NULL. */
  void (*choose)(const Rule *self, const RuleBelief *belief, int choices, int arms, const double *features,
                 int *arm, double *top);
  /* REQUIRED. Floating-point operations of a choice among so many arms, as those of a sampler (sampler.h). */
  double (*cost)(double d, double arms);
} RuleOps;

enum { RULE_PROPENSITY_PART = 125 }; /* draws at a time, of propensity_draws: it bounds the memory */

struct Rule {
  Arena *memory; /* of whoever created it */
  const RuleOps *ops;
  Sampler sampler;
  int horizon; /* n, choices in all; 0: not known */
  RngKey key;
  uint32_t first_run; /* names the streams; or `runs` and `rounds` do, as in RngLanes */
  const uint32_t *runs, *rounds;
  int draws; /* M: that it takes at a time */
  double *theta; /* [d, B M], or of as many draws as the caller takes */
  double *mean, *covariance; /* [d, B], [d, d, B]; NULL where they are not needed */
  double floor; /* least probability of an arm */
  RngKey pick; /* of the streams by which an arm is picked from probabilities */
  int propensity_draws; /* 0: rule_probabilities is not asked for */
  bool gaussian; /* draws are those of one Gaussian, whose moments are known */
  int *arm; /* [B], with propensity_draws */
  void *state;
};

const RuleOps *rule_method(int index); /* registry; NULL ends */
const char *rule_name(int index);
/* Returns the rule of a policy with these options; `thompson` without. */
const RuleOps *rule_of(const Config *options);
/* Returns the options that say which rule, and those of all rules. They end with a NULL name and live for
 * ever. */
const ConfigKey *rule_keys(void);
/* Returns the first of them, which belong to no rule of their own. */
const ConfigKey *rule_shared_keys(void);

/* Returns STATUS_INPUT with one sentence for an option of a rule that is not chosen, or for rewards that the
 * rule cannot take. */
Status rule_check(const Config *options, const Likelihood *likelihood);
/* Returns STATUS_INPUT with one sentence where the options want more of so many arms than can be. */
Status rule_check_arms(const Config *options, int arms);
/* Creates a rule, by the options of `setup`, and its sampler, by all of them; setup->draws: those that the
 * caller takes from the sampler by itself, at a time. `horizon`: the number of choices in all where the
 * option does not say it; 0: not known. `propensity`: rule_probabilities will be asked for. */
Status rule_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, int horizon,
                   bool propensity, Rule *out);
/* Chooses arm[B] and, unless that is NULL, computes top[B] as above: after `choices` choices, with the
 * streams of `round`. The option `floor` is not in it: rule_explore. */
void rule_choose(Rule *rule, const History *history, uint32_t round, int choices, int arms,
                 const double *features, int *arm, double *top, int64_t *fallbacks);
/* Draws theta[d, B], one for each run, by the same streams. */
void rule_draw(Rule *rule, const History *history, uint32_t round, double *theta, int64_t *fallbacks);

/* ---- propensities: the probability that a rule takes an arm (propensity.c). The arm that is played is then
 * picked by these probabilities, so that they are exactly those by which it was chosen, however few draws
 * they come from. Either one posterior for all arms, B = history->runs; or `apart`, arm k of run n being run
 * n K + k of the history, of B K runs, and features[d, B K] (policy/per_arm.c). */

/* Computes probability[B, K], which sum to 1 in each run and are at least `floor`: of a rule that draws, the
 * share of `propensity_draws` draws in which the arm is the best, in closed form for two arms under one
 * Gaussian; of any other 1 for the arm that it takes. */
void rule_probabilities(Rule *rule, const History *history, uint32_t round, int choices, int arms, bool apart,
                        const double *features, double *probability, int64_t *fallbacks);
/* Picks arm[B] by probability[B, K], with the streams of `round`. */
void rule_pick(const Rule *rule, uint32_t round, int runs, int arms, bool apart, const double *probability,
               int *arm);
/* Replaces the rule's arm[B] by any of K, all alike, with the probability K `floor`: then its probabilities
 * are those above without having been asked for. */
void rule_explore(const Rule *rule, uint32_t round, int runs, int arms, bool apart, int *arm);

/* Returns the floating-point operations of a round of one run: of the sampler, and of the choice. */
double rule_cost(const SamplerOps *method, const SamplerWork *work, double arms);

/* Finds the arm with the highest phi' theta in each run, the first of equals: arm[B]; theta[d, B]. */
void rule_best(int arms, int d, int runs, const double *features, const double *theta, int *arm);
