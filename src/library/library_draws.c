/* What is asked of a posterior of the library: draws, the log evidence, and choices with their probabilities.
 */
#include "library/library.h"
#include "sampler/check/spread.h"

#include <limits.h>
#include <math.h>

/* Counts a fallback if the m draws theta[d, m], which the sampler has not counted itself, cannot have reached
 * the posterior because of their spread, if there are enough of them. */
static Status library_judge_draws(thompson_posterior *self, const Sampler *sampler, int m,
                                  const double *theta) {
  Spread spread;
  char sentence[256];
  if (m == 1) return STATUS_OK;
  TRY(spread_measure(sampler, &self->history, m, theta, &spread));
  const bool wrong = spread_complaint(&spread, sizeof sentence, sentence);
  self->fallbacks += wrong && spread.from == DRAWN_AS_PROMISED;
  return STATUS_OK;
}

/* So many draws of one history are made together (SamplerSetup.for_themselves). */
enum { FEWEST_TOGETHER = 100 };

/* Creates a sampler of m draws for themselves, from the history as it is. The method has no state. */
static Status library_create_together(Arena *memory, const thompson_posterior *self, int m, Sampler *out) {
  SamplerSetup setup = self->rule.sampler.setup;
  setup.draws = m;
  setup.for_themselves = true;
  setup.observations = self->history.rounds;
  return sampler_create(memory, self->method, &setup, out);
}

/* Draws with `sampler`: scratch[d, m], which becomes theta[m, d]. */
static Status library_draw_with(thompson_posterior *self, Sampler *sampler, int m, double *scratch,
                                double *theta) {
  const RngLanes rng = rng_lanes(self->key, 0, 1, m, self->round);
  int64_t fallbacks = 0;
  sampler_sample(sampler, &self->history, rng, m, scratch, &fallbacks);
  TRY(library_likelihood_end(self->given, self->method));
  self->fallbacks += fallbacks;
  self->round++;
  TRY(library_judge_draws(self, sampler, m, scratch));
  io_dataset_transpose(self->d, m, scratch, theta);
  return STATUS_OK;
}

static Status library_draw_together(thompson_posterior *self, int m, double *theta) {
  SCRATCH_ARENA(memory);
  Sampler sampler;
  double *scratch;
  TRY(library_create_together(&memory, self, m, &sampler));
  ALLOCATE(&memory, scratch, (size_t)self->d * (size_t)m);
  return library_draw_with(self, &sampler, m, scratch, theta);
}

thompson_status thompson_draw(thompson_posterior *self, int m, double *theta) {
  if (m < 1) return status_set(STATUS_INPUT, "%d draws requested; at least 1 is needed", m);
  library_likelihood_begin(self->given);
  if (m >= FEWEST_TOGETHER && !self->method->update) return library_draw_together(self, m, theta);
  if (m > self->rule.sampler.setup.draws) TRY(library_posterior_begin_sampler(self, m));
  return library_draw_with(self, &self->rule.sampler, m, self->rule.theta, theta);
}

/* Returns the largest log likelihood of each observation, summed, which evidence leaves out. */
static double library_best_log_likelihood(const thompson_posterior *self) {
  double sum = 0;
  const int observations = thompson_observation_count(self);
  for (int l = 0; l < observations; l++)
    sum += self->share[l] * likelihood_best(&self->likelihood, self->y[l]);
  return self->rule.sampler.temper * sum;
}

thompson_status thompson_log_evidence(thompson_posterior *self, double *value, double *error) {
  enum { DRAWS = 1024 };
  SCRATCH_ARENA(scratch);
  const RngLanes rng = {.key = rng_key(self->seed, RNG_MARGINAL), .draws = DRAWS, .lanes = DRAWS};
  int64_t fallbacks = 0;
  double *theta;
  Sampler sampler;
  if (self->forgets || self->method->update)
    return status_set(STATUS_INPUT, "sampler %s keeps no evidence of all observations with these options",
                      self->method->name);
  library_likelihood_begin(self->given);
  TRY(library_create_together(&scratch, self, DRAWS, &sampler));
  if (!sampler_marginal(&sampler, &self->history, rng, value, error, &fallbacks)) {
    ALLOCATE(&scratch, theta, (size_t)self->d * DRAWS);
    sampler_sample(&sampler, &self->history, rng, DRAWS, theta, &fallbacks);
    *value = sampler.guard ? NAN : sampler.notes[0].log_evidence; /* that of the prior alone */
    *error = sampler.notes[0].log_evidence_error;
  }
  TRY(library_likelihood_end(self->given, self->method));
  if (isnan(*value))
    return status_set(STATUS_INPUT,
                      "sampler %s does not know the log evidence with these options; mixts, localised, "
                      "smc_tempered and twisted can know it",
                      self->method->name);
  *value += library_best_log_likelihood(self);
  self->fallbacks += fallbacks;
  return THOMPSON_OK;
}

Status library_posterior_check_arms(const thompson_posterior *self, int sets, int k, const double *arms) {
  TRY(library_posterior_refuse_given(self, "rewards of arms"));
  if (k < 1) return status_set(STATUS_INPUT, "%d arms; at least 1 is needed", k);
  TRY(rule_check_arms(self->options, k));
  return library_check("arms", (size_t)sets * (size_t)k * (size_t)self->d, arms);
}

/* Counts a choice that has been made. */
static void library_count_choice(thompson_posterior *self) {
  self->round++;
  if (self->choices < INT_MAX) self->choices++;
}

/* Returns the choice from arms[k, d] that comes next. */
static RuleChoice library_next_choice(const thompson_posterior *self, int k, const double *arms) {
  return (RuleChoice){.history = &self->history,
                      .round = self->round,
                      .choices = self->choices,
                      .arms.count = k,
                      .features = arms};
}

thompson_status thompson_choose(thompson_posterior *self, int k, const double *arms, int *arm) {
  TRY(library_posterior_check_arms(self, 1, k, arms));
  const RuleChoice choice = library_next_choice(self, k, arms);
  rule_choose(&self->rule, &choice, arm, &self->fallbacks);
  rule_explore(&self->rule, self->round, 1, choice.arms, arm);
  library_count_choice(self);
  return THOMPSON_OK;
}

static Status library_choice_probabilities(thompson_posterior *self, int k, const double *arms,
                                           double *probability, int64_t *fallbacks) {
  TRY(library_posterior_check_arms(self, 1, k, arms));
  TRY(library_posterior_begin_propensity(self));
  const RuleChoice choice = library_next_choice(self, k, arms);
  rule_probabilities(&self->rule, &choice, probability, fallbacks);
  return STATUS_OK;
}

thompson_status thompson_probabilities(thompson_posterior *self, int k, const double *arms,
                                       double *probability) {
  int64_t fallbacks = 0;
  return library_choice_probabilities(self, k, arms, probability, &fallbacks);
}

thompson_status thompson_choose_propensity(thompson_posterior *self, int k, const double *arms, int *arm,
                                           double *propensity) {
  SCRATCH_ARENA(scratch);
  double *probability;
  ALLOCATE(&scratch, probability, k > 0 ? k : 1);
  TRY(library_choice_probabilities(self, k, arms, probability, &self->fallbacks));
  rule_pick(&self->rule, self->round, 1, k, probability, arm);
  *propensity = probability[*arm];
  library_count_choice(self);
  return THOMPSON_OK;
}

thompson_status thompson_score(thompson_posterior *self, int k, const double *arms, double *mean,
                               double *sd) {
  SCRATCH_ARENA(scratch);
  int64_t fallbacks = 0;
  Moments *rewards;
  TRY(library_posterior_check_arms(self, 1, k, arms));
  TRY(library_posterior_begin_propensity(self));
  ALLOCATE(&scratch, rewards, k);
  const RuleChoice choice = library_next_choice(self, k, arms);
  rule_rewards(&self->rule, &choice, rewards, &fallbacks);
  for (int arm = 0; arm < k; arm++) {
    mean[arm] = rewards[arm].mean;
    sd[arm] = moments_deviation(rewards[arm]);
  }
  return THOMPSON_OK;
}
