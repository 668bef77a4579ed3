/* What a policy believes before the first round: which prior it gets in a setting, and where that prior comes
 * from.
 *
 * A fitted prior is named by the hash of everything that it depends on, and kept in DIR/priors, so that
 * policies, settings, ablations and resumed jobs share it. */
#pragma once

#include "model/prior/prior_oracle.h"
#include "problem/problem.h"
#include "sampler/sampler.h"

typedef enum {
  BELIEF_NONE, /* the policy does not use a prior */
  BELIEF_STANDARD, /* N(0, I) */
  BELIEF_WEIGHTS, /* N(0, I) on the weights of a network */
  BELIEF_ISING, /* uniform on {-1, 1}^d */
  BELIEF_EXACT, /* the problem's own distribution */
  BELIEF_FILE, /* a prior file, used as it is */
  BELIEF_ORACLE, /* a denoising oracle in Python */
  BELIEF_FITTED /* learned from samples of theta or from past tasks */
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
  const char *file; /* for BELIEF_FILE, not owned */
  OracleProcess oracle; /* for BELIEF_ORACLE */
  PriorFit fit; /* for a fitted prior; otherwise only the schedule of exact chains is taken from it */
  LearnedFrom learned_from;
  int64_t train_samples; /* if learned from theta; -1: all */
  int past_tasks; /* if learned from anything else */
  int past_observations; /* per task, also for the tasks that the guard learns its weight from */
  char hash[65]; /* of a fitted prior */
  bool learns; /* starts at N(0, I) and is learned during the study */
  PriorGuard guard; /* for a learned prior the study's guard, unless the policy has its own */
} Belief;

/* Creates the belief of a policy in a setting. Errors: STATUS_INPUT if the word is unknown, the problem has
 * no exact prior, a prior other than `standard` is asked for on the weights of a network, or logs are asked
 * for although nothing is learned from them. */
Status study_belief_create(const Config *setting, const ConfigPolicy *policy, const Problem *problem,
                           uint32_t replicate, Belief *out);

/* Turns `belief`, whose fit and likelihood are set, into a fitted prior of this family, learned from what the
 * setting names. Returns STATUS_INPUT if past tasks are needed but not possible. */
Status study_belief_fit_prior(const Config *setting, const PriorOps *family, const Problem *problem,
                              Belief *belief);

/* Finds the prior that must be fitted before this fitted belief's, BELIEF_NONE if there is none: when
 * learning from logs, a mixture whose posterior draws train the networks; the Gaussian under which
 * posterior_means are taken. */
Status study_belief_prerequisite(const Config *setting, const Problem *problem, const Belief *belief,
                                 Belief *out);

/* Creates the data for a fitted belief, which must outlive them: samples of theta, given or guessed from past
 * tasks, or the logs of these tasks, if the family can be fitted to those. `base` is the prior of
 * study_belief_prerequisite, or NULL if there is none. */
Status study_fit_data_create(Arena *memory, const Belief *belief, const Problem *problem, const Prior *base,
                             FitSource *out);

/* Returns the number of samples or past tasks that the prior is learned from. */
int study_belief_items(const Belief *belief, const Problem *problem);

/* Writes DIR/priors/FAMILY-HASH.nc. */
void study_belief_path(const Belief *belief, const char *directory, size_t size, char *path);

/* Returns whether `name` has the form of a file name that study_belief_path makes in DIR/priors. */
bool study_belief_is_file_name(const char *name);

/* Prints everything that a policy takes from its belief: what its prior is, or is learned from, its guard,
 * and the chain, unless the sampler works with the mixture itself. `sampler` is NULL for a policy that does
 * not sample. STATUS_FILE when a prior file cannot be read. */
Status study_belief_print(const Belief *belief, const SamplerOps *sampler, FILE *out);

/* Creates the prior itself; fitted priors are read from study_belief_path. */
Status study_belief_prior(Arena *memory, const Belief *belief, const Problem *problem, const char *directory,
                          Prior *out);

/* Checks that the sampler can run with this belief; if not, returns STATUS_INPUT with a sentence. Looks
 * only at what the prior can do, which for a fitted prior follows from its family, so nothing is fitted.
 * Opens prior files. */
Status study_belief_check(const Belief *belief, const SamplerOps *sampler, const Problem *problem);
/* Returns the numbers that a draw of the sampler goes through (study_task_size): the entries of a matrix or
 * the weights of a network, for each stage of a chain or each component of a mixture, and for each of `rows`
 * observations if the likelihood is not conjugate. */
double study_belief_draw_size(const Belief *belief, const SamplerOps *sampler, int d, double rows);
