/* What posteriors (posterior.c) and agents (agents.c) share: agents are taken through a posterior of several
 * runs, chunk by chunk. */
#pragma once

#include "library/library.h"
#include "rule/rule.h"

struct thompson_posterior {
  Arena memory; /* of the options; the other arenas hold what grows and is then made again */
  Arena rows_memory, history_memory, sampler_memory;
  const Prior *prior;
  const SamplerOps *method;
  Likelihood likelihood;
  Config *options; /* of the sampler and the rule */
  const char *text; /* the options as they were given */
  uint64_t seed;
  RngKey key;
  uint32_t round; /* of the next draw */
  uint32_t lives; /* how often everything was forgotten: names the streams of samplers that observe */
  int choices; /* since the last thompson_forget */
  int d, runs; /* runs: B; 1, or those of a chunk of agents */
  int64_t fallbacks;
  int judged; /* observations at the last check of what follows */
  bool lost; /* the evidence is beyond the digits of the sampler (sampler/check/spread.h) */
  History history;
  Rule rule; /* with the sampler, of setup.draws draws at most */
  bool propensity; /* it can be asked for probabilities */
  bool forgets; /* the history does: observations are not there */
  /* All observations of a single run, to be asked for, and to be given again where the history or the sampler
   * cannot grow by themselves. */
  int room; /* observations that there is room for */
  double *x, *y; /* [room, d], [room] */
  double discount; /* the option: what ageing by a round multiplies evidence by */
};

/* Creates a posterior as thompson_posterior_new does, for a chunk of `runs` agents. */
Status posterior_new(const Prior *prior, const char *sampler, const char *likelihood, const char *options,
                     uint64_t seed, int runs, thompson_posterior **out);
/* Begins a new sampler, for this many draws, notified of what is observed so far. */
Status posterior_begin_sampler(thompson_posterior *self, int draws);
/* Makes sure that the rule can be asked for the probabilities of arms. */
Status posterior_begin_propensity(thompson_posterior *self);
/* Returns STATUS_INPUT with one sentence for arms[sets, k, d] that are refused. */
Status posterior_check_arms(const thompson_posterior *self, int sets, int k, const double *arms);
/* Adds observations that posterior_check has admitted. */
Status posterior_observe(thompson_posterior *self, int n, const double *x, const double *y);
/* Makes a new history with room for this many observations and as many again, in which are those so far. */
Status posterior_grow_history(thompson_posterior *self, int rounds);
/* Computes what ageing by so many rounds multiplies evidence by; returns STATUS_INPUT with one sentence where
 * what was learned is more than evidence. */
Status posterior_age_factor(const thompson_posterior *self, int rounds, double *factor);
/* Returns STATUS_INPUT with one sentence for observations that are refused: x[n, d], y[n]. */
Status posterior_check(const thompson_posterior *self, int n, const double *x, const double *y);
