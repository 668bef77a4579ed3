/* Shared by posteriors (library_posterior.c) and agents (agents.c), which are processed through a posterior
 * of several runs, chunk by chunk. */
#pragma once

#include "library/library.h"
#include "rule/rule.h"

struct thompson_posterior {
  Arena memory; /* of the options; the other arenas hold what is made again when it grows */
  Arena x_memory, y_memory, history_memory, sampler_memory;
  const Prior *prior;
  const SamplerOps *method;
  Likelihood likelihood;
  Config *options; /* of the sampler and the rule */
  const char *text; /* the options as they were given */
  uint64_t seed;
  RngKey key;
  uint32_t round; /* of the next draw */
  uint32_t lives; /* how often everything was forgotten; names the streams of samplers that observe */
  int choices; /* since the last thompson_forget */
  int d, runs; /* runs: B; 1, or the size of a chunk of agents */
  int64_t fallbacks;
  int judged; /* observations when `lost` was last computed */
  bool lost; /* the evidence is too precise for the sampler's arithmetic (sampler/check/spread.h) */
  History history;
  Rule rule; /* includes the sampler, for at most setup.draws draws */
  bool propensity; /* the rule can compute probabilities */
  bool forgets; /* the history forgets observations, so they are not kept */
  /* All observations of a single run, for callers that ask for them, and to be replayed if the history or the
   * sampler cannot grow in place. */
  int room; /* number of observations that fit */
  double *x, *y; /* [room, d], [room] */
  double discount; /* the option: the factor by which a round of ageing multiplies evidence */
};

/* Creates a posterior as thompson_posterior_new does, for a chunk of `runs` agents. */
Status library_posterior_new(const Prior *prior, const char *sampler, const char *likelihood,
                             const char *options, uint64_t seed, int runs, thompson_posterior **out);
/* Creates a new sampler for this many draws, and replays the observations so far to it if it carries a
 * state. */
Status library_posterior_begin_sampler(thompson_posterior *self, int draws);
/* Makes sure that the rule can compute the probabilities of arms. */
Status library_posterior_begin_propensity(thompson_posterior *self);
/* Checks arms[sets, k, d]; returns STATUS_INPUT with a message if they are refused. */
Status library_posterior_check_arms(const thompson_posterior *self, int sets, int k, const double *arms);
/* Adds observations that library_posterior_check has accepted. */
Status library_posterior_observe(thompson_posterior *self, int n, const double *x, const double *y);
/* Makes room for twice this many observations, and for 64 at least, keeping those so far. */
Status library_posterior_grow_history(thompson_posterior *self, int rounds);
/* Computes the factor by which ageing by `rounds` multiplies evidence; returns STATUS_INPUT with a message if
 * the posterior keeps more than evidence. */
Status library_posterior_age_factor(const thompson_posterior *self, int rounds, double *factor);
/* Checks observations x[n, d], y[n]; returns STATUS_INPUT with a message if they are refused. */
Status library_posterior_check(const thompson_posterior *self, int n, const double *x, const double *y);
