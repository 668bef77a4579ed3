/* The convergence study: how many steps an iterative method takes to reach a Gaussian target (VITS paper,
 * Appendices F and I). A run is a target N(mu*, A^-1) (problem/target.c), met by a method that starts at
 * N(0, I) and makes one step at a time. After each step its Gaussian is compared with the target: that of a
 * variational method, or the time average of a Markov chain.
 *
 * The target is the posterior under the prior N(0, I) with evidence A - I and A mu*. Step k meets it as k
 * observations of weight 1 / k: the stream of random numbers is that of round k, and the step size h / (eta
 * t) stays h. */
#include "core/clock.h"
#include "core/simd.h"
#include "metric/gaussian_kl.h"
#include "model/prior/fit_keys.h"
#include "sampler/cost.h"
#include "study/keys.h"
#include "study/studies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a convergence study takes, and what it sets itself: everything else is refused, because it would
 * change nothing. */

static const struct {
  const char *key, *value, *because;
} FIXED[] = {{"steps", "1", "makes one step after another"},
             {"step_rule", "eta_t", "makes steps that are step_size long"},
             {"eta", "1", "has a target that is not tempered"},
             {"lambda", "1", "has a target that is not tempered"},
             {"temper", "1", "has a target that is not tempered"},
             {"guard", "0", "compares one Gaussian with the target"},
             {"prior", "standard", "starts every method at N(0, I)"},
             {"components", "1", "compares one Gaussian with the target"},
             {"posterior", "shared", "has one target"}};
enum { FIXED_OPTIONS = sizeof FIXED / sizeof *FIXED, SHOWN = 128 };

/* Creates `options` of a policy with those that the study sets, so that `observe` is one step of size h =
 * step_size on the target as it is. */
static Status convergence_options(Arena *memory, const Config *options, Config **out) {
  char texts[FIXED_OPTIONS][64];
  const char *sets[FIXED_OPTIONS];
  int count = 0;
  for (int i = 0; i < FIXED_OPTIONS; i++) {
    if (!config_has(options, FIXED[i].key)) continue;
    snprintf(texts[count], sizeof texts[count], "%s=%s", FIXED[i].key, FIXED[i].value);
    sets[count] = texts[count];
    count++;
  }
  return config_override(memory, options, "study convergence", count, sets, out);
}

static bool is_admitted(const SamplerOps *sampler) {
  return sampler && (sampler->gaussian || sampler->chain);
}

static Status refuse_method(void) {
  char names[256] = "";
  for (int i = 0; sampler_method(i); i++) {
    const size_t length = strlen(names);
    if (is_admitted(sampler_method(i)))
      snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", sampler_name(i));
  }
  return status_set(STATUS_INPUT,
                    "it does not step towards a target, and study convergence counts steps: take one of %s",
                    names);
}

/* Returns whether the value of `key` is the default, or the one in `set` (NULL: none); otherwise
 * shown[SHOWN] is the value. */
static bool is_left_alone(const Config *config, const Config *defaults, const Config *set, const char *key,
                          char *shown) {
  char other[SHOWN];
  config_show(config, key, SHOWN, shown);
  config_show(defaults, key, SHOWN, other);
  if (strcmp(shown, other) == 0) return true;
  if (set) config_show(set, key, SHOWN, other);
  return strcmp(shown, other) == 0;
}

static Status check_options(const Config *options, const Config *defaults, const Config *set) {
  char shown[SHOWN];
  for (int i = 0; i < FIXED_OPTIONS; i++)
    if (config_has(options, FIXED[i].key) && !is_left_alone(options, defaults, set, FIXED[i].key, shown))
      return status_set(STATUS_INPUT, "option %s = %s, but study convergence %s: leave it out, or give %s",
                        FIXED[i].key, shown, FIXED[i].because, FIXED[i].value);
  return STATUS_OK;
}

/* Returns STATUS_INPUT where the method does not step towards a target, or an option is neither at its
 * default nor what the study sets; where a key of the world or of priors is not at its default. */
static Status convergence_check_policy(const PolicyMethod *method, const Config *options) {
  SCRATCH_ARENA(scratch);
  Config *defaults, *set;
  if (!is_admitted(method->sampler)) return refuse_method();
  TRY(config_options(&scratch, "defaults", policy_keys(method->name), 0, NULL, &defaults));
  TRY(convergence_options(&scratch, options, &set));
  return check_options(options, defaults, set);
}

/* Returns whether it is a key of the world or of priors that this study has no use for: its target is its
 * own, and the prior N(0, I). */
static bool is_unused(const char *key) {
  static const char *const used[] = {"problem.dimension", "problem.condition_number", "prior.replicates"};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++)
    if (strcmp(key, used[i]) == 0) return false;
  return strncmp(key, "problem.", 8) == 0 || strncmp(key, "prior.", 6) == 0;
}

static Status convergence_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  static const char *const needed[] = {"name=any"};
  SCRATCH_ARENA(scratch);
  Config *defaults;
  char shown[SHOWN];
  (void)study, (void)problem;
  TRY(config_options(&scratch, "defaults", study_keys, 1, needed, &defaults));
  for (int i = 0; study_keys[i].name; i++)
    if (is_unused(study_keys[i].name) && !is_left_alone(setting, defaults, NULL, study_keys[i].name, shown))
      return status_set(STATUS_INPUT,
                        "key '%s': %s, but study convergence has no use for it: its target has "
                        "problem.dimension and problem.condition_number, and its methods start at N(0, I)",
                        study_keys[i].name, shown);
  return STATUS_OK;
}

enum { BURN_IN = 1000 /* steps of a chain that are neither averaged nor counted (Appendix F) */ };

/* One block of B runs in lockstep. */
typedef struct {
  const Task *task;
  Problem problem;
  World world;
  History history; /* what the method observes */
  Prior prior; /* N(0, I) */
  Config *options;
  Sampler sampler;
  RngKey key;
  GaussianTarget target;
  double *precision, *vector, *log_determinant; /* [d, d, B], [d, B], [B]: A, A mu*, log det A */
  double *evidence; /* [d, d, B]: A - I */
  double *mean, *covariance; /* [d, B], [d, d, B], of the method */
  double *theta, *spread, *deviation; /* [d, B], [d, d, B], [d, B], of a chain: see average_chain() */
  double *factor, *work, *kl; /* [d, d, B], [B], [B] */
  int *jitters; /* [B] */
  int64_t *reached; /* [B], first step at target_kl or below; 0: not yet */
  int waiting; /* runs that are not there yet */
} Block;

static Status create_sampler(Arena *memory, const Study *study, const Task *task, Block *block) {
  const ConfigPolicy *policy = &study->file->policies[task->policy];
  TRY(convergence_options(memory, policy->options, &block->options));
  PriorFit chain = fit_of_keys(study->file->settings[task->setting], "prior.", study->seed, task->replicate);
  TRY(prior_standard(memory, block->problem.d, &chain, &block->prior));
  SamplerSetup setup = {.prior = &block->prior,
                        .likelihood = &block->problem.likelihood,
                        .runs = task->runs,
                        .draws = 1,
                        .seed = study->seed,
                        .first_run = task->first_run,
                        .options = block->options};
  return sampler_create(memory, sampler_find(policy->name), &setup, &block->sampler);
}

static Status convergence_allocate(Arena *memory, Block *block) {
  const size_t d = (size_t)block->problem.d, runs = (size_t)block->task->runs;
  ALLOCATE_ARRAYS(memory, d * d * runs, block->precision, block->evidence, block->covariance, block->spread,
                  block->factor);
  ALLOCATE_ARRAYS(memory, d * runs, block->vector, block->mean, block->theta, block->deviation);
  ALLOCATE_ARRAYS(memory, runs, block->log_determinant, block->work, block->kl, block->jitters,
                  block->reached);
  return STATUS_OK;
}

/* Learns the target: every arm once, without noise, gives A and A mu*; the prior's part of A is taken out
 * again. */
static void learn_target(Block *block) {
  const size_t d = (size_t)block->problem.d, runs = (size_t)block->task->runs, size = sizeof(double);
  const HistoryView view = {&block->history, 1, 0, (int)runs, NULL, NULL};
  for (size_t k = 0; k < d; k++)
    history_record(&block->history, NULL, block->world.features + k * d * runs, block->world.mean + k * runs);
  history_evidence(&view, block->precision, block->vector);
  memcpy(block->evidence, block->precision, d * d * runs * size);
  for (size_t i = 0; i < d; i++)
    for (size_t b = 0; b < runs; b++) block->evidence[(i * d + i) * runs + b] -= 1;
  memcpy(block->factor, block->precision, d * d * runs * size);
  gaussian_log_determinant((int)d, (int)runs, block->factor, block->jitters, block->log_determinant);
  history_clear(&block->history);
  block->target = (GaussianTarget){.d = (int)d,
                                   .lanes = (int)runs,
                                   .mean = block->world.theta,
                                   .precision = block->precision,
                                   .log_determinant = block->log_determinant};
}

static Status block_create(Arena *memory, const Study *study, const Task *task, Block *block) {
  block->task = task;
  block->waiting = task->runs;
  block->key = rng_key(study->seed, RNG_AGENT);
  TRY(problem_create(study->file->settings[task->setting], &block->problem));
  TRY(world_create(&block->problem, task->replicate, task->first_run, task->runs, &block->world));
  TRY(history_create(memory, block->problem.d, task->runs, &block->problem.likelihood, &block->history));
  TRY(create_sampler(memory, study, task, block));
  TRY(convergence_allocate(memory, block));
  learn_target(block);
  return STATUS_OK;
}

static void block_destroy(Block *block) {
  world_destroy(&block->world);
  problem_destroy(&block->problem);
}

/* Returns whether the method has no Gaussian of its own: that of its time average is taken. */
static bool is_chain(const Block *block) { return block->sampler.ops->chain; }

/* Moves by one step of the method; the state of a chain goes to theta. */
static void move_method(Block *block, int64_t *fallbacks) {
  History *history = &block->history;
  const int k = history->rounds + 1;
  history_set_evidence(history, k, k, block->evidence, block->vector);
  history->temper = 1.0 / k;
  sampler_observe(&block->sampler, history, fallbacks);
  if (!is_chain(block)) return;
  RngLanes rng = {.key = block->key,
                  .run = block->task->first_run,
                  .draws = 1,
                  .round = (uint32_t)history->rounds,
                  .lanes = (uint32_t)block->task->runs};
  sampler_sample(&block->sampler, history, rng, 1, block->theta, fallbacks);
}

/* Updates mean and covariance of the states so far with theta[d, B], state number `count` of a chain, and
 * spread[d, d, B], the sum of their products about the mean. deviation[d, B] is scratch. */
SIMD_CLONES
static void average_chain(size_t d, size_t runs, double count, const double *restrict theta,
                          double *restrict mean, double *restrict spread, double *restrict covariance,
                          double *restrict deviation) {
  const double share = (count - 1) / count;
  for (size_t n = 0; n < d * runs; n++) {
    deviation[n] = theta[n] - mean[n];
    mean[n] += deviation[n] / count;
  }
  for (size_t i = 0; i < d; i++)
    for (size_t j = 0; j < d; j++) {
      const size_t at = (i * d + j) * runs;
      for (size_t b = 0; b < runs; b++) {
        spread[at + b] += share * (deviation[i * runs + b] * deviation[j * runs + b]);
        covariance[at + b] = spread[at + b] / count;
      }
    }
}

/* Makes step k; the method's Gaussian goes to mean and covariance, unless nobody asks for it. */
static void step_and_measure(Block *block, int64_t k, bool wanted, int64_t *fallbacks) {
  const Sampler *sampler = &block->sampler;
  move_method(block, fallbacks);
  if (is_chain(block))
    average_chain((size_t)block->problem.d, (size_t)block->task->runs, (double)k, block->theta, block->mean,
                  block->spread, block->covariance, block->deviation);
  else if (wanted)
    sampler->ops->gaussian(sampler, block->mean, block->covariance);
}

/* Computes KL of every run after step k, and finds the runs that have arrived for the first time. */
static void compare_with_target(Block *block, int64_t k, double target_kl) {
  const size_t d = (size_t)block->problem.d, runs = (size_t)block->task->runs;
  memcpy(block->factor, block->covariance, d * d * runs * sizeof *block->factor);
  gaussian_kl(&block->target, block->mean, block->factor, block->work, block->jitters, block->kl);
  if (is_chain(block) && k <= block->problem.d) /* so few states span no space about their mean */
    for (size_t b = 0; b < runs; b++) block->kl[b] = NAN;
  for (size_t b = 0; b < runs; b++)
    if (!block->reached[b] && islessequal(block->kl[b], target_kl)) {
      block->reached[b] = k;
      block->waiting--;
    }
}

/* Steps whose divergence is stored: every one at first, then about 20 for each factor of ten, then the
 * last. */
static int64_t next_stored(int64_t k, int64_t last) {
  const double factor = 1.12;
  int64_t next = (int64_t)((double)k * factor);
  if (next <= k) next = k + 1;
  return next < last ? next : last;
}

enum { STEPS_TO_TARGET, KL };

static double *curve_of_run(TaskResult *result, int which, int run) {
  return result->curves + ((size_t)which * (size_t)result->runs + (size_t)run) * (size_t)result->points;
}

/* Simulates; `spent` is the CPU time of the steps alone. */
static Status convergence_simulate(Block *block, const Config *setting, Tick tick, TaskResult *result,
                                   double *spent) {
  enum { TICK = 1000 };
  const double target_kl = config_real(setting, "target_kl");
  const int64_t last = config_int(setting, "max_steps"), ignored = is_chain(block) ? BURN_IN : 0;
  double start = clock_cpu();
  for (int64_t k = 0; k < ignored; k++) move_method(block, result->fallbacks);
  *spent += clock_cpu() - start;
  int point = 0;
  for (int64_t k = 1, stored = 1; k <= last; k++) {
    const bool wanted = block->waiting > 0 || k == stored;
    start = clock_cpu();
    step_and_measure(block, k, wanted, result->fallbacks);
    *spent += clock_cpu() - start;
    if (wanted) compare_with_target(block, k, target_kl);
    if (k == stored) {
      for (int b = 0; b < result->runs; b++) curve_of_run(result, KL, b)[point] = block->kl[b];
      point++, stored = next_stored(k, last);
    }
    if (k % TICK == 0 && tick.tick && !tick.tick(tick.context, (double)k / (double)last))
      return status_set(STATUS_STOPPED, "stopped after %lld of %lld steps", (long long)k, (long long)last);
  }
  for (int b = 0; b < result->runs; b++)
    for (int i = 0; i < point; i++)
      curve_of_run(result, STEPS_TO_TARGET, b)[i] = block->reached[b] ? (double)block->reached[b] : NAN;
  return STATUS_OK;
}

static Status convergence_run(const Study *study, const Task *task, const Prior *prior, Tick tick,
                              TaskResult *result) {
  (void)prior; /* N(0, I), which the block has of its own */
  SCRATCH_ARENA(memory);
  SCOPED(Block, block, block_destroy);
  double spent = 0;
  TRY(block_create(&memory, study, task, &block));
  TRY(convergence_simulate(&block, study->file->settings[task->setting], tick, result, &spent));
  for (int b = 0; b < result->runs; b++) result->seconds[b] = spent / result->runs;
  return STATUS_OK;
}

static int convergence_points(const Config *setting) {
  const int64_t last = config_int(setting, "max_steps");
  int count = 1;
  for (int64_t k = 1; k < last; k = next_stored(k, last)) count++;
  return count;
}

static double convergence_axis_value(const Config *setting, int point) {
  const int64_t last = config_int(setting, "max_steps");
  int64_t k = 1;
  for (int i = 0; i < point; i++) k = next_stored(k, last);
  return (double)k;
}

/* Returns the cost of a step, and of its divergence from the target. */
static double convergence_cost(const Study *study, const Task *task) {
  const ConfigPolicy *policy = &study->file->policies[task->policy];
  const SamplerOps *sampler = sampler_find(policy->name);
  SamplerWork work = study_work(study, task).sampler;
  const double d = work.d, divergence = 200 + 100 * d + 4 * d * d * d;
  work.rounds = (double)config_int(study->file->settings[task->setting], "max_steps");
  work.drawn = sampler->chain;
  SCRATCH_ARENA(scratch);
  Config *options;
  if (convergence_options(&scratch, policy->options, &options) != STATUS_OK) return 0; /* out of memory */
  work.options = options;
  const double step = cost_round(sampler, &work);
  return task->runs * work.rounds * (step + divergence);
}

static const StudyCurve curves[] = {
    {.name = "steps_to_target",
     .long_name = "first step whose divergence from the target is at most target_kl",
     .units = "1"},
    {.name = "kl",
     .long_name = "Kullback-Leibler divergence of the method's Gaussian from the target",
     .units = "1"},
    {.name = NULL}};

const StudyOps study_convergence = {
    .name = "convergence",
    .summary = "steps of iterative methods to a Gaussian target: Kullback-Leibler divergence by step",
    .reference = "VITS, Appendices F and I",
    .figure = "figure_vits_4.py",
    .axis = "step",
    .axis_long_name = "steps of the method; of a Markov chain, those after 1000 steps of burn-in",
    .curves = curves,
    .points = convergence_points,
    .axis_value = convergence_axis_value,
    .check_setting = convergence_check_setting,
    .check_policy = convergence_check_policy,
    .cost = convergence_cost,
    .run = convergence_run};
