/* Rules: what to do with a belief. A sampler says what theta may be, a rule says which arm to play; it sees
 * the belief and the features of the arms, but neither the world nor the inside of a sampler.
 *
 * B runs in a block, K arms, run last: features[K, d, B]. */
#pragma once

#include "core/arms.h"
#include "core/moments.h"
#include "rule/ties.h"
#include "sampler/sampler.h"

typedef struct Rule Rule;

/* What a rule, or a policy, is created for. */
typedef enum {
  RULE_CHOOSES,
  RULE_WEIGHS, /* its probabilities are asked for too */
  RULE_SETTLES /* they are, and at some time its belief stops changing: rule_settle is called */
} RuleUse;

typedef struct {
  const char *name, *summary, *reference;
  bool moments; /* needs mean and covariance, in closed form or of `rule_draws` draws; otherwise one draw */
  bool reward; /* the index of an arm is its mean reward under the Gaussian with these moments */
  const ConfigKey *keys; /* own options, whose names no other rule has; ends with a NULL name; may be NULL */
  /* OPTIONAL. Returns STATUS_INPUT with one sentence if the rule cannot choose with these options. */
  Status (*create)(Rule *self);
  /* OPTIONAL. Returns z, by which the index of an arm is E[r] + z sd[r] after `choices` earlier choices;
   * without it the index is that of the draw or, if the rule needs moments, of the mean. */
  double (*quantile)(const Rule *self, int choices);
} RuleOps;

enum { RULE_PROPENSITY_PART = 125 }; /* draws at a time, which bounds the memory */

struct Rule {
  const RuleOps *ops;
  Sampler sampler;
  int horizon; /* n, the total number of choices; 0: not known */
  /* Set by the owner: arm k of run n has its own posterior, run n K + k of the history. The history, and the
   * arrays below, then have B K runs. */
  bool per_arm;
  RngKey key;
  uint32_t first_run; /* names the streams; or `runs` and `rounds` do, as in RngLanes */
  const uint32_t *runs, *rounds;
  int draws; /* M, which it takes at a time */
  double *theta; /* [d, B M], or larger if the caller takes more draws at a time */
  double *mean, *covariance; /* [d, B], [d, d, B]; NULL if they are not needed */
  double floor; /* least probability of an arm */
  RngKey pick; /* key of the streams by which an arm is picked with its probability */
  RngKey tie; /* and of those that say which of several equally good arms is taken */
  int propensity_draws; /* 0: rule_probabilities is not called */
  bool gaussian; /* draws are from one Gaussian, whose moments are known */
  bool settled; /* the belief does not change any more */
  double *kept; /* [parts][d, B RULE_PROPENSITY_PART], the draws of a settled belief; NULL: not kept */
  int *arm; /* [B]: scratch */
  double *top; /* [B]: the index of the arms last chosen; with `per_arm`, that of each arm */
  /* [B]: scratch for the mean and standard deviation of phi' theta of one arm; NULL unless the index is a
   * mean reward that is not phi' theta itself. */
  double *center, *deviation;
};

/* What a rule chooses from in a round: the arms of every run, and what is known by then. */
typedef struct {
  const History *history;
  uint32_t round; /* names the streams */
  int choices; /* made before this one */
  ArmSet arms; /* of the B runs */
  const double *features; /* [K, d, B]; with `per_arm` of the rule [d, B K] (policy/sampling.c) */
} RuleChoice;

/* Returns B. */
static inline int rule_runs(const Rule *rule, const RuleChoice *choice) {
  return choice->history->runs / (rule->per_arm ? choice->arms.count : 1);
}

const RuleOps *rule_method(int index); /* of the registry; NULL past the end */
/* Returns the rule of a policy with these options, which have the keys below, as everywhere in this file. */
const RuleOps *rule_of(const Config *options);
/* Returns the options that say which rule, and those of all rules. The array ends with a NULL name and is
 * never freed. */
const ConfigKey *rule_keys(void);
/* Returns the first of them, which do not belong to any particular rule. */
const ConfigKey *rule_shared_keys(void);

/* Returns STATUS_INPUT with one sentence for an option of a rule that is not chosen, one that another option
 * makes useless, or rewards that the rule does not support. */
Status rule_check(const Config *options, const Likelihood *likelihood);
/* Returns STATUS_INPUT with one sentence if the option `floor` is more than this many arms can all have. */
Status rule_check_arms(const Config *options, int arms);
/* Creates a rule and its sampler from the options of `setup`; setup->draws: the number that the caller takes
 * directly from the sampler at a time. `horizon`: the total number of choices unless the option sets it; 0:
 * not known. `use` says which functions will be called. */
Status rule_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, int horizon,
                   RuleUse use, Rule *out);
/* Returns the bytes that the draws and moments of a rule take, whose theta has d numbers in each of `runs`
 * runs. */
double rule_bytes(const Config *options, int d, double runs, RuleUse use);
/* Takes the belief of `choice` for the last one: computes its draws or moments once, and from then on
 * rule_probabilities uses these, whatever the round. For a rule that was created to settle. */
void rule_settle(Rule *rule, const RuleChoice *choice, int64_t *fallbacks);
/* Chooses arm[B], of the arms that each run has the one with the largest index, one at random on ties
 * (ties.h). The option `floor` is not applied: see rule_explore. */
void rule_choose(Rule *rule, const RuleChoice *choice, int *arm, int64_t *fallbacks);
/* Computes share[B, K], for a rule that needs moments: the probabilities with which rule_choose takes each
 * arm, 1 / n for n arms with the largest index. */
void rule_share(Rule *rule, const RuleChoice *choice, double *share, int64_t *fallbacks);
/* Computes the moments rewards[B, K] of the mean reward of each arm under the belief, from `propensity_draws`
 * draws (rewards.c); not with `per_arm`. */
void rule_rewards(Rule *rule, const RuleChoice *choice, Moments *rewards, int64_t *fallbacks);
/* Draws theta[d, B], one for each run, from the same streams. */
void rule_draw(Rule *rule, const History *history, uint32_t round, double *theta, int64_t *fallbacks);

/* Returns the streams of a round, M for each run. */
RngLanes rule_streams(const Rule *rule, uint32_t round, int runs, int draws);

/* ---- propensities: the probability that a rule takes an arm (propensity.c). The arm that is played is then
 * picked with these probabilities, so that they are exact, however few draws they come from. */

/* Computes probability[B, K], which sum to 1 in each run and are at least `floor` for the arms that it has.
 * For a rule that draws it is the share of `propensity_draws` draws in which the arm is the best, or a closed
 * form for two arms under one Gaussian; for any other rule it is 1 for the best arm. Arms that tie share what
 * one of them would have.
 */
void rule_probabilities(Rule *rule, const RuleChoice *choice, double *probability, int64_t *fallbacks);
/* Picks arm[B] by probability[B, K], with the streams of `round`. */
void rule_pick(const Rule *rule, uint32_t round, int runs, int arms, const double *probability, int *arm);
/* Replaces the rule's arm[B], with probability k `floor`, by one of the k arms that the run has with equal
 * probability: it is then taken with the probabilities above, without the work of rule_probabilities. */
void rule_explore(const Rule *rule, uint32_t round, int runs, ArmSet arms, int *arm);
