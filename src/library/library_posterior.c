/* Posteriors of the library: one run of a sampler with its history, both of which grow with use. What is
 * asked of them, draws and choices, is in library_draws.c. */
#include "core/numeral.h"
#include "io/csv_fields.h"
#include "library/library.h"
#include "sampler/check/alarm.h"
#include "sampler/mixture/mixture_posterior.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Swaps two arenas. Blocks stay where they are; only the arenas that own them change. */
static void library_swap_arenas(Arena *a, Arena *b) {
  const Arena kept = *a;
  *a = *b;
  *b = kept;
}

Status library_posterior_begin_sampler(thompson_posterior *self, int draws) {
  const SamplerSetup setup = {.prior = self->prior,
                              .likelihood = &self->likelihood,
                              .runs = self->runs,
                              .draws = draws,
                              .seed = self->seed,
                              .first_run = self->lives,
                              .alone = true, /* so that a copy, or a file, continues with the same numbers */
                              .options = self->options};
  SCRATCH_ARENA(memory);
  Rule rule;
  TRY(rule_create(&memory, self->method, &setup, 0, self->propensity ? RULE_WEIGHS : RULE_CHOOSES, &rule));
  library_swap_arenas(&self->sampler_memory, &memory);
  rule.sampler.memory = &self->sampler_memory;
  rule.first_run = 0;
  self->rule = rule;
  if (!self->method->update) return STATUS_OK;
  const int rounds = self->history.rounds;
  int64_t counted_before = 0;
  history_clear(&self->history);
  for (int l = 0; l < rounds; l++) {
    history_record(&self->history, NULL, self->x + (size_t)l * (size_t)self->d, self->y + l);
    sampler_observe(&self->rule.sampler, &self->history, &counted_before);
  }
  return STATUS_OK;
}

Status library_posterior_begin_propensity(thompson_posterior *self) {
  if (self->propensity) return STATUS_OK;
  self->propensity = true;
  Status status = library_posterior_begin_sampler(self, self->rule.sampler.setup.draws);
  self->propensity = status == STATUS_OK;
  return status;
}

Status library_posterior_grow_history(thompson_posterior *self, int rounds) {
  const int room = rounds > INT_MAX / 2 ? INT_MAX : rounds < 32 ? 64 : 2 * rounds;
  const size_t d = (size_t)self->d, kept = (size_t)self->history.rounds;
  RESIZE(&self->x_memory, self->x, kept * d, (size_t)room * d);
  RESIZE(&self->y_memory, self->y, kept, room);
  RESIZE(&self->share_memory, self->share, kept, room);
  if (history_state(&self->history) == 0) { /* a history that grows with use is made again */
    SCRATCH_ARENA(memory);
    History history;
    TRY(history_create(&memory, self->d, self->runs, &self->likelihood, &history));
    TRY(history_reserve(&history, room));
    for (size_t l = 0; l < kept; l++) history_record(&history, NULL, self->x + l * d, self->y + l);
    library_swap_arenas(&self->history_memory, &memory);
    history.memory = &self->history_memory;
    self->history = history;
  }
  self->room = room;
  return STATUS_OK;
}

/* ---- create and destroy */

/* Frees a posterior that could not be finished, for SCOPED (core/arena.h). */
static void library_drop_posterior(thompson_posterior **self) { thompson_posterior_free(*self); }

/* Finds the likelihood: that of the registry, or a user's. */
static Status library_find_likelihood(thompson_posterior *self, const char *name,
                                      const thompson_likelihood_functions *functions) {
  if (functions)
    return library_likelihood_create(&self->memory, self->d, functions, &self->given, &self->likelihood);
  self->likelihood.ops = likelihood_find(name);
  if (!self->likelihood.ops) return config_unknown_name(STATUS_INPUT, name, "a likelihood", likelihood_name);
  return STATUS_OK;
}

Status library_posterior_new(const thompson_prior *prior, const thompson_arguments *arguments,
                             const thompson_likelihood_functions *functions, int runs,
                             thompson_posterior **out) {
  enum { KEYS = 32 };
  SCRATCH_ARENA(scratch);
  SCOPED(thompson_posterior *, self, library_drop_posterior);
  LibraryOptions texts;
  ConfigKey *keys;
  const char *sampler = arguments->sampler, *options = arguments->options;
  char *end;
  *out = NULL;
  NEW(self, 1);
  self->held = library_prior_hold(prior);
  self->prior = &prior->prior;
  self->d = self->prior->d;
  self->runs = runs;
  self->seed = arguments->seed;
  self->key = rng_key(self->seed, RNG_AGENT);
  TRY(sampler_take_auto(self->prior, &sampler));
  self->method = sampler_find(sampler);
  if (!self->method) return config_unknown_name(STATUS_INPUT, sampler, "a sampler", sampler_name);
  TRY(library_find_likelihood(self, arguments->likelihood, functions));
  /* The noise belongs to the likelihood, the discount to what was learned, and all other options to the rule
   * and the sampler. */
  TRY(arena_print(&self->memory, &self->text, "%s", options ? options : ""));
  TRY(library_options(&scratch, options, &texts));
  const char *noise = library_take_option(&texts, "noise"),
             *discount = library_take_option(&texts, "discount");
  if (noise && !likelihood_has_noise(&self->likelihood))
    return status_set(STATUS_INPUT,
                      "option noise=%s: noise is for Gaussian rewards; likelihood %s has no noise", noise,
                      self->likelihood.ops->name);
  self->likelihood.noise = noise ? numeral_read(noise, &end) : prior_noise(self->prior, 0);
  if (noise && (end == noise || *end || !(self->likelihood.noise >= 1e-12 && self->likelihood.noise <= 1e6)))
    return status_set(STATUS_INPUT, "option noise=%s; allowed: a number from 1e-12 to 1e6", noise);
  self->discount = discount ? numeral_read(discount, &end) : 1;
  if (discount && (end == discount || *end || !(self->discount >= 0 && self->discount <= 1)))
    return status_set(STATUS_INPUT, "option discount=%s; allowed: a number from 0 to 1", discount);
  ALLOCATE(&self->memory, keys, KEYS);
  config_join_keys(rule_keys(), NULL, KEYS, keys);
  config_join_keys(sampler_keys(self->method), NULL, KEYS, keys);
  TRY(config_options(&self->memory, "options", keys, texts.count, texts.text, &self->options));
  const SamplerSetup setup = {.prior = self->prior,
                              .likelihood = &self->likelihood,
                              .runs = runs,
                              .draws = 1,
                              .options = self->options};
  TRY(sampler_history(&self->history_memory, &setup, 1, &self->forgets, &self->history));
  if (!self->forgets) {
    TRY(history_create(&self->history_memory, self->d, self->runs, &self->likelihood, &self->history));
    TRY(history_reserve(&self->history, 0));
  }
  if (functions) history_record(&self->history, NULL, NULL, NULL); /* all that it will ever know */
  TRY(library_posterior_begin_sampler(self, 1));
  *out = self;
  self = NULL;
  return STATUS_OK;
}

thompson_status thompson_posterior_new(const thompson_prior *prior, const char *sampler,
                                       const char *likelihood, const char *options, uint64_t seed,
                                       thompson_posterior **out) {
  const thompson_arguments arguments = {
      .sampler = sampler, .likelihood = likelihood, .options = options, .seed = seed};
  return library_posterior_new(prior, &arguments, NULL, 1, out);
}

thompson_status thompson_posterior_copy(const thompson_posterior *from, thompson_posterior **out) {
  SCOPED(thompson_posterior *, self, library_drop_posterior);
  const size_t rounds = (size_t)thompson_observation_count(from), d = (size_t)from->d;
  thompson_arguments arguments;
  *out = NULL;
  thompson_posterior_arguments(from, &arguments);
  TRY(library_posterior_new(from->held, &arguments,
                            from->given ? library_likelihood_functions(from->given) : NULL, 1, &self));
  if (rounds > 0) {
    TRY(library_posterior_grow_history(self, (int)rounds));
    memcpy(self->x, from->x, rounds * d * sizeof *self->x);
    memcpy(self->y, from->y, rounds * sizeof *self->y);
    memcpy(self->share, from->share, rounds * sizeof *self->share);
  }
  history_gather(&from->history, (int[]){0}, &self->history);
  self->round = from->round;
  self->lives = from->lives;
  self->choices = from->choices;
  self->fallbacks = from->fallbacks;
  /* The state of a sampler follows from the observations. */
  TRY(library_posterior_begin_sampler(self, from->rule.sampler.setup.draws));
  *out = self;
  self = NULL;
  return STATUS_OK;
}

void thompson_posterior_free(thompson_posterior *self) {
  if (!self) return;
  arena_free(&self->sampler_memory);
  arena_free(&self->history_memory);
  arena_free(&self->x_memory);
  arena_free(&self->y_memory);
  arena_free(&self->share_memory);
  arena_free(&self->memory);
  thompson_prior_close(self->held);
  free(self);
}

Status library_posterior_refuse_given(const thompson_posterior *self, const char *what) {
  if (!self->given) return STATUS_OK;
  return status_set(STATUS_INPUT, "the likelihood is a function of theta: there are no %s", what);
}

thompson_status thompson_forget(thompson_posterior *self) {
  TRY(library_posterior_refuse_given(self, "observations to forget"));
  history_clear(&self->history);
  self->lives++;
  self->choices = 0;
  self->fallbacks = 0;
  return library_posterior_begin_sampler(self, self->rule.sampler.setup.draws);
}

/* ---- use */

Status library_posterior_check(const thompson_posterior *self, size_t n, const double *x, const double *y) {
  const LikelihoodOps *likelihood = self->likelihood.ops;
  TRY(library_check("x", n * (size_t)self->d, x));
  for (size_t row = 0; row < n; row++)
    if (!likelihood->admits(y[row]))
      return status_set(STATUS_INPUT,
                        "y: the reward of observation %zu (from 0) is %g; allowed with likelihood %s: %s",
                        row, y[row], likelihood->name, likelihood->rewards);
  return library_check("y", n, y);
}

Status library_posterior_admit(const thompson_posterior *self, int n, const double *x, const double *y) {
  const size_t d = (size_t)self->d;
  const double noise = self->likelihood.noise, most = noise * sqrt(DATASET_MOST);
  TRY(library_posterior_refuse_given(self, "observations to add to"));
  if (n < 0) return status_set(STATUS_INPUT, "cannot add %d observations", n);
  TRY(library_posterior_check(self, (size_t)n, x, y));
  if (!likelihood_is_conjugate(&self->likelihood)) return STATUS_OK;
  for (size_t row = 0; row < (size_t)n; row++) {
    size_t i = 0;
    while (i < d && fabs(x[row * d + i]) <= most) i++;
    if (i == d && fabs(y[row]) <= most) continue;
    return status_set(STATUS_INPUT,
                      "observation %zu (from 0): %s is %g; with noise %g, features and rewards must be at "
                      "most %g in size, as their evidence is the square of value / noise",
                      row, i < d ? "a feature in x" : "y", i < d ? x[row * d + i] : y[row], noise, most);
  }
  return STATUS_OK;
}

Status library_posterior_refuse(const thompson_posterior *self, int row, double y) {
  return status_set(
      STATUS_INPUT,
      "observation %d (from 0), with y = %g: what memory = filtered or keep would make of it is "
      "not finite or too large, with likelihood %s; memory = full can hold it",
      row, y, self->likelihood.ops->name);
}

Status library_posterior_observe(thompson_posterior *self, int n, const double *x, const double *y) {
  SCRATCH_ARENA(memory);
  const size_t d = (size_t)self->d, size = self->forgets ? history_state(&self->history) : 0;
  const int rounds = self->history.rounds;
  const int64_t fallbacks = self->fallbacks;
  double *before, *after; /* states */
  if (n > INT_MAX - rounds) return status_set(STATUS_INPUT, "cannot add %d observations", n);
  if (!self->forgets && rounds + n > self->room) TRY(library_posterior_grow_history(self, rounds + n));
  ALLOCATE_ARRAYS(&memory, size, &before, &after);
  if (self->forgets) history_store(&self->history, 0, before);
  for (int row = 0; row < n; row++) {
    const size_t place = (size_t)self->history.rounds;
    if (!self->forgets) {
      memcpy(self->x + place * d, x + (size_t)row * d, d * sizeof *x);
      self->y[place] = y[row];
      self->share[place] = 1;
    }
    history_record(&self->history, NULL, x + (size_t)row * d, y + row);
    sampler_observe(&self->rule.sampler, &self->history, &self->fallbacks);
    if (!self->forgets) continue;
    history_store(&self->history, 0, after);
    if (history_accepts(&self->history, after)) continue;
    history_clear(&self->history);
    history_load(&self->history, 0, rounds, before);
    self->fallbacks = fallbacks;
    return library_posterior_refuse(self, row, y[row]);
  }
  return STATUS_OK;
}

thompson_status thompson_observe(thompson_posterior *self, int n, const double *x, const double *y) {
  TRY(library_posterior_admit(self, n, x, y));
  return library_posterior_observe(self, n, x, y);
}

Status library_posterior_age_factor(const thompson_posterior *self, int rounds, double *factor) {
  TRY(library_posterior_refuse_given(self, "observations to age"));
  if (rounds < 0) return status_set(STATUS_INPUT, "%d rounds; allowed: 0 or more", rounds);
  const bool evidence = history_state(&self->history) > 0,
             rows = self->forgets && mixture_posterior_options(self->options).keep > 0;
  if (!evidence || rows || self->method->update || self->method->by_observation)
    return status_set(
        STATUS_INPUT,
        "sampler %s with likelihood %s keeps more than evidence and cannot age; ageing needs Gaussian "
        "rewards or memory = filtered, and a sampler that reads evidence, such as mixts",
        self->method->name, self->likelihood.ops->name);
  *factor = pow(self->discount, rounds);
  return STATUS_OK;
}

/* Scales the rows as well: Gaussian rewards and features multiplied by sqrt(factor) have their evidence
 * multiplied by factor. */
thompson_status thompson_age(thompson_posterior *self, int rounds) {
  double factor;
  TRY(library_posterior_age_factor(self, rounds, &factor));
  const size_t n = (size_t)thompson_observation_count(self), d = (size_t)self->d;
  for (size_t k = 0; k < n * d; k++) self->x[k] *= sqrt(factor);
  for (size_t k = 0; k < n; k++) self->y[k] *= sqrt(factor);
  for (size_t k = 0; k < n; k++) self->share[k] *= factor;
  history_discount(&self->history, factor);
  return THOMPSON_OK;
}

int thompson_observation_count(const thompson_posterior *self) {
  return self->forgets || self->given ? 0 : self->history.rounds;
}

void thompson_observations(const thompson_posterior *self, double *x, double *y) {
  const size_t n = (size_t)thompson_observation_count(self);
  if (n == 0) return;
  memcpy(x, self->x, n * (size_t)self->d * sizeof *x);
  memcpy(y, self->y, n * sizeof *y);
}

double thompson_posterior_noise(const thompson_posterior *self) { return self->likelihood.noise; }

int64_t thompson_fallbacks(const thompson_posterior *self) { return self->fallbacks; }

void thompson_posterior_arguments(const thompson_posterior *self, thompson_arguments *out) {
  *out = (thompson_arguments){.sampler = self->method->name,
                              .likelihood = self->likelihood.ops->name,
                              .options = self->text,
                              .seed = self->seed};
}

/* Computes covariance[d, d], what b = sum x y / noise^2 has given theta: sum share x x' / noise^2, as an aged
 * reward has less noise than others. Returns whether anything has aged. */
static bool library_noise_of_evidence(const thompson_posterior *self, double *covariance) {
  const size_t d = (size_t)self->d, n = (size_t)thompson_observation_count(self);
  const double noise = self->likelihood.noise;
  bool aged = false;
  for (size_t l = 0; l < n; l++) {
    const double *x = self->x + l * d;
    aged = aged || self->share[l] < 1;
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j < d; j++)
        covariance[i * d + j] += self->share[l] * (x[i] / noise) * (x[j] / noise);
  }
  return aged;
}

/* Checks that a p-value is available after this many observations. */
static Status library_check_p_value(const thompson_posterior *self, int observations) {
  TRY(library_posterior_refuse_given(self, "p-values"));
  if (observations == 0)
    return status_set(STATUS_INPUT, "a p-value of the prior needs observations, and there are none");
  if (self->forgets)
    return status_set(STATUS_INPUT, "a p-value of the prior needs all observations, and memory = filtered or "
                                    "keep forgets them");
  if (!alarm_fits(self->prior, &self->likelihood, observations))
    return status_set(STATUS_INPUT, "prior %s has no p-value after %d observations with likelihood %s",
                      self->prior->ops->name, observations, self->likelihood.ops->name);
  return STATUS_OK;
}

Status library_posterior_alarm(Arena *memory, const thompson_posterior *self, int observations, Alarm **out) {
  TRY(library_check_p_value(self, observations));
  return alarm_create(memory, self->prior, &self->likelihood, observations,
                      alarm_histories(&self->likelihood), self->seed, out);
}

thompson_status thompson_p_value(const thompson_posterior *self, double *p_value) {
  SCRATCH_ARENA(memory);
  const History *history = &self->history;
  Alarm *alarm;
  TRY(library_posterior_alarm(&memory, self, history->rounds, &alarm));
  double *covariance;
  ALLOCATE(&memory, covariance, (size_t)self->d * (size_t)self->d);
  if (library_noise_of_evidence(self, covariance)) alarm_set_noise(alarm, covariance);
  *p_value = alarm_p_value(alarm, history, 0, 0);
  return THOMPSON_OK;
}
