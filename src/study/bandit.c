/* The bandit study: full simulations of a contextual bandit, cumulative regret by round (DiffTS paper,
 * Section 6). */
#include "core/clock.h"
#include "sampler/check/alarm.h"
#include "sampler/check/watch.h"
#include "study/feedback.h"
#include "study/regret_floor.h"

#include <math.h>
#include <string.h>

/* ---- the optimal arm: how sure an agent is of it, measured by the entropy H(A*) of the arm that is best
 * under posterior draws (Russo and Van Roy 2016, An information-theoretic analysis of Thompson sampling). */

typedef struct {
  Sampler sampler; /* separate, with separate streams, so that the agent's own draws do not change */
  double *theta, *one; /* [d, B M]; [d, B], one draw per run */
  int *arm, *count; /* [B], [K, B] */
  int64_t *ignored; /* [B], fallbacks */
} OptimalArm;

/* Returns whether the policy has a single posterior of theta*, so that each draw from it has a best arm. */
static bool study_best_arm_known(const PolicyMethod *method, const Config *options, const Problem *problem) {
  return method->sampler && !problem->per_arm && !config_is(options, "posterior", "per_arm") &&
         !config_is(options, "model", "network");
}

/* Computes entropy[b stride] for each run b: the entropy, in nats, of the best arm in world->round given the
 * observations before it. It is estimated from the shares of M draws, so it is about (arms that occur - 1) /
 * (2 M) too low. */
static void study_best_arm_entropy(OptimalArm *self, const World *world, const History *history,
                                   size_t stride, double *entropy) {
  const SamplerSetup *setup = &self->sampler.setup;
  const int runs = setup->runs, draws = setup->draws, arms = world->problem->arms;
  const int entries = self->sampler.d * runs;
  const RngLanes rng =
      rng_lanes(rng_key(setup->seed, RNG_OPTIMAL_ARM), setup->first_run, runs, draws, world->round);
  sampler_sample(&self->sampler, history, rng, draws, self->theta, self->ignored);
  memset(self->count, 0, (size_t)arms * (size_t)runs * sizeof *self->count);
  for (int m = 0; m < draws; m++) {
    for (int n = 0; n < entries; n++) self->one[n] = self->theta[(size_t)n * (size_t)draws + (size_t)m];
    world_greedy(world, self->one, self->arm);
    for (int b = 0; b < runs; b++) self->count[self->arm[b] * runs + b]++;
  }
  for (int b = 0; b < runs; b++) {
    double sum = 0;
    for (int k = 0; k < arms; k++) {
      const double share = (double)self->count[k * runs + b] / draws;
      if (share > 0) sum -= share * log(share);
    }
    entropy[(size_t)b * stride] = sum;
  }
}

/* ---- the study */

/* One block of B runs in lockstep. */
typedef struct {
  Problem problem;
  World world;
  Likelihood likelihood; /* what the policy believes */
  History history;
  Policy policy;
  int *arm; /* [B] */
  double *phi; /* [d, B], of the arms taken */
  double *reward; /* [B] */
  double *regret; /* [B], in the current round */
  Feedback feedback;
  double discount; /* of the evidence, per round */
  bool asked, known; /* whether H(A*) is asked for; whether it can be known for the policy */
  OptimalArm optimal; /* set if both hold */
  bool doubted; /* p-values of the prior are asked for */
  Alarm *alarm; /* NULL: they are not known for the policy */
  Watch *watch; /* NULL: it is not known where the draws should be */
  bool floored; /* the floor of regret is asked for, and not yet in the result */
  RegretFloor floor;
  bool logged; /* events are stored, and arms are picked by their probabilities */
  double *probability; /* [B, K] */
  double aside; /* CPU seconds spent on measurements only */
} Block;

/* Draws theta[d, B] for a task whose theta* comes from a prior, after `segment` changes of theta*. */
static void study_draw_task_theta(const Study *study, const Task *task, uint32_t segment, double *theta) {
  RngLanes rng = rng_lanes(rng_key(study->seed, RNG_TUNE), task->first_run, task->runs, 1, segment);
  task->world->ops->sample(task->world, &rng, theta);
}

static Status study_bandit_block_create(Arena *memory, const Study *study, const Task *task,
                                        const Prior *prior, Tick tick, const TaskResult *result,
                                        Block *block) {
  const Config *setting = study->file->settings[task->setting];
  const ConfigPolicy *chosen = &study->file->policies[task->policy];
  const PolicyMethod method = policy_named(chosen->name);
  const int draws = (int)config_int(setting, "draws");
  double *theta = NULL;
  TRY(problem_create(setting, &block->problem));
  const size_t d = (size_t)block->problem.d, runs = (size_t)task->runs;
  if (task->world) {
    ALLOCATE(memory, theta, d * runs);
    study_draw_task_theta(study, task, 0, theta);
  }
  TRY(world_create_given(&block->problem, task->replicate, task->first_run, task->runs, theta,
                         &block->world));
  block->likelihood = policy_likelihood(&method, chosen->options, &block->problem);
  TRY(feedback_create(memory, setting, &block->problem, task->first_run, task->runs, &block->feedback));
  block->discount = policy_discount(chosen->options);
  block->logged = config_bool(setting, "event_log");
  if (block->logged) ALLOCATE(memory, block->probability, runs * (size_t)block->problem.arms);
  PolicySetup setup = study_policy_setup(study, task, &block->problem, prior, tick);
  setup.likelihood = &block->likelihood, setup.weighs = block->logged;
  TRY(policy_begin(memory, &method, &setup, &block->history, &block->policy));
  block->asked = study_measures(study, "optimal_arm_entropy");
  block->known = block->asked && study_best_arm_known(&method, chosen->options, &block->problem);
  if (block->known) {
    OptimalArm *optimal = &block->optimal;
    SamplerSetup sampler = policy_sampler_setup(&setup);
    sampler.draws = draws;
    ALLOCATE(memory, optimal->theta, d * runs * (size_t)draws);
    ALLOCATE(memory, optimal->one, d * runs);
    ALLOCATE_ARRAYS(memory, runs, optimal->arm, optimal->ignored);
    ALLOCATE(memory, optimal->count, (size_t)block->problem.arms * runs);
    TRY(sampler_create(memory, method.sampler, &sampler, &optimal->sampler));
  }
  block->doubted = study_measures(study, "prior_p_value");
  if (block->doubted && block->discount == 1 &&
      study_best_arm_known(&method, chosen->options, &block->problem) &&
      likelihood_is_conjugate(&block->likelihood) &&
      alarm_fits(prior, &block->likelihood, block->problem.rounds))
    TRY(alarm_create(memory, prior, &block->likelihood, block->problem.rounds, draws, study->seed,
                     &block->alarm));
  if (block->policy.theta && !block->logged)
    TRY(watch_create(memory, block->policy.sampler, &block->history, &block->watch));
  block->floored = study_measures(study, "regret_floor") && !result->has_shared;
  if (block->floored) TRY(regret_floor_create(memory, &block->problem, task, &block->floor));
  ALLOCATE_ARRAYS(memory, runs, block->arm, block->reward, block->regret);
  ALLOCATE(memory, block->phi, d * runs);
  return STATUS_OK;
}

static void study_bandit_block_destroy(Block *block) {
  policy_destroy(&block->policy);
  world_destroy(&block->world);
  problem_destroy(&block->problem);
}

/* Returns the values[runs, points] of the curve of this name. */
static double *study_curve_of_name(const Study *study, const TaskResult *result, const char *name) {
  int place = 0;
  while (strcmp(study->curves[place]->name, name) != 0) place++;
  return study_result_values(result, place, 0);
}

/* Sets round k of curve[run, point], the sum of regret[B] over all rounds so far. */
static void study_accumulate_regret(const TaskResult *result, int k, const double *regret, double *curve) {
  double *now = curve + k - 1;
  for (int b = 0; b < result->runs; b++, now += result->points) *now = regret[b] + (k > 1 ? now[-1] : 0);
}

/* Returns whether expensive measurements are made in round k: in rounds 1, 2, 5, 10, 20, 50, .., and in the
 * last. */
static bool study_judges_round(int k, int rounds) {
  int unit = 1;
  while (k >= 10 * unit) unit *= 10;
  return k == unit || k == 2 * unit || k == 5 * unit || k == rounds;
}

/* Measures what is asked for before the choice in round k: H(A*), NaN if it is not known, and the floor of
 * regret up to this round. */
static void study_measure_before_choice(const Study *study, Block *block, int k, TaskResult *result) {
  if (block->asked) {
    double *entropy = study_curve_of_name(study, result, "optimal_arm_entropy") + k - 1;
    for (int b = 0; b < result->runs && !block->known; b++) entropy[b * result->points] = NAN;
    if (block->known)
      study_best_arm_entropy(&block->optimal, &block->world, &block->history, (size_t)result->points,
                             entropy);
  }
  if (block->floored) {
    regret_floor_play(&block->floor, &block->world, block->regret);
    study_accumulate_regret(result, k, block->regret, study_curve_of_name(study, result, "regret_floor"));
  }
}

/* Measures what is asked for when round k has been played, but not learned from: shows the watch the draws
 * behind the choice, and stores what an event log cannot derive from the world. */
static void study_measure_choice(const Study *study, Block *block, int k, TaskResult *result) {
  if (block->watch && k > 1 && study_judges_round(k, block->problem.rounds))
    watch_add(block->watch, &block->history, 1, block->policy.theta);
  for (int b = 0; b < result->runs && block->logged; b++) {
    const int at = b * result->points + k - 1;
    study_curve_of_name(study, result, "event_arm")[at] = block->arm[b];
    study_curve_of_name(study, result, "event_reward")[at] = block->reward[b];
    study_curve_of_name(study, result, "event_propensity")[at] =
        block->probability[b * block->problem.arms + block->arm[b]];
  }
}

/* Simulates contextual Thompson sampling and its rivals (DiffTS paper, Algorithm 3), and writes the
 * cumulative regret to curves[run, point]. */
static Status study_bandit_simulate(const Study *study, const Task *task, Block *block, Tick tick,
                                    TaskResult *result) {
  const int rounds = block->problem.rounds, every = block->problem.drift_every;
  World *world = &block->world;
  History *history = &block->history;
  for (int k = 1; k <= rounds; k++) {
    if (every > 0 && k > 1 && (k - 1) % every == 0) { /* theta* changes */
      const uint32_t segment = (uint32_t)((k - 1) / every);
      if (task->world)
        study_draw_task_theta(study, task, segment, world->theta);
      else
        world_draw_theta(world, segment);
      world_theta_changed(world);
    }
    world_advance(world, (uint32_t)k);
    /* To read the clock takes as long as a cheap policy needs for a round. */
    const bool aside =
        block->asked || block->floored || block->doubted || (block->watch && study_judges_round(k, rounds));
    double start = aside ? clock_cpu() : 0;
    study_measure_before_choice(study, block, k, result);
    if (aside) block->aside += clock_cpu() - start;
    TRY(block->logged
            ? policy_weigh(&block->policy, world, history, block->probability, block->arm, result->fallbacks)
            : policy_choose(&block->policy, world, history, block->arm, result->fallbacks));
    world_play(world, block->arm, block->phi, block->reward, block->regret);
    study_accumulate_regret(result, k, block->regret, study_curve_of_name(study, result, "regret"));
    if (aside) start = clock_cpu();
    study_measure_choice(study, block, k, result);
    if (aside) block->aside += clock_cpu() - start;
    if (block->discount < 1) history_discount(history, block->discount);
    const int slots = feedback_exchange(&block->feedback, k, block->arm, block->phi, block->reward);
    for (int i = 0; i < slots; i++) {
      const FeedbackSlot *slot = &block->feedback.slots[i];
      history_record(history, slot->arm, slot->phi, slot->y);
      policy_observe(&block->policy, history, result->fallbacks);
      if (block->known) sampler_observe(&block->optimal.sampler, history, block->optimal.ignored);
    }
    if (aside) start = clock_cpu();
    for (int b = 0; b < result->runs && block->doubted; b++) /* NaN if the p-value is not known */
      study_curve_of_name(study, result, "prior_p_value")[b * result->points + k - 1] =
          block->alarm && study_judges_round(k, rounds)
              ? alarm_p_value(block->alarm, history, b, world->first_run + (uint32_t)b)
              : NAN;
    if (aside) block->aside += clock_cpu() - start;
    if (!core_tick_goes_on(tick, (double)k / rounds))
      return status_set(STATUS_STOPPED, "stopped in round %d of %d", k, rounds);
  }
  return STATUS_OK;
}

static Status study_bandit_run(const Study *study, const Task *task, const Prior *prior, Tick tick,
                               TaskResult *result) {
  SCRATCH_ARENA(memory);
  SCOPED(Block, block, study_bandit_block_destroy);
  TRY(study_bandit_block_create(&memory, study, task, prior, tick, result, &block));
  const double start = clock_cpu();
  const Status status = study_bandit_simulate(study, task, &block, tick, result);
  if (block.watch && status == STATUS_OK) watch_means(block.watch, task->runs, result->watched);
  const double spent = clock_cpu() - start - block.aside + block.policy.elsewhere;
  for (int b = 0; b < result->runs; b++) result->seconds[b] = spent / result->runs;
  return status;
}

static Status study_bandit_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  if (config_bool(setting, "event_log"))
    for (int p = 0; p < study->file->policy_count; p++) {
      const ConfigPolicy *policy = &study->file->policies[p];
      const PolicyMethod method = policy_named(policy->name);
      TRY(policy_check_weigh(&method, policy->options));
    }
  return study_measures(study, "regret_floor") ? regret_floor_check(problem) : STATUS_OK;
}

static int study_bandit_points(const Config *setting) { return (int)config_int(setting, "problem.rounds"); }

static double study_bandit_cost(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  const PolicyMethod method = policy_named(study->file->policies[task->policy].name);
  PolicyWork work = study_work(study, task);
  work.sampler.rounds = study_bandit_points(setting);
  /* The mean number of rows that a pass goes over. If rows are arms, Thompson sampling never plays most of
   * them: only about a third occur. */
  work.sampler.rows = work.rows_are_arms ? fmin(work.sampler.rounds, work.arms) / 3 : work.sampler.rounds / 2;
  const double asked =
      study_measures(study, "optimal_arm_entropy") ? (double)config_int(setting, "draws") : 0;
  const double shared = task->policy == 0 ? study->shared_cost[task->setting] : 0;
  return task->runs * work.sampler.rounds *
         ((config_bool(setting, "event_log") ? policy_weigh_cost(&method, &work)
                                             : policy_cost(&method, &work)) +
          asked * policy_cost(&method, &work) + study_world_cost(&work) + shared);
}

static double study_bandit_shared_cost(const Study *study, const Config *setting, const Problem *problem) {
  return study_measures(study, "regret_floor") ? regret_floor_cost(problem, study_bandit_points(setting)) : 0;
}

static const StudyCurve curves[] = {
    {.name = "regret", .long_name = "cumulative expected regret", .tails = true},
    {.name = "regret_floor",
     .long_name = "lower bound on the mean cumulative expected regret of any policy",
     .metric = "regret_floor",
     .shared = true,
     .of_world = true},
    {.name = "optimal_arm_entropy",
     .long_name = "entropy of the best arm under posterior draws, in nats",
     .metric = "optimal_arm_entropy"},
    {.name = "prior_p_value",
     .long_name = "p-value of the history under the prior, approximate because arms depend on rewards",
     .metric = "prior_p_value"},
    {.name = "event_arm", .long_name = "arm of an event", .unpublished = true},
    {.name = "event_reward", .long_name = "reward of an event", .unpublished = true},
    {.name = "event_propensity",
     .long_name = "probability with which the arm was picked",
     .unpublished = true},
    {.name = NULL}};

const StudyOps study_bandit = {.name = "bandit",
                               .summary = "contextual bandit simulations: cumulative regret by round",
                               .reference = "DiffTS, Sections 5 and 6",
                               .figure = "figure_diffts_2.py",
                               .axis = "round",
                               .axis_long_name = "round of the bandit",
                               .networks = true,
                               .curves = curves,
                               .points = study_bandit_points,
                               .check_setting = study_bandit_check_setting,
                               .cost = study_bandit_cost,
                               .shared_cost = study_bandit_shared_cost,
                               .run = study_bandit_run};
