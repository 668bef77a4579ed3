/* The bandit study: full simulations of a contextual bandit, cumulative regret by round (DiffTS paper,
 * Section 6). */
#include "core/clock.h"
#include "sampler/check/alarm.h"
#include "sampler/check/watch.h"
#include "study/feedback.h"
#include "study/regret_floor.h"
#include "study/studies.h"

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

/* The curves, in the order of study_bandit.curves. */
enum { REGRET, FLOOR, ENTROPY, P_VALUE, EVENT_ARM, EVENT_REWARD, EVENT_PROPENSITY, CURVES };

/* One block of B runs in lockstep. */
typedef struct {
  const TaskRun *run;
  Play *play;
  double *curve[CURVES]; /* [B, rounds] each; NULL: not to be measured, or known already */
  Feedback feedback;
  double discount; /* of the evidence, per round */
  bool known; /* H(A*) is to be measured, and can be known for the policy */
  OptimalArm optimal; /* set if it is */
  Alarm *alarm; /* NULL: p-values of the prior are not asked for, or not known for the policy */
  Watch *watch; /* NULL: it is not known where the draws should be */
  RegretFloor floor; /* set if its curve is */
  double *probability; /* [B, K], by which arms are picked if events are stored; else NULL */
  double aside; /* CPU seconds spent on measurements only */
} Block;

/* Draws theta* of the runs after `segment` changes of it: from the task's own prior if it has one. */
static void study_bandit_draw_theta(const TaskRun *run, uint32_t segment, World *world) {
  const Task *task = run->task;
  RngLanes rng = rng_lanes(rng_key(run->study->seed, RNG_TUNE), task->first_run, task->runs, 1, segment);
  if (task->world) {
    ASSERT(!run->problem->per_arm && !run->problem->ops->arms_of_theta);
    task->world->ops->sample(task->world, &rng, world->theta);
  } else {
    world_draw_theta(world, segment);
  }
  world_theta_changed(world);
}

static Status study_bandit_block_create(Arena *memory, Block *block) {
  const TaskRun *run = block->run;
  const Study *study = run->study;
  const Problem *problem = run->problem;
  const Config *options = run->policy->options;
  Play *play = block->play;
  const int draws = (int)config_int(run->setting, "draws");
  const size_t d = (size_t)problem->d, runs = (size_t)run->task->runs;
  const bool has_best_arm = study_best_arm_known(&run->method, options, problem);
  for (int c = 0; c < study->curve_count; c++)
    if (!run->result->has_shared || !study->curves[c]->shared)
      block->curve[study->curves[c] - study_bandit.curves] = study_result_values(run->result, c, 0);
  TRY(study_play_create(memory, run, block->curve[EVENT_ARM] != NULL, play));
  if (run->task->world) study_bandit_draw_theta(run, 0, &play->world);
  TRY(feedback_create(memory, run->setting, problem, run->task->first_run, run->task->runs,
                      &block->feedback));
  block->discount = policy_discount(options);
  if (block->curve[EVENT_ARM]) ALLOCATE(memory, block->probability, runs * (size_t)problem->arms);
  block->known = block->curve[ENTROPY] && has_best_arm;
  if (block->known) {
    OptimalArm *optimal = &block->optimal;
    SamplerSetup sampler = policy_sampler_setup(&play->policy.setup);
    sampler.draws = draws;
    ALLOCATE(memory, optimal->theta, d * runs * (size_t)draws);
    ALLOCATE(memory, optimal->one, d * runs);
    ALLOCATE_ARRAYS(memory, runs, optimal->arm, optimal->ignored);
    ALLOCATE(memory, optimal->count, (size_t)problem->arms * runs);
    TRY(sampler_create(memory, run->method.sampler, &sampler, &optimal->sampler));
  }
  if (block->curve[P_VALUE] && block->discount == 1 && has_best_arm &&
      likelihood_is_conjugate(&run->belief.likelihood) &&
      alarm_fits(run->prior, &run->belief.likelihood, problem->rounds))
    TRY(alarm_create(memory, run->prior, &run->belief.likelihood, problem->rounds, draws, study->seed,
                     &block->alarm));
  if (play->policy.theta && !block->probability)
    TRY(watch_create(memory, play->policy.sampler, &play->history, &block->watch));
  return block->curve[FLOOR] ? regret_floor_create(memory, problem, run->task, &block->floor) : STATUS_OK;
}

/* Sets round k of curve[run, point], the sum of regret[B] over all rounds so far. */
static void study_accumulate_regret(const TaskResult *result, int k, const double *regret, double *curve) {
  double *now = curve + k - 1;
  for (int b = 0; b < result->runs; b++, now += result->points) *now = regret[b] + (k > 1 ? now[-1] : 0);
}

/* Returns whether expensive measurements are made in round k: 1, 2, 5, 10, 20, 50, .., and the last. */
static bool study_judges_round(int k, int rounds) {
  int unit = 1;
  while (k >= 10 * unit) unit *= 10;
  return k == unit || k == 2 * unit || k == 5 * unit || k == rounds;
}

/* Measures before the choice in round k, if asked for: H(A*), NaN if not known, and the floor of regret. */
static void study_measure_before_choice(Block *block, int k) {
  const TaskResult *result = block->run->result;
  Play *play = block->play;
  double *entropy = block->curve[ENTROPY];
  for (int b = 0; b < result->runs && entropy && !block->known; b++)
    entropy[b * result->points + k - 1] = NAN;
  if (block->known)
    study_best_arm_entropy(&block->optimal, &play->world, &play->history, (size_t)result->points,
                           entropy + k - 1);
  if (block->curve[FLOOR]) {
    regret_floor_play(&block->floor, &play->world, play->regret);
    study_accumulate_regret(result, k, play->regret, block->curve[FLOOR]);
  }
}

/* Measures what is asked for when round k has been played, but not learned from: shows the watch the draws
 * behind the choice, and stores what an event log cannot derive from the world. */
static void study_measure_choice(Block *block, int k) {
  const TaskResult *result = block->run->result;
  const int arms = block->run->problem->arms;
  const Play *play = block->play;
  if (block->watch && k > 1 && study_judges_round(k, block->run->problem->rounds))
    watch_add(block->watch, &play->history, 1, play->policy.theta);
  for (int b = 0; b < result->runs && block->probability; b++) {
    const int at = b * result->points + k - 1;
    block->curve[EVENT_ARM][at] = play->arm[b];
    block->curve[EVENT_REWARD][at] = play->reward[b];
    block->curve[EVENT_PROPENSITY][at] = block->probability[b * arms + play->arm[b]];
  }
}

/* Simulates contextual Thompson sampling and its rivals (DiffTS paper, Algorithm 3), and measures them. */
static Status study_bandit_simulate(Block *block) {
  const TaskRun *run = block->run;
  const int rounds = run->problem->rounds, every = run->problem->drift_every;
  TaskResult *result = run->result;
  int64_t *fallbacks = result->columns.fallbacks;
  Play *play = block->play;
  World *world = &play->world;
  History *history = &play->history;
  for (int k = 1; k <= rounds; k++) {
    if (every > 0 && k > 1 && (k - 1) % every == 0)
      study_bandit_draw_theta(run, (uint32_t)((k - 1) / every), world);
    world_advance(world, (uint32_t)k);
    /* To read the clock takes as long as a cheap policy needs for a round. */
    const bool aside = block->curve[ENTROPY] || block->curve[FLOOR] || block->curve[P_VALUE] ||
                       (block->watch && study_judges_round(k, rounds));
    if (aside) block->aside -= clock_cpu();
    study_measure_before_choice(block, k);
    if (aside) block->aside += clock_cpu();
    TRY(block->probability
            ? policy_weigh(&play->policy, world, history, block->probability, play->arm, fallbacks)
            : policy_choose(&play->policy, world, history, play->arm, fallbacks));
    world_play(world, play->arm, play->phi, play->reward, play->regret);
    study_accumulate_regret(result, k, play->regret, block->curve[REGRET]);
    if (aside) block->aside -= clock_cpu();
    study_measure_choice(block, k);
    if (aside) block->aside += clock_cpu();
    if (block->discount < 1) history_discount(history, block->discount);
    const int slots = feedback_exchange(&block->feedback, k, play->arm, play->phi, play->reward);
    for (int i = 0; i < slots; i++) {
      const FeedbackSlot *slot = &block->feedback.slots[i];
      history_record(history, slot->arm, slot->phi, slot->y);
      policy_observe(&play->policy, history, fallbacks);
      if (block->known) sampler_observe(&block->optimal.sampler, history, block->optimal.ignored);
    }
    if (aside) block->aside -= clock_cpu();
    for (int b = 0; b < result->runs && block->curve[P_VALUE]; b++) /* NaN if the p-value is not known */
      block->curve[P_VALUE][b * result->points + k - 1] =
          block->alarm && study_judges_round(k, rounds)
              ? alarm_p_value(block->alarm, history, b, world->first_run + (uint32_t)b)
              : NAN;
    if (aside) block->aside += clock_cpu();
    if (!core_tick_goes_on(run->tick, (double)k / rounds))
      return status_set(STATUS_STOPPED, "stopped in round %d of %d", k, rounds);
  }
  return STATUS_OK;
}

static Status study_bandit_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Play, play, study_play_destroy);
  TaskResult *result = run->result;
  Block block = {.run = run, .play = &play};
  TRY(study_bandit_block_create(&memory, &block));
  const double start = clock_cpu();
  const Status status = study_bandit_simulate(&block);
  if (block.watch && status == STATUS_OK)
    watch_means(block.watch, result->runs, result->columns.draws_offset, result->columns.draws_spread);
  const double spent = clock_cpu() - start - block.aside + play.policy.elsewhere;
  for (int b = 0; b < result->runs; b++) result->columns.seconds[b] = spent / result->runs;
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
  PolicyWork work = study_work(study, task);
  work.sampler.rounds = study_bandit_points(setting);
  /* The mean number of rows that a pass goes over. If rows are arms, Thompson sampling never plays most of
   * them: only about a third occur. */
  work.sampler.rows = work.rows_are_arms ? fmin(work.sampler.rounds, work.arms) / 3 : work.sampler.rounds / 2;
  const double asked =
      study_measures(study, "optimal_arm_entropy") ? (double)config_int(setting, "draws") : 0;
  const double shared = task->policy == 0 ? study->shared_cost[task->setting] : 0;
  return task->runs * work.sampler.rounds *
         ((config_bool(setting, "event_log") ? policy_weigh_cost(&work) : policy_cost(&work)) +
          asked * policy_cost(&work) + study_world_cost(&work) + shared);
}

static double study_bandit_shared_cost(const Study *study, const Config *setting, const Problem *problem) {
  return study_measures(study, "regret_floor") ? regret_floor_cost(problem, study_bandit_points(setting)) : 0;
}

static const StudyCurve curves[] = {
    [REGRET] = {.name = "regret", .long_name = "cumulative expected regret", .tails = true},
    [FLOOR] = {.name = "regret_floor",
               .long_name = "lower bound on the mean cumulative expected regret of any policy",
               .metric = "regret_floor",
               .shared = true,
               .of_world = true},
    [ENTROPY] = {.name = "optimal_arm_entropy",
                 .long_name = "entropy of the best arm under posterior draws, in nats",
                 .metric = "optimal_arm_entropy"},
    [P_VALUE] = {.name = "prior_p_value",
                 .long_name =
                     "p-value of the history under the prior, approximate because arms depend on rewards",
                 .metric = "prior_p_value"},
    [EVENT_ARM] = {.name = "event_arm", .long_name = "arm of an event", .unpublished = true},
    [EVENT_REWARD] = {.name = "event_reward", .long_name = "reward of an event", .unpublished = true},
    [EVENT_PROPENSITY] = {.name = "event_propensity",
                          .long_name = "probability with which the arm was picked",
                          .unpublished = true},
    [CURVES] = {.name = NULL}};

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
