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
#include "problem/problem_logged.h"
#include "study/estimates.h"
#include "study/simulation.h"
#include "study/studies.h"

enum { IPS, SNIPS, DR, REPLAY, ESTIMATORS };

/* What is known of an event, 0 if it is not used; an estimator is the ratio of the sums of two of these. */
enum {
  USED, /* 1: the policy is frozen */
  W,
  W_R, /* w r */
  PREDICTED, /* the term of dr */
  SAME, /* 1: the learning policy chooses the same arm */
  SAME_R, /* r of these events */
  TERMS
};

static const struct {
  int numerator, denominator;
} ratios[ESTIMATORS] = {
    [IPS] = {W_R, USED}, [SNIPS] = {W_R, W}, [DR] = {PREDICTED, USED}, [REPLAY] = {SAME_R, SAME}};

/* One block of B runs in lockstep. */
typedef struct {
  const TaskRun *run;
  Simulation *simulation; /* of the policy that is being valued */
  double *curve[ESTIMATORS]; /* [B, points] each; NULL: not asked for */
  const EventLog *log;
  int trained; /* events that a policy learns on before it is frozen */
  double *theta; /* [B, models, d], the ridge regression of rewards */
  int *events; /* [n], and square[d, d]: scratch of the regression */
  double *square;
  double *terms; /* [B, TERMS, n] */
  double *ess, *weight; /* [ESTIMATORS, B]: effective sample size; mean weight, NaN: there is none */
  double seconds; /* CPU seconds of the policies so far */
} Block;

/* Returns a term of each event in run b. */
static double *study_replay_term(const Block *block, int b, int term) {
  return block->terms + ((size_t)b * TERMS + (size_t)term) * (size_t)block->log->rows;
}

static Status study_replay_block_create(Arena *memory, Block *block) {
  const Problem *problem = block->run->problem;
  const EventLog *log = problem_logged_events(problem);
  const size_t runs = (size_t)block->run->task->runs, d = (size_t)problem->d, arms = (size_t)problem->arms;
  for (int c = 0; c < block->run->study->curve_count; c++)
    block->curve[block->run->study->curves[c] - study_replay.curves] =
        study_result_values(block->run->result, c, 0);
  block->log = log;
  block->trained = (int)(config_real(block->run->setting, "train_fraction") * log->rows);
  ALLOCATE(memory, block->theta, runs * arms * d);
  ALLOCATE(memory, block->events, log->rows);
  ALLOCATE(memory, block->square, d * d);
  ALLOCATE(memory, block->terms, runs * TERMS * (size_t)log->rows);
  ALLOCATE_ARRAYS(memory, ESTIMATORS * runs, block->ess, block->weight);
  return STATUS_OK;
}

/* Creates the policy before it has learned anything, in place of the one before it. */
static Status study_replay_begin(Arena *memory, bool weighs, Block *block) {
  Simulation *simulation = block->simulation;
  simulation_destroy(simulation);
  *simulation = (Simulation){0};
  TRY(simulation_create(memory, block->run, weighs, simulation));
  timer_start(&simulation->timer);
  return STATUS_OK;
}

static void study_replay_end(Block *block) {
  timer_stop(&block->simulation->timer);
  block->seconds += simulation_seconds(block->simulation);
}

/* Returns the current event of run b. */
static int study_replay_event_of_run(const Block *block, int b) {
  const World *world = &block->simulation->world;
  return problem_logged_event(block->run->problem, world->first_run + (uint32_t)b, world->round);
}

static Status study_replay_tick(const Block *block, int k) {
  if (core_tick_goes_on(block->run->tick, (double)k / block->log->rows)) return STATUS_OK;
  return status_set(STATUS_STOPPED, "stopped at event %d of %d", k, block->log->rows);
}

/* Learns from the current events, number k of each run, except in runs whose arm[B] is negative; stops if the
 * tick says so. */
static Status study_replay_learn(Block *block, int k) {
  Simulation *simulation = block->simulation;
  const int runs = simulation->world.runs, d = block->log->d;
  for (int b = 0; b < runs; b++) {
    const int event = study_replay_event_of_run(block, b);
    const double *x = logged_features(block->log, event, block->log->arm[event]);
    const bool met = simulation->arm[b] >= 0;
    simulation->reward[b] = met ? block->log->reward[event] : 0;
    for (int i = 0; i < d; i++) simulation->phi[i * runs + b] = met ? x[i] : 0;
  }
  simulation_learn(simulation, simulation->arm, simulation->phi, simulation->reward);
  return study_replay_tick(block, k);
}

/* Shows the policy the first events, and fits the regression of rewards to them. */
static Status study_replay_train(Block *block) {
  const EventLog *log = block->log;
  World *world = &block->simulation->world;
  for (int k = 1; k <= block->trained; k++) {
    simulation_advance(block->simulation, k);
    for (int b = 0; b < world->runs; b++)
      block->simulation->arm[b] = log->arm[study_replay_event_of_run(block, b)];
    TRY(study_replay_learn(block, k));
  }
  for (int b = 0; b < world->runs && block->curve[DR]; b++) {
    for (int k = 0; k < block->trained; k++)
      block->events[k] =
          problem_logged_event(block->run->problem, world->first_run + (uint32_t)b, (uint32_t)k + 1);
    problem_logged_ridge(log, block->trained, block->events, block->square,
                         block->theta + (size_t)b * (size_t)log->arms * (size_t)log->d);
  }
  return STATUS_OK;
}

/* Computes the terms of the frozen policy from the events that it did not learn on. */
static Status study_value_frozen_policy(Arena *memory, Block *block) {
  const EventLog *log = block->log;
  Simulation *simulation = block->simulation;
  const int runs = block->run->task->runs, arms = log->arms;
  double *total, *squares; /* [B]: the sums of w and w^2 */
  ALLOCATE_ARRAYS(memory, runs, total, squares);
  TRY(study_replay_begin(memory, true, block));
  TRY(study_replay_train(block));
  for (int k = block->trained + 1; k <= log->rows; k++) {
    simulation_advance(simulation, k);
    TRY(simulation_choose(simulation));
    for (int b = 0; b < runs; b++) {
      const int event = study_replay_event_of_run(block, b), a = log->arm[event];
      const double *pi = simulation->probability + b * arms,
                   *theta = block->theta + (size_t)b * (size_t)arms * (size_t)log->d;
      const double r = log->reward[event], w = pi[a] / log->propensity[event];
      study_replay_term(block, b, USED)[event] = 1;
      study_replay_term(block, b, W)[event] = w;
      study_replay_term(block, b, W_R)[event] = w * r;
      if (block->curve[DR]) {
        double predicted = 0; /* sum_k pi(k | x) q_k(x) */
        for (int i = 0; i < arms; i++)
          if (pi[i] > 0) predicted += pi[i] * problem_logged_predict(log, theta, event, i);
        study_replay_term(block, b, PREDICTED)[event] =
            predicted + w * (r - problem_logged_predict(log, theta, event, a));
      }
      total[b] += w;
      squares[b] += w * w;
    }
    TRY(study_replay_tick(block, k));
  }
  study_replay_end(block);
  for (int b = 0; b < runs; b++) /* (sum of w)^2 / sum of w^2 */
    for (int i = IPS; i <= DR; i++) {
      block->ess[i * runs + b] = squares[b] > 0 ? total[b] * total[b] / squares[b] : 0;
      block->weight[i * runs + b] = total[b] / (log->rows - block->trained);
    }
  return STATUS_OK;
}

/* Computes the terms of the policy as it learns, from the events whose arm it chooses too. */
static Status study_value_learning_policy(Arena *memory, Block *block) {
  const int runs = block->run->task->runs, rows = block->log->rows;
  Simulation *simulation = block->simulation;
  TRY(study_replay_begin(memory, false, block));
  for (int b = 0; b < runs; b++) block->weight[REPLAY * runs + b] = NAN;
  for (int k = 1; k <= rows; k++) {
    simulation_advance(simulation, k);
    TRY(simulation_choose(simulation));
    for (int b = 0; b < runs; b++) {
      const int event = study_replay_event_of_run(block, b);
      const bool same = simulation->arm[b] == block->log->arm[event];
      study_replay_term(block, b, SAME)[event] = same;
      study_replay_term(block, b, SAME_R)[event] = same * block->log->reward[event];
      block->ess[REPLAY * runs + b] += same;
      if (!same) simulation->arm[b] = -1;
    }
    TRY(study_replay_learn(block, k));
  }
  study_replay_end(block);
  return STATUS_OK;
}

/* Computes the curves of all runs, first from all events and then from bootstrap samples: count[n] says how
 * often a sample has each event. */
static Status study_replay_summarise_runs(Arena *memory, const Block *block) {
  const TaskResult *result = block->run->result;
  const int n = block->log->rows, runs = result->runs;
  double *count;
  ALLOCATE(memory, count, n);
  for (int s = -1; s < ESTIMATES_RESAMPLES; s++) {
    Rng rng = {.key = rng_subkey(rng_key(block->run->study->seed, RNG_EVENTS), RNG_PICK), .run = (uint32_t)s};
    for (int e = 0; e < n; e++) count[e] = s < 0;
    for (int e = 0; e < n && s >= 0; e++) count[rng_index(&rng, (uint64_t)n)]++;
    for (int i = 0; i < ESTIMATORS; i++)
      for (int b = 0; b < runs && block->curve[i]; b++) {
        const double *above = study_replay_term(block, b, ratios[i].numerator),
                     *below = study_replay_term(block, b, ratios[i].denominator);
        double numerator = 0, denominator = 0, *curve = block->curve[i] + b * result->points;
        for (int e = 0; e < n; e++) numerator += count[e] * above[e], denominator += count[e] * below[e];
        curve[ESTIMATES_SIZE] = block->ess[i * runs + b];
        curve[ESTIMATES_WEIGHT] = block->weight[i * runs + b];
        curve[s < 0 ? ESTIMATES_VALUE : ESTIMATES_FIRST + s] =
            denominator > 0 ? numerator / denominator : NAN; /* NaN: no event contributes */
      }
  }
  return STATUS_OK;
}

static Status study_replay_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  Block block = {.run = run, .simulation = &simulation};
  TRY(study_replay_block_create(&memory, &block));
  if (block.curve[IPS] || block.curve[SNIPS] || block.curve[DR])
    TRY(study_value_frozen_policy(&memory, &block));
  if (block.curve[REPLAY]) TRY(study_value_learning_policy(&memory, &block));
  study_result_set_seconds(block.seconds, run->result);
  return study_replay_summarise_runs(&memory, &block);
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
  PolicyWork work = study_work(study, task);
  const double events = work.sampler.rounds, trained = config_real(setting, "train_fraction") * events;
  work.sampler.rows = events / 2;
  double sum = ESTIMATES_RESAMPLES * events * (2 * study->curve_count + 60.0 / task->runs);
  if (study_measures(study, "replay")) sum += events * policy_cost(&work);
  work.sampler.rows = trained;
  if (study->curve_count > study_measures(study, "replay")) /* any of the other estimators */
    sum += (events - trained) * policy_weigh_cost(&work);
  return task->runs * sum;
}

#define ESTIMATOR(word, text)                                                                                \
  { .name = word, .long_name = text, .metric = word, .unpublished = true }
static const StudyCurve curves[] = {[IPS] = ESTIMATOR("ips", "inverse propensity scoring"),
                                    [SNIPS] =
                                        ESTIMATOR("snips", "self-normalised inverse propensity scoring"),
                                    [DR] = ESTIMATOR("dr", "doubly robust"),
                                    [REPLAY] = ESTIMATOR("replay", "events whose arm the policy also takes"),
                                    [ESTIMATORS] = {.name = NULL}};
#undef ESTIMATOR

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
