/* The registry of posterior samplers, and the checks common to all of them before and after they run. */
#include "sampler/sampler.h"

#include "sampler/digits.h"
#include "sampler/guard.h"
#include "sampler/methods.h"
#include "sampler/mixture/mixture_posterior.h"
#include "sampler/observed.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static const SamplerOps *const METHODS[] = {
#define SAMPLER_ENTRY(name) &sampler_##name,
    SAMPLER_LIST(SAMPLER_ENTRY)
#undef SAMPLER_ENTRY
        NULL};

const SamplerOps *sampler_method(int index) {
  int count = (int)(sizeof METHODS / sizeof *METHODS) - 1;
  return index >= 0 && index < count ? METHODS[index] : NULL;
}

const SamplerOps *sampler_find(const char *name) {
  for (int i = 0; METHODS[i]; i++)
    if (strcmp(METHODS[i]->name, name) == 0) return METHODS[i];
  return NULL;
}

const char *sampler_name(int index) {
  const SamplerOps *method = sampler_method(index);
  return method ? method->name : NULL;
}

/* Appends the names of the samplers that are `able` to a sentence of at most `size` bytes. */
static void sampler_append_able(bool (*able)(const SamplerOps *method), size_t size, char *sentence) {
  const char *separator = "";
  for (int i = 0; METHODS[i]; i++)
    if (able(METHODS[i])) {
      const size_t used = strlen(sentence);
      snprintf(sentence + used, size - used, "%s %s", separator, METHODS[i]->name);
      separator = ",";
    }
}

static bool sampler_takes_networks(const SamplerOps *method) { return method->networks; }
static bool sampler_takes_functions(const SamplerOps *method) { return method->functions; }

/* Does the work of sampler_misfit for a likelihood of which only values and their gradient can be used. */
static bool sampler_functions_misfit(const SamplerOps *method, const Likelihood *likelihood, size_t size,
                                     char *sentence) {
  if (method->functions == FUNCTIONS_REFUSED) {
    snprintf(sentence, size,
             "sampler %s needs a likelihood that is log-concave in phi' theta; likelihood %s needs one of",
             method->name, likelihood->ops->name);
    sampler_append_able(sampler_takes_functions, size, sentence);
  } else if (method->functions > FUNCTIONS_VALUES && !likelihood_has_gradient(likelihood)) {
    snprintf(
        sentence, size,
        "sampler %s needs the gradient of the log likelihood, which this likelihood has not; smc_tempered "
        "needs values only",
        method->name);
  } else {
    return false;
  }
  return true;
}

bool sampler_misfit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood, size_t size,
                    char *sentence) {
  const char *name = method->name, *prior_family = prior->ops->name;
  const unsigned needs = method->needs;
  /* An isotropic mixture can do everything, in the coordinates that matter (sampler/observed.h). */
  const bool closed = prior->isotropic != NULL;
  const int components = closed           ? prior->isotropic->components
                         : prior->mixture ? prior->mixture->components
                                          : 0;
  if (!likelihood_is_concave(likelihood) && sampler_functions_misfit(method, likelihood, size, sentence))
    return true;
  if (likelihood_has_network(likelihood) && !(method->networks && likelihood->ops->quadratic)) {
    snprintf(sentence, size,
             "sampler %s needs a mean reward that depends on phi' theta; a network needs likelihood gaussian "
             "and one of",
             name);
    sampler_append_able(sampler_takes_networks, size, sentence);
    return true;
  }
  if ((needs & NEEDS_CONJUGATE) && !likelihood_is_conjugate(likelihood))
    snprintf(sentence, size,
             "sampler %s needs a likelihood that is quadratic in phi' theta (gaussian); likelihood %s is not",
             name, likelihood->ops->name);
  else if ((needs & (NEEDS_MIXTURE | NEEDS_GAUSSIAN)) && components == 0)
    snprintf(sentence, size, "sampler %s needs a %s prior in closed form; prior %s is not one", name,
             needs & NEEDS_GAUSSIAN ? "Gaussian" : "Gaussian mixture", prior_family);
  else if ((needs & NEEDS_GAUSSIAN) && components != 1)
    snprintf(sentence, size, "sampler %s needs a Gaussian prior; prior %s has %d components", name,
             prior_family, components);
  else if ((needs & NEEDS_CHAIN) && !prior->chain)
    snprintf(sentence, size, "sampler %s needs a prior with a reverse chain; prior %s has none", name,
             prior_family);
  else if ((needs & NEEDS_DENSITY) && !closed && !prior->ops->log_density)
    snprintf(sentence, size, "sampler %s needs a prior with a density; prior %s has none", name,
             prior_family);
  else if ((needs & NEEDS_SCORE) && !closed && !prior->ops->score)
    snprintf(sentence, size, "sampler %s needs a prior with a score; prior %s has none", name, prior_family);
  else if ((needs & NEEDS_DENOISER) && !closed && !prior->denoiser)
    snprintf(sentence, size,
             "sampler %s needs a prior with a denoiser for any precision (denoiser, gaussian, mixture, or "
             "ising in at most %d dimensions); prior %s has none",
             name, DENOISER_MOST_VERTICES, prior_family);
  else
    return method->fits && !method->fits(prior, likelihood, size, sentence);
  return true;
}

/* Options of every sampler. */
static const ConfigKey COMMON[] = {
    {REAL("temper", 1e-6, 1e6, "1", "multiplies the log likelihood; 2 doubles the evidence")},
    {REAL("guard", 0, 0.999999, "study",
          "weight of a wide Gaussian added to the prior, which may be wrong; study: prior.guard with a "
          "learned prior, else 0; auto: 0.3, with draws from it shrunk to 0.4"),
     .words = "study auto"},
    {.name = NULL}};

enum { KEYS = 16 };
static ConfigKey joined[sizeof METHODS / sizeof *METHODS][KEYS];

static void sampler_join_keys(void) {
  for (int m = 0; METHODS[m]; m++) {
    config_join_keys(COMMON, NULL, KEYS, joined[m]);
    config_join_keys(METHODS[m]->keys, NULL, KEYS, joined[m]);
  }
}

const ConfigKey *sampler_keys(const SamplerOps *method) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, sampler_join_keys);
  for (int m = 0; METHODS[m]; m++)
    if (METHODS[m] == method) return joined[m];
  ASSERT(!method->keys); /* not in the registry: only the shared options */
  return COMMON;
}

const ConfigKey *sampler_shared_keys(void) { return COMMON; }

/* Returns the mutex of a prior in whose scratch the sampler works; NULL if there is none. Threads that share
 * the prior take turns. */
static pthread_mutex_t *sampler_turn(const Sampler *sampler) {
  const bool scratch = sampler->ops->needs & (NEEDS_CHAIN | NEEDS_DENOISER) || !sampler->setup.prior->mixture;
  return scratch ? sampler->setup.prior->turn : NULL;
}

static void sampler_leave(const Sampler *sampler) {
  if (sampler_turn(sampler)) pthread_mutex_unlock(sampler_turn(sampler));
}

/* Waits for the sampler's turn, lets it catch up, and returns the history as its ops get it. */
static History sampler_enter(Sampler *sampler, const History *history, int64_t *fallbacks) {
  const History tempered = sampler_tempered(sampler, history);
  if (sampler_turn(sampler)) pthread_mutex_lock(sampler_turn(sampler));
  sampler_catch_up(sampler, &tempered, fallbacks);
  return tempered;
}

static void sampler_begin(Sampler *sampler, int runs) {
  sampler->ops->begin(sampler, runs);
  sampler->seen_runs = runs;
  sampler->seen_rounds = 0;
}

Status sampler_check(const SamplerOps *method, const Config *options, const Likelihood *likelihood) {
  return method->check && options ? method->check(options, likelihood) : STATUS_OK;
}

bool sampler_always_vectors(const SamplerSetup *setup) {
  (void)setup;
  return true;
}

/* Checks the setup, and creates everything but the state of the method. */
static Status sampler_prepare(Arena *memory, const SamplerOps *method, const SamplerSetup *setup,
                              Sampler *out) {
  char sentence[256];
  *out = (Sampler){.memory = memory, .ops = method, .setup = *setup, .d = setup->prior->d, .temper = 1};
  ASSERT(setup->runs >= 1 && setup->draws >= 1);
  ASSERT(setup->options || !method->keys);
  if (sampler_misfit(method, setup->prior, setup->likelihood, sizeof sentence, sentence))
    return status_set(STATUS_INPUT, "%s", sentence);
  TRY(sampler_check(method, setup->options, setup->likelihood));
  ALLOCATE(memory, out->fallbacks, setup->runs);
  ALLOCATE(memory, out->digits, setup->runs);
  ALLOCATE(memory, out->outweighs, setup->runs);
  ALLOCATE(memory, out->notes, setup->runs);
  for (int b = 0; b < setup->runs; b++) out->notes[b] = DRAW_NOTES_NONE;
  return STATUS_OK;
}

/* Creates the state of the method. */
static Status sampler_create_state(Sampler *self) {
  const SamplerSetup *setup = &self->setup;
  /* The lanes of a call, and the matrix entries of a chunk of lanes, are counted in int. */
  const int entries = setup->diagonal ? 1 : self->d;
  if (setup->runs > INT_MAX / setup->draws || self->d > INT_MAX / CHUNK_LANES / entries)
    return status_set(STATUS_INPUT, "sampler %s: %d draws for each of %d runs in %d dimensions are too many",
                      self->ops->name, setup->draws, setup->runs, self->d);
  if (setup->prior->isotropic && !setup->prior->mixture && !setup->diagonal)
    return status_set(
        STATUS_INPUT,
        "sampler %s: the prior has no matrices in %d dimensions, so that it needs many draws of "
        "one history",
        self->ops->name, self->d);
  if (sampler_turn(self)) pthread_mutex_lock(sampler_turn(self));
  const Status status = self->ops->create(self, setup);
  if (status == STATUS_OK && self->ops->begin) sampler_begin(self, setup->runs);
  sampler_leave(self);
  return status == STATUS_OK ? prior_check(setup->prior) : status;
}

Status sampler_create_plain(Arena *memory, const SamplerOps *method, const SamplerSetup *setup,
                            Sampler *out) {
  TRY(sampler_prepare(memory, method, setup, out));
  return sampler_create_state(out);
}

void sampler_sample_plain(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                          int64_t *fallbacks) {
  sampler_catch_up(sampler, history, fallbacks);
  sampler->ops->sample(sampler, history, rng, draws, theta, fallbacks);
}

Status sampler_create(Arena *memory, const SamplerOps *method, const SamplerSetup *setup, Sampler *out) {
  TRY(sampler_prepare(memory, method, setup, out));
  if (setup->options) out->temper = config_real(setup->options, "temper");
  const double g = guard_of(setup);
  if (g > 0) TRY(guard_check(setup->options, setup->likelihood, g));
  out->observed = observed_fits(method, setup);
  if (g > 0) TRY(guard_create(memory, setup, g, out->observed, &out->guard));
  return out->observed ? observed_check(method, setup) : sampler_create_state(out);
}

Status sampler_history(Arena *memory, const SamplerSetup *setup, int share, bool *forgets, History *out) {
  SCRATCH_ARENA(scratch);
  const Prior *prior = setup->prior;
  *forgets = false;
  if (!prior->mixture || !mixture_posterior_forgets(setup->options, setup->likelihood)) return STATUS_OK;
  const MixtureOptions options = mixture_posterior_options(setup->options);
  Mixture guarded;
  const double g = guard_of(setup);
  if (g > 0) TRY(guard_mixture(&scratch, prior, g, &guarded));
  *forgets = true;
  return history_create_filtered(memory, g > 0 ? &guarded : prior->mixture, options.keep, setup->runs, share,
                                 setup->likelihood, out);
}

bool sampler_targets_posterior(const Sampler *sampler) {
  const SamplerOps *ops = sampler->ops;
  return !ops->targets_posterior || ops->targets_posterior(sampler->setup.options);
}

bool sampler_is_gaussian(const Sampler *sampler) {
  const Mixture *mixture = sampler->setup.prior->mixture;
  return mixture && mixture->components == 1 && mixture_posterior_is_exact(sampler->setup.likelihood);
}

History sampler_tempered(const Sampler *sampler, const History *history) {
  History tempered = *history;
  tempered.temper *= sampler->temper;
  return tempered;
}

/* Adds 0 to sum[lanes] where x is finite, else NaN. */
static void sampler_mark_non_finite(int lanes, const double *restrict x, double *restrict sum) {
  for (int n = 0; n < lanes; n++) sum[n] += 0 * x[n];
}

/* Replaces draws vector[d, lanes], or moments with their matrix[d, d, lanes], that have an entry that is not
 * finite by those of a point at 0, and counts them: the last safety net under every method. */
static void sampler_replace_non_finite(int d, int lanes, int draws, double *vector, double *matrix,
                                       int64_t *fallbacks) {
  enum { TOGETHER = 64 };
  for (int first = 0; first < lanes; first += TOGETHER) {
    const int count = lanes - first < TOGETHER ? lanes - first : TOGETHER, squares = matrix ? d * d : 0;
    double sum[TOGETHER] = {0};
    for (int i = 0; i < d; i++) sampler_mark_non_finite(count, vector + (ptrdiff_t)i * lanes + first, sum);
    for (int i = 0; i < squares; i++)
      sampler_mark_non_finite(count, matrix + (ptrdiff_t)i * lanes + first, sum);
    for (int n = 0; n < count; n++) {
      if (sum[n] == 0) continue;
      for (int i = 0; i < d; i++) vector[(ptrdiff_t)i * lanes + first + n] = 0;
      for (int i = 0; i < squares; i++) matrix[(ptrdiff_t)i * lanes + first + n] = 0;
      fallbacks[(first + n) / draws]++;
    }
  }
}

void sampler_sample(Sampler *sampler, const History *history, RngLanes rng, int draws, double *theta,
                    int64_t *fallbacks) {
  ASSERT(likelihood_parameters(history->likelihood, history->d) == sampler->d);
  ASSERT(history->runs <= sampler->setup.runs);
  ASSERT(draws >= 1 && draws <= sampler->setup.draws);
  ASSERT((int)rng.draws == draws && (int)rng.lanes == history->runs * draws && rng.position == 0);
  const History tempered = sampler_enter(sampler, history, fallbacks);
  memset(sampler->fallbacks, 0, (size_t)history->runs * sizeof *sampler->fallbacks);
  if (sampler->observed)
    observed_sample(sampler, &tempered, rng, draws, theta, sampler->fallbacks);
  else
    sampler->ops->sample(sampler, &tempered, rng, draws, theta, sampler->fallbacks);
  sampler_leave(sampler);
  digits_replace(sampler, &tempered, rng, draws, theta, sampler->fallbacks);
  for (int b = 0; b < history->runs; b++) fallbacks[b] += sampler->fallbacks[b];
  if (sampler->guard) guard_replace(sampler->guard, &tempered, rng, draws, theta, fallbacks);
  sampler_replace_non_finite(sampler->d, history->runs * draws, draws, theta, NULL, fallbacks);
}

bool sampler_has_moments(const SamplerOps *method, bool mixture, bool conjugate) {
  const unsigned need = method->moments_need;
  return method->moments && (mixture || !(need & NEEDS_MIXTURE)) && (conjugate || !(need & NEEDS_CONJUGATE));
}

bool sampler_moments_fit(const SamplerOps *method, const Prior *prior, const Likelihood *likelihood) {
  return sampler_has_moments(method, prior->mixture, likelihood_is_conjugate(likelihood));
}

/* Computes the moments of theta[d, B M] for each run; the covariance is divided by M - 1. */
static void sampler_moments_of_draws(int d, int runs, int draws, const double *theta, double *mean,
                                     double *covariance) {
  const double each = 1.0 / draws, free = 1.0 / (draws - 1);
  const size_t lanes = (size_t)runs * (size_t)draws;
  for (int b = 0; b < runs; b++) {
    const double *own = theta + (size_t)b * (size_t)draws;
    for (int i = 0; i < d; i++) {
      const double *x = own + (size_t)i * lanes;
      double sum = 0;
      for (int m = 0; m < draws; m++) sum += x[m];
      mean[i * runs + b] = sum * each;
      for (int j = 0; j <= i; j++) {
        const double *y = own + (size_t)j * lanes;
        double product = 0;
        for (int m = 0; m < draws; m++) product += (x[m] - mean[i * runs + b]) * (y[m] - mean[j * runs + b]);
        covariance[(size_t)(i * d + j) * (size_t)runs + (size_t)b] = product * free;
        covariance[(size_t)(j * d + i) * (size_t)runs + (size_t)b] = product * free;
      }
    }
  }
}

void sampler_moments(Sampler *sampler, const History *history, RngLanes rng, double *theta, double *mean,
                     double *covariance, int64_t *fallbacks) {
  const int d = sampler->d, runs = history->runs;
  if (sampler->observed ||
      !sampler_moments_fit(sampler->ops, sampler->setup.prior, sampler->setup.likelihood)) {
    sampler_sample(sampler, history, rng, (int)rng.draws, theta, fallbacks);
    sampler_moments_of_draws(d, runs, (int)rng.draws, theta, mean, covariance);
    return;
  }
  const History tempered = sampler_enter(sampler, history, fallbacks);
  sampler->ops->moments(sampler, &tempered, mean, covariance, fallbacks);
  sampler_leave(sampler);
  digits_count_moments(sampler, &tempered, fallbacks);
  if (sampler->guard) guard_moments(sampler->guard, &tempered, mean, covariance, fallbacks);
  sampler_replace_non_finite(d, runs, 1, mean, covariance, fallbacks);
}

bool sampler_marginal(Sampler *sampler, const History *history, RngLanes rng, double *value, double *error,
                      int64_t *fallbacks) {
  bool known = true;
  if (!sampler->ops->marginal) return false;
  ASSERT(history->runs <= sampler->setup.runs && rng.lanes == (uint32_t)history->runs * rng.draws);
  const History tempered = sampler_enter(sampler, history, fallbacks);
  if (sampler->observed)
    known = observed_marginal(sampler, &tempered, rng, value, error, fallbacks);
  else
    sampler->ops->marginal(sampler, &tempered, rng, value, error, fallbacks);
  sampler_leave(sampler);
  if (!known) return false;
  if (sampler->guard) guard_marginal_likelihood(sampler->guard, &tempered, value, fallbacks);
  return true;
}

bool sampler_guard_weight(Sampler *sampler, const History *history, double *weight, int64_t *fallbacks) {
  if (!sampler->guard) return false;
  const History tempered = sampler_tempered(sampler, history);
  guard_weight(sampler->guard, &tempered, weight, fallbacks);
  return true;
}

void sampler_observe(Sampler *sampler, const History *history, int64_t *fallbacks) {
  if (history_is_filtered(history)) history_filtered_fallbacks(history, fallbacks);
  if (!sampler->ops->update || sampler->observed) return;
  sampler_enter(sampler, history, fallbacks);
  sampler_leave(sampler);
}

void sampler_catch_up(Sampler *sampler, const History *history, int64_t *fallbacks) {
  const SamplerOps *ops = sampler->ops;
  if (!ops->update || sampler->observed) return;
  ASSERT(history->runs <= sampler->setup.runs);
  if (sampler->seen_runs != history->runs || sampler->seen_rounds > history->rounds)
    sampler_begin(sampler, history->runs);
  const int missing = history->rounds - sampler->seen_rounds, most = ops->at_once ? 1 : SAMPLER_MOST_UPDATES;
  ASSERT(missing <= 1 || history->each_round == history->runs);
  for (int left = missing < most ? missing : most; left > 0; left--)
    ops->update(sampler, history, history->rounds - left + 1, fallbacks);
  sampler->seen_rounds = history->rounds;
}

void sampler_carry(const Sampler *from, int from_run, Sampler *to, int to_run) {
  from->ops->carry(from, from_run, to, to_run);
  to->seen_runs = to->setup.runs;
  to->seen_rounds = from->seen_rounds;
}

RngLanes sampler_update_streams(const Sampler *sampler, int round, int draws, int first, int lanes) {
  const SamplerSetup *setup = &sampler->setup;
  return (RngLanes){.key = rng_key(setup->seed, RNG_OBSERVE),
                    .run = setup->first_run,
                    .draws = (uint32_t)draws,
                    .round = (uint32_t)round,
                    .first_lane = (uint32_t)first,
                    .lanes = (uint32_t)lanes};
}
