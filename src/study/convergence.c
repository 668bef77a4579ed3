/* The convergence study: how many steps an iterative method takes to reach a Gaussian target (VITS paper,
 * Appendices F and I). A run is a target N(mu*, A^-1) (problem/target.c), approached by a method that starts
 * at N(0, I) and makes one step at a time. After each step the method's Gaussian is compared with the target;
 * for a Markov chain it is that of the time average.
 *
 * The target is the posterior under the prior N(0, I) with evidence A - I and A mu*. Step k sees it as k
 * observations of weight 1 / k, so that the stream of random numbers is that of round k, and the step size h
 * / (eta t) stays h. */
#include "core/clock.h"
#include "core/simd.h"
#include "metric/metric_gaussian_kl.h"
#include "problem/problems.h"
#include "problem/world.h"
#include "study/keys.h"
#include "study/study.h"

/* What a convergence study accepts, and what it sets itself. All else is refused: it would have no effect. */

static const struct {
  const char *key, *value, *because;
} FIXED[] = {{"steps", "1", "takes one step at a time"},
             {"step_rule", "eta_t", "takes steps of length step_size"},
             {"eta", "1", "has a target that is not tempered"},
             {"lambda", "1", "has a target that is not tempered"},
             {"temper", "1", "has a target that is not tempered"},
             {"guard", "0", "compares one Gaussian with the target"},
             {"prior", "standard", "starts every method at N(0, I)"},
             {"components", "1", "compares one Gaussian with the target"},
             {"posterior", "shared", "has one target"}};
enum { FIXED_OPTIONS = sizeof FIXED / sizeof *FIXED, SHOWN = 128 };

/* Copies the `options` of a policy with the values that the study sets, so that `observe` makes one step of
 * size h = step_size on the untempered target. */
static Status study_convergence_options(Arena *memory, const Config *options, Config **out) {
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

static bool study_admits_sampler(const SamplerOps *sampler) {
  return sampler && (sampler->gaussian || sampler->chain);
}

/* Returns whether the value of `key`, written to shown[SHOWN], is the default or that of `set`, if given. */
static bool study_key_is_left_alone(const Config *config, const Config *defaults, const Config *set,
                                    const char *key, char *shown) {
  char other[SHOWN];
  config_show(config, key, SHOWN, shown);
  config_show(defaults, key, SHOWN, other);
  if (strcmp(shown, other) == 0) return true;
  if (set) config_show(set, key, SHOWN, other);
  return strcmp(shown, other) == 0;
}

/* Returns STATUS_INPUT if the method does not step towards a target, or if an option has neither its default
 * nor the value that the study sets. */
static Status study_convergence_check_policy(const PolicyMethod *method, const Config *options) {
  SCRATCH_ARENA(scratch);
  Config *defaults, *set;
  char shown[SHOWN], names[256] = "";
  for (int i = 0; sampler_method(i); i++) {
    const size_t length = strlen(names);
    if (study_admits_sampler(sampler_method(i)))
      snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", sampler_name(i));
  }
  if (!study_admits_sampler(method->sampler))
    return status_set(STATUS_INPUT,
                      "it does not step towards a target, and study convergence counts steps: use one of %s",
                      names);
  TRY(config_options(&scratch, "defaults", policy_keys(method->name), 0, NULL, &defaults));
  TRY(study_convergence_options(&scratch, options, &set));
  for (int i = 0; i < FIXED_OPTIONS; i++)
    if (config_has(options, FIXED[i].key) &&
        !study_key_is_left_alone(options, defaults, set, FIXED[i].key, shown))
      return status_set(STATUS_INPUT, "option %s = %s, but study convergence %s: leave it out, or use %s",
                        FIXED[i].key, shown, FIXED[i].because, FIXED[i].value);
  return STATUS_OK;
}

/* Returns STATUS_INPUT if a key of the world or of priors is not at its default, except for those that have
 * an effect: the study has its own target and the prior N(0, I). */
static Status study_convergence_check_setting(const Study *study, const Config *setting,
                                              const Problem *problem) {
  static const char *const needed[] = {"name=any"};
  static const char used[] = " problem.dimension problem.condition_number prior.replicates ";
  SCRATCH_ARENA(scratch);
  Config *defaults;
  char shown[SHOWN], word[SHOWN];
  (void)study, (void)problem;
  TRY(config_options(&scratch, "defaults", study_keys, 1, needed, &defaults));
  for (const ConfigKey *key = study_keys; key->name; key++) {
    if (strncmp(key->name, "problem.", 8) != 0 && strncmp(key->name, "prior.", 6) != 0) continue;
    snprintf(word, sizeof word, " %s ", key->name);
    if (!strstr(used, word) && !study_key_is_left_alone(setting, defaults, NULL, key->name, shown))
      return status_set(STATUS_INPUT,
                        "key '%s': %s, but study convergence does not use it: its target is set by "
                        "problem.dimension and problem.condition_number, and its methods start at N(0, I)",
                        key->name, shown);
  }
  return STATUS_OK;
}

enum { BURN_IN = 1000 /* steps of a chain that are neither averaged nor counted (Appendix F) */ };

/* One block of B runs in lockstep. */
typedef struct {
  const TaskRun *run;
  World *world;
  History history; /* what the method observes */
  Prior prior; /* N(0, I) */
  Config *options;
  Sampler sampler;
  RngKey key;
  GaussianTarget target;
  double *precision, *vector, *log_determinant; /* [d, d, B], [d, B], [B]: A, A mu*, log det A */
  double *evidence; /* [d, d, B]: A - I */
  double *mean, *covariance; /* [d, B], [d, d, B], of the method */
  double *theta, *spread, *deviation; /* [d, B], [d, d, B], [d, B], for a chain: see study_average_chain() */
  double *factor, *work, *kl; /* [d, d, B], [B], [B] */
  int *jitters; /* [B] */
  int64_t *reached; /* [B], first step at target_kl or below; 0: not yet */
  int waiting; /* runs that have not reached the target yet */
} Block;

/* Learns the target: observing every arm once, without noise, gives A and A mu*. The evidence is this without
 * the prior's part of A. */
static void study_learn_target(Block *block) {
  const size_t d = (size_t)block->run->problem->d, runs = (size_t)block->run->task->runs,
               size = sizeof(double);
  const HistoryView view = history_view(&block->history, 1, 0, (int)runs);
  for (size_t k = 0; k < d; k++)
    history_record(&block->history, NULL, block->world->features + k * d * runs,
                   block->world->mean + k * runs);
  history_evidence(&view, block->precision, block->vector);
  memcpy(block->evidence, block->precision, d * d * runs * size);
  for (size_t i = 0; i < d; i++)
    for (size_t b = 0; b < runs; b++) block->evidence[(i * d + i) * runs + b] -= 1;
  memcpy(block->factor, block->precision, d * d * runs * size);
  metric_gaussian_kl_log_determinant((int)d, (int)runs, block->factor, block->jitters,
                                     block->log_determinant);
  history_clear(&block->history);
  block->target = (GaussianTarget){.d = (int)d,
                                   .lanes = (int)runs,
                                   .mean = block->world->theta,
                                   .precision = block->precision,
                                   .log_determinant = block->log_determinant};
}

static Status study_convergence_block_create(Arena *memory, Block *block) {
  const TaskRun *run = block->run;
  const Task *task = run->task;
  const Problem *problem = run->problem;
  const uint64_t seed = run->study->seed;
  block->waiting = task->runs;
  block->key = rng_key(seed, RNG_AGENT);
  TRY(world_create(problem, task->replicate, task->first_run, task->runs, block->world));
  TRY(history_create(memory, problem->d, task->runs, &problem->likelihood, &block->history));
  const PriorFit chain = fit_of_keys(run->setting, seed, task->replicate);
  TRY(study_convergence_options(memory, run->policy->options, &block->options));
  TRY(prior_standard(memory, problem->d, &chain, &block->prior));
  const PolicySetup policy = study_policy_setup(run);
  SamplerSetup setup = policy_sampler_setup(&policy);
  setup.prior = &block->prior;
  setup.options = block->options;
  TRY(sampler_create(memory, run->method.sampler, &setup, &block->sampler));
  const size_t d = (size_t)problem->d, runs = (size_t)task->runs;
  ALLOCATE_ARRAYS(memory, d * d * runs, &block->precision, &block->evidence, &block->covariance,
                  &block->spread, &block->factor);
  ALLOCATE_ARRAYS(memory, d * runs, &block->vector, &block->mean, &block->theta, &block->deviation);
  ALLOCATE_ARRAYS(memory, runs, &block->log_determinant, &block->work, &block->kl);
  ALLOCATE(memory, block->jitters, runs);
  ALLOCATE(memory, block->reached, runs);
  study_learn_target(block);
  return STATUS_OK;
}

/* Makes one step of the method; the state of a chain goes to theta. */
static void study_step_method(Block *block, int64_t *fallbacks) {
  History *history = &block->history;
  const int k = history->rounds + 1;
  history_set_evidence(history, k, k, block->evidence, block->vector);
  history->temper = 1.0 / k;
  sampler_observe(&block->sampler, history, fallbacks);
  if (!block->sampler.ops->chain) return;
  const Task *task = block->run->task;
  const RngLanes rng = rng_lanes(block->key, task->first_run, task->runs, 1, (uint32_t)history->rounds);
  sampler_sample(&block->sampler, history, rng, 1, block->theta, fallbacks);
}

/* Updates mean[d, B] and covariance[d, d, B] of the states so far with theta[d, B], state `count` of a chain,
 * and spread[d, d, B], the sum of products of deviations from the mean. deviation[d, B] is scratch. */
SIMD_CLONES
static void study_average_chain(const Block *block, double count) {
  const size_t d = (size_t)block->run->problem->d, runs = (size_t)block->run->task->runs;
  const double *restrict theta = block->theta;
  double *restrict mean = block->mean;
  double *restrict deviation = block->deviation;
  double *restrict spread = block->spread;
  double *restrict covariance = block->covariance;
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

/* Returns the next step whose divergence is stored: every step at first, then about 20 per factor of ten,
 * then the last. */
static int64_t study_next_stored_step(int64_t k, int64_t last) {
  const double factor = 1.12;
  int64_t next = (int64_t)((double)k * factor);
  if (next <= k) next = k + 1;
  return next < last ? next : last;
}

enum { STEPS_TO_TARGET, KL };

/* Computes the divergence of each run after step k from the target, and notes which runs have reached it. */
static void study_compare_with_target(Block *block, int64_t k, double target_kl) {
  const int runs = block->run->result->runs, d = block->run->problem->d;
  const bool singular = block->sampler.ops->chain && k <= d; /* the covariance of its states so far */
  memcpy(block->factor, block->covariance, (size_t)(d * d) * (size_t)runs * sizeof *block->factor);
  metric_gaussian_kl(&block->target, block->mean, block->factor, block->work, block->jitters, block->kl);
  for (int b = 0; b < runs; b++) {
    if (singular) block->kl[b] = NAN;
    if (block->reached[b] || !islessequal(block->kl[b], target_kl)) continue;
    block->reached[b] = k;
    block->waiting--;
  }
}

/* Simulates a block; the timer is that of the steps alone. The method's Gaussian is known at
 * steps that are compared with the target; the average of a chain is updated in each. */
static Status study_convergence_simulate(Block *block, Timer *timer) {
  enum { TICK = 1000 };
  const Config *setting = block->run->setting;
  const TaskResult *result = block->run->result;
  const Sampler *sampler = &block->sampler;
  const bool chain = sampler->ops->chain; /* it has no Gaussian: that of its time average is used */
  const int runs = result->runs;
  const double target_kl = config_real(setting, "target_kl");
  const int64_t last = config_int(setting, "max_steps"), ignored = chain ? BURN_IN : 0;
  timer_start(timer);
  for (int64_t k = 0; k < ignored; k++) study_step_method(block, result->columns.fallbacks);
  timer_stop(timer);
  int point = 0;
  for (int64_t k = 1, stored = 1; k <= last; k++) {
    const bool wanted = block->waiting > 0 || k == stored;
    timer_start(timer);
    study_step_method(block, result->columns.fallbacks);
    if (chain)
      study_average_chain(block, (double)k);
    else if (wanted)
      sampler->ops->gaussian(sampler, block->mean, block->covariance);
    timer_stop(timer);
    if (wanted) study_compare_with_target(block, k, target_kl);
    if (k == stored) {
      for (int b = 0; b < runs; b++) study_result_values(result, KL, b)[point] = block->kl[b];
      point++;
      stored = study_next_stored_step(k, last);
    }
    if (k % TICK == 0 && !core_tick_goes_on(block->run->tick, (double)k / (double)last))
      return status_set(STATUS_STOPPED, "stopped after %lld of %lld steps", (long long)k, (long long)last);
  }
  for (int b = 0; b < runs; b++)
    for (int i = 0; i < point; i++)
      study_result_values(result, STEPS_TO_TARGET, b)[i] =
          block->reached[b] ? (double)block->reached[b] : NAN;
  return STATUS_OK;
}

static Status study_convergence_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(World, world, world_destroy);
  Block block = {.run = run, .world = &world};
  Timer timer = {0};
  TRY(study_convergence_block_create(&memory, &block));
  TRY(study_convergence_simulate(&block, &timer));
  study_result_set_seconds(timer.seconds, run->result);
  return STATUS_OK;
}

static int study_convergence_points(const Config *setting) {
  const int64_t last = config_int(setting, "max_steps");
  int count = 1;
  for (int64_t k = 1; k < last; k = study_next_stored_step(k, last)) count++;
  return count;
}

static double study_convergence_axis_value(const Config *setting, const Problem *problem, int point) {
  (void)problem;
  const int64_t last = config_int(setting, "max_steps");
  int64_t k = 1;
  for (int i = 0; i < point; i++) k = study_next_stored_step(k, last);
  return (double)k;
}

static double study_convergence_draws(const Config *setting) {
  return (double)config_int(setting, "max_steps");
}

static const StudyCurve curves[] = {
    {.name = "steps_to_target",
     .long_name = "first step whose divergence from the target is at most target_kl"},
    {.name = "kl", .long_name = "Kullback-Leibler divergence of the method's Gaussian from the target"},
    {.name = NULL}};

const StudyOps study_convergence = {
    .name = "convergence",
    .summary = "steps of iterative methods to a Gaussian target: Kullback-Leibler divergence by step",
    .reference = "VITS, Appendices F and I",
    .figure = "figure_vits_4.py",
    .keys = "target_kl max_steps",
    .axis = "step",
    .axis_long_name = "steps of the method; for a Markov chain, those after 1000 burn-in steps",
    .problem = &problem_target,
    .curves = curves,
    .points = study_convergence_points,
    .points_key = "max_steps",
    .draws = study_convergence_draws,
    .axis_value = study_convergence_axis_value,
    .check_setting = study_convergence_check_setting,
    .check_policy = study_convergence_check_policy,
    .run = study_convergence_run};
