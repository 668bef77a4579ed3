/* The replay study: the value of a policy, its mean reward per event, from a log that another policy left.
 *
 * Each run goes through the events in its own order. For ips, snips and dr the policy learns on the first
 * part of them and is frozen; its probabilities pi(k | x) then weight the rest by w = pi(a | x) / p, where a,
 * r and p are the arm, reward and propensity of an event (Horvitz and Thompson 1952; Swaminathan and Joachims
 * 2015; Dudik, Langford and Li 2011):
 *
 *   ips     sum of w r / number of events
 *   snips   sum of w r / sum of w
 *   dr      sum of { sum_k pi(k | x) q_k(x) + w (r - q_a(x)) } / number of events
 *
 * where q is the ridge regression of rewards on the first part. For `replay` the policy goes through all
 * events and learns from those whose arm it chooses itself (Li, Chu, Langford and Wang 2011); its value is
 * their mean reward. This is unbiased if the log took each arm with the same probability.
 *
 * All four are ratios of two sums over events, so resampled events (Efron 1979) are weights in both. A curve
 * has the estimate, the effective sample size, the mean weight, and the estimates from ESTIMATES_RESAMPLES
 * bootstrap samples, which are the same in every run. Streams of these samples: (EVENTS, PICK), run = the
 * sample. */
#include "core/clock.h"
#include "problem/problem_logged.h"
#include "study/estimates.h"
#include "study/studies.h"

#include <math.h>
#include <string.h>

enum { IPS, SNIPS, DR, REPLAY, ESTIMATORS };

/* The terms of an estimator, by event: numerator[n] and denominator[n], 0 for events that are not used. */
typedef struct {
  double *numerator, *denominator;
} Terms;

/* One block of B runs in lockstep. */
typedef struct {
  const Study *study;
  const Task *task;
  const Prior *prior;
  Tick tick;
  Problem problem;
  World world;
  const EventLog *log;
  Likelihood likelihood; /* what the policy believes */
  History history;
  Policy policy;
  int trained; /* events that a policy learns on before it is frozen */
  int *arm; /* [B] */
  double *phi, *reward; /* [d, B], [B] */
  double *probability; /* [B, K] */
  double *theta; /* [B, models, d], the ridge regression of rewards */
  int *events; /* [n], and square[d, d]: scratch of the regression */
  double *square;
  Terms *terms; /* [ESTIMATORS, B] */
  double *ess, *weight; /* [ESTIMATORS, B]: effective sample size; mean weight, NaN: there is none */
} Block;

static Terms *study_replay_terms(const Block *block, int estimator, int b) {
  return &block->terms[estimator * block->task->runs + b];
}

static bool study_asks_for_estimator(const Block *block, int estimator) {
  return study_measures(block->study, study_replay.curves[estimator].name);
}

static Status study_replay_block_create(Arena *memory, Block *block) {
  const Task *task = block->task;
  const Config *setting = block->study->file->settings[task->setting];
  TRY(problem_create(setting, &block->problem));
  TRY(world_create(&block->problem, task->replicate, task->first_run, task->runs, &block->world));
  block->log = problem_logged_events(&block->problem);
  block->trained = (int)(config_real(setting, "train_fraction") * block->log->rows);
  const size_t runs = (size_t)task->runs, d = (size_t)block->problem.d, arms = (size_t)block->problem.arms;
  ALLOCATE_ARRAYS(memory, runs, block->arm, block->reward);
  ALLOCATE(memory, block->phi, d * runs);
  ALLOCATE(memory, block->probability, runs * arms);
  ALLOCATE(memory, block->theta, runs * arms * d);
  ALLOCATE(memory, block->events, block->log->rows);
  ALLOCATE(memory, block->square, d * d);
  ALLOCATE_ARRAYS(memory, ESTIMATORS * runs, block->terms, block->ess, block->weight);
  for (int i = 0; i < ESTIMATORS; i++)
    for (size_t b = 0; b < runs && study_asks_for_estimator(block, i); b++) {
      Terms *terms = study_replay_terms(block, i, (int)b);
      ALLOCATE_ARRAYS(memory, block->log->rows, terms->numerator, terms->denominator);
    }
  return STATUS_OK;
}

/* Creates the policy from scratch, before it has learned anything, in place of the one before it. */
static Status study_replay_begin(Arena *memory, bool weighs, Block *block) {
  const ConfigPolicy *chosen = &block->study->file->policies[block->task->policy];
  const PolicyMethod method = policy_named(chosen->name);
  policy_destroy(&block->policy);
  block->policy = (Policy){0};
  block->likelihood = policy_likelihood(&method, chosen->options, &block->problem);
  PolicySetup setup =
      study_policy_setup(block->study, block->task, &block->problem, block->prior, block->tick);
  setup.likelihood = &block->likelihood, setup.weighs = weighs;
  return policy_begin(memory, &method, &setup, &block->history, &block->policy);
}

/* Returns the current event of run b. */
static int study_replay_event_of_run(const Block *block, int b) {
  return problem_logged_event(&block->problem, block->task->first_run + (uint32_t)b, block->world.round);
}

static Status study_replay_tick(const Block *block, int k) {
  if (core_tick_goes_on(block->tick, (double)k / block->log->rows)) return STATUS_OK;
  return status_set(STATUS_STOPPED, "stopped at event %d of %d", k, block->log->rows);
}

/* Learns from the current events, number k of each run, except in runs whose arm[B] is negative; stops if the
 * tick says so. */
static Status study_replay_learn(Block *block, int k, int64_t *fallbacks) {
  const int runs = block->task->runs, d = block->problem.d;
  for (int b = 0; b < runs; b++) {
    const int event = study_replay_event_of_run(block, b);
    const double *x = logged_features(block->log, event, block->log->arm[event]);
    const bool met = block->arm[b] >= 0;
    block->reward[b] = met ? block->log->reward[event] : 0;
    for (int i = 0; i < d; i++) block->phi[i * runs + b] = met ? x[i] : 0;
  }
  history_record(&block->history, block->arm, block->phi, block->reward);
  policy_observe(&block->policy, &block->history, fallbacks);
  return study_replay_tick(block, k);
}

/* Shows the policy the first events, and fits the regression of rewards to them. */
static Status study_replay_train(Block *block, int64_t *fallbacks) {
  const int runs = block->task->runs;
  for (int k = 1; k <= block->trained; k++) {
    world_advance(&block->world, (uint32_t)k);
    for (int b = 0; b < runs; b++) block->arm[b] = block->log->arm[study_replay_event_of_run(block, b)];
    TRY(study_replay_learn(block, k, fallbacks));
  }
  for (int b = 0; b < runs && study_asks_for_estimator(block, DR); b++) {
    for (int k = 0; k < block->trained; k++)
      block->events[k] =
          problem_logged_event(&block->problem, block->task->first_run + (uint32_t)b, (uint32_t)k + 1);
    problem_logged_ridge(block->log, block->trained, block->events, block->square,
                         block->theta + (size_t)b * (size_t)block->problem.arms * (size_t)block->problem.d);
  }
  return STATUS_OK;
}

/* Stores the terms of an event for an estimator, if that is asked for. */
static void study_replay_put_terms(const Block *block, int estimator, int b, int event, double numerator,
                                   double denominator) {
  const Terms *terms = study_replay_terms(block, estimator, b);
  if (!terms->numerator) return;
  terms->numerator[event] = numerator, terms->denominator[event] = denominator;
}

/* Computes the terms of the frozen policy from the events that it did not learn on. */
static Status study_value_frozen_policy(Arena *memory, Block *block, int64_t *fallbacks) {
  const EventLog *log = block->log;
  const int runs = block->task->runs, arms = block->problem.arms;
  double *total, *squares; /* [B]: the sums of w and w^2 */
  ALLOCATE_ARRAYS(memory, runs, total, squares);
  TRY(study_replay_begin(memory, true, block));
  TRY(study_replay_train(block, fallbacks));
  for (int k = block->trained + 1; k <= log->rows; k++) {
    world_advance(&block->world, (uint32_t)k);
    TRY(policy_weigh(&block->policy, &block->world, &block->history, block->probability, block->arm,
                     fallbacks));
    for (int b = 0; b < runs; b++) {
      const int event = study_replay_event_of_run(block, b), a = log->arm[event];
      const double *pi = block->probability + b * arms,
                   *theta = block->theta + (size_t)b * (size_t)log->arms * (size_t)log->d;
      const double r = log->reward[event], w = pi[a] / log->propensity[event];
      study_replay_put_terms(block, IPS, b, event, w * r, 1);
      study_replay_put_terms(block, SNIPS, b, event, w * r, w);
      if (study_asks_for_estimator(block, DR)) {
        double predicted = 0; /* sum_k pi(k | x) q_k(x) */
        for (int i = 0; i < arms; i++)
          if (pi[i] > 0) predicted += pi[i] * problem_logged_predict(log, theta, event, i);
        study_replay_put_terms(block, DR, b, event,
                               predicted + w * (r - problem_logged_predict(log, theta, event, a)), 1);
      }
      total[b] += w, squares[b] += w * w;
    }
    TRY(study_replay_tick(block, k));
  }
  for (int b = 0; b < runs; b++) /* (sum of w)^2 / sum of w^2 */
    for (int i = IPS; i <= DR; i++) {
      block->ess[i * runs + b] = squares[b] > 0 ? total[b] * total[b] / squares[b] : 0;
      block->weight[i * runs + b] = total[b] / (log->rows - block->trained);
    }
  return STATUS_OK;
}

/* Computes the terms of the policy as it learns, from the events whose arm it chooses too. */
static Status study_value_learning_policy(Arena *memory, Block *block, int64_t *fallbacks) {
  const int runs = block->task->runs, rows = block->log->rows;
  TRY(study_replay_begin(memory, false, block));
  for (int b = 0; b < runs; b++) block->weight[REPLAY * runs + b] = NAN;
  for (int k = 1; k <= rows; k++) {
    world_advance(&block->world, (uint32_t)k);
    TRY(policy_choose(&block->policy, &block->world, &block->history, block->arm, fallbacks));
    for (int b = 0; b < runs; b++) {
      const int event = study_replay_event_of_run(block, b);
      const bool same = block->arm[b] == block->log->arm[event];
      study_replay_put_terms(block, REPLAY, b, event, same * block->log->reward[event], same);
      block->ess[REPLAY * runs + b] += same;
      if (!same) block->arm[b] = -1;
    }
    TRY(study_replay_learn(block, k, fallbacks));
  }
  return STATUS_OK;
}

/* Computes the curves of all runs, first from all events and then from bootstrap samples: count[n] says how
 * often a sample has each event. */
static Status study_replay_summarise_runs(Arena *memory, const Block *block, TaskResult *result) {
  const int n = block->log->rows, runs = block->task->runs;
  double *count;
  ALLOCATE(memory, count, n);
  for (int s = -1; s < ESTIMATES_RESAMPLES; s++) {
    Rng rng = {.key = rng_subkey(rng_key(block->study->seed, RNG_EVENTS), RNG_PICK), .run = (uint32_t)s};
    for (int e = 0; e < n; e++) count[e] = s < 0;
    for (int e = 0; e < n && s >= 0; e++) count[rng_index(&rng, (uint64_t)n)]++;
    for (int i = 0, c = 0; i < ESTIMATORS; i++) {
      if (!study_asks_for_estimator(block, i)) continue;
      for (int b = 0; b < runs; b++) {
        const Terms *terms = study_replay_terms(block, i, b);
        double numerator = 0, denominator = 0, *curve = study_result_values(result, c, b);
        for (int e = 0; e < n; e++)
          numerator += count[e] * terms->numerator[e], denominator += count[e] * terms->denominator[e];
        curve[ESTIMATES_SIZE] = block->ess[i * runs + b];
        curve[ESTIMATES_WEIGHT] = block->weight[i * runs + b];
        curve[s < 0 ? ESTIMATES_VALUE : ESTIMATES_FIRST + s] =
            denominator > 0 ? numerator / denominator : NAN; /* NaN: no event contributes */
      }
      c++;
    }
  }
  return STATUS_OK;
}

static void study_replay_block_destroy(Block *block) {
  policy_destroy(&block->policy);
  world_destroy(&block->world);
  problem_destroy(&block->problem);
}

static Status study_replay_run(const Study *study, const Task *task, const Prior *prior, Tick tick,
                               TaskResult *result) {
  SCRATCH_ARENA(memory);
  SCOPED(Block, block, study_replay_block_destroy);
  block.study = study, block.task = task, block.prior = prior, block.tick = tick;
  TRY(study_replay_block_create(&memory, &block));
  const double start = clock_cpu();
  if (study_asks_for_estimator(&block, IPS) || study_asks_for_estimator(&block, SNIPS) ||
      study_asks_for_estimator(&block, DR))
    TRY(study_value_frozen_policy(&memory, &block, result->fallbacks));
  if (study_asks_for_estimator(&block, REPLAY))
    TRY(study_value_learning_policy(&memory, &block, result->fallbacks));
  for (int b = 0; b < result->runs; b++) result->seconds[b] = (clock_cpu() - start) / result->runs;
  return study_replay_summarise_runs(&memory, &block, result);
}

static Status study_replay_check_setting(const Study *study, const Config *setting, const Problem *problem) {
  if (!config_is(setting, "problem.family", "logged"))
    return status_set(STATUS_INPUT, "study replay needs problem.family: logged; this is %s",
                      problem->ops->name);
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    const PolicyMethod method = policy_named(policy->name);
    if (strcmp(method.name, "oracle") == 0)
      return status_set(STATUS_INPUT, "policy oracle knows theta*, which a log does not have");
    if (study_measures(study, "ips") || study_measures(study, "snips") || study_measures(study, "dr"))
      TRY(policy_check_weigh(&method, policy->options));
  }
  const double trained = config_real(setting, "train_fraction") * problem->rounds;
  if (trained < problem->rounds) return STATUS_OK;
  return status_set(STATUS_INPUT, "train_fraction: all %d events would be used for training",
                    problem->rounds);
}

static int study_replay_points(const Config *setting) {
  (void)setting;
  return ESTIMATES_POINTS;
}

static double study_replay_cost(const Study *study, const Task *task) {
  const Config *setting = study->file->settings[task->setting];
  const PolicyMethod method = policy_named(study->file->policies[task->policy].name);
  PolicyWork work = study_work(study, task);
  const double events = work.sampler.rounds, trained = config_real(setting, "train_fraction") * events;
  work.sampler.rows = events / 2;
  double sum = ESTIMATES_RESAMPLES * events * (2 * study->curve_count + 60.0 / task->runs);
  if (study_measures(study, "replay")) sum += events * policy_cost(&method, &work);
  work.sampler.rows = trained;
  if (study->curve_count > study_measures(study, "replay")) /* any of the other estimators */
    sum += (events - trained) * policy_weigh_cost(&method, &work);
  return task->runs * sum;
}

static const StudyCurve curves[] = {
    [IPS] = {.name = "ips", .long_name = "inverse propensity scoring", .metric = "ips", .unpublished = true},
    [SNIPS] = {.name = "snips",
               .long_name = "self-normalised inverse propensity scoring",
               .metric = "snips",
               .unpublished = true},
    [DR] = {.name = "dr", .long_name = "doubly robust", .metric = "dr", .unpublished = true},
    [REPLAY] = {.name = "replay",
                .long_name = "events whose arm the policy also takes",
                .metric = "replay",
                .unpublished = true},
    [ESTIMATORS] = {.name = NULL}};

const StudyOps study_replay = {.name = "replay",
                               .summary = "value of a policy from a log of events, with an interval",
                               .reference = "Li et al. 2011; Dudik, Langford and Li 2011",
                               .figure = "figure_replay.py",
                               .axis = "estimator",
                               .axis_long_name = "estimator of the value",
                               .estimates = true,
                               .curves = curves,
                               .points = study_replay_points,
                               .check_setting = study_replay_check_setting,
                               .cost = study_replay_cost,
                               .run = study_replay_run};
