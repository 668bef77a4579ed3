/* What a policy believes before the first round: which prior it gets in a setting, and where that prior comes
 * from.
 *
 * A fitted prior is named by the hash of everything that it depends on, and kept in DIR/priors, so that
 * policies, settings, ablations and resumed jobs share it. */
#pragma once

#include "problem/problem.h"
#include "sampler/sampler.h"

typedef enum {
  BELIEF_NONE, /* the policy does not use a prior */
  BELIEF_STANDARD, /* N(0, I) */
  BELIEF_WEIGHTS, /* N(0, I) on the weights of a network */
  BELIEF_ISING, /* uniform on {-1, 1}^d */
  BELIEF_EXACT, /* the problem's own distribution */
  BELIEF_FILE, /* a prior file, used as it is */
  BELIEF_FITTED /* learned from samples of theta, or from past tasks */
} BeliefKind;

/* What a fitted prior is learned from (prior.learned_from). */
typedef enum {
  LEARNED_FROM_THETA,
  LEARNED_FROM_LOGS,
  LEARNED_FROM_ESTIMATES,
  LEARNED_FROM_MEANS
} LearnedFrom;

typedef struct {
  BeliefKind kind;
  Likelihood likelihood; /* policy_likelihood */
  const PriorOps *family; /* of a fitted prior */
  const char *file; /* of BELIEF_FILE, not owned */
  PriorFit fit; /* of a fitted prior; gives the schedule of an exact chain otherwise */
  LearnedFrom learned_from;
  int64_t train_samples; /* from theta; -1: all */
  int past_tasks; /* from anything else */
  int past_observations; /* of each task, and of those that the guard learns its weight from */
  char hash[65]; /* of a fitted prior */
  bool learns; /* N(0, I) is the start of a prior that is learned while the study goes on */
  PriorGuard guard; /* of a learned prior that of the study, unless the policy has its own */
} Belief;

/* Creates the belief of a policy in a setting. Errors: STATUS_INPUT when the word is unknown, the problem
 * has no exact prior, another prior than `standard` is asked for on the weights of a network, or logs are
 * asked for where nothing is learned from them. */
Status belief_create(const Config *setting, const ConfigPolicy *policy, const Problem *problem,
                     uint32_t replicate, Belief *out);

/* Makes `belief`, with its fit and likelihood, one that is fitted: of this family, learned from what the
 * setting says. STATUS_INPUT where there can be no past tasks. */
Status belief_fit_prior(const Config *setting, const PriorOps *family, const Problem *problem,
                        Belief *belief);

/* Returns whether the family of a fitted belief can be fitted to logs themselves. */
bool belief_takes_logs(const Belief *belief);

/* Finds the prior that a fitted belief needs before its own, if it `has` one: from logs, a mixture whose
 * posterior draws networks learn from; the Gaussian under which posterior_means are taken. */
Status belief_prerequisite(const Config *setting, const Problem *problem, const Belief *belief, bool *has,
                           Belief *out);

/* Returns the operations that the fit of a fitted belief takes (PriorOps.cost). */
double belief_fit_cost(const Belief *belief, const Problem *problem);

/* Writes DIR/priors/FAMILY-HASH.nc. */
void belief_path(const Belief *belief, const char *directory, size_t size, char *path);

/* Returns whether `name` is what belief_path calls a file in DIR/priors. */
bool belief_is_file_name(const char *name);

/* Creates the prior itself; fitted ones are read from belief_path. */
Status belief_prior(Arena *memory, const Belief *belief, const Problem *problem, const char *directory,
                    Prior *out);

/* Enters into `work` what a sampler's cost depends on of the prior. Prior files are opened; a learned
 * prior of a file is taken to have networks as wide as the study's. */
Status belief_work(const Belief *belief, const Problem *problem, SamplerWork *work);

/* Returns whether the sampler cannot run with this belief: writes a sentence and returns STATUS_INPUT.
 * Looks only at what the prior can do, so nothing is fitted: its family says what it will be able to.
 * Prior files are opened. */
Status belief_check(const Belief *belief, const SamplerOps *sampler, const Problem *problem);
