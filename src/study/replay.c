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
 * their mean reward. This is unbiased if the log took each arm with the same probability, so from any other
 * log such an event is used with probability min p / p only (Dudik, Erhan, Langford and Li 2012, the
 * non-stationary case): then each choice of the policy is met with the same probability, the smallest p of
 * the log. Streams: (REJECTION, run, event number).
 *
 * All four are ratios of two sums over events, so resampled events (Efron 1979) are weights in both. A curve
 * has the estimates from ESTIMATES_RESAMPLES bootstrap samples, which are the same in every run. Streams of
 * these samples: (EVENTS, PICK), run = the sample. Resampling cannot show a reward that no event has, so
 * there is a second interval, for estimates that rest on few events of a kind: Wilson's (1927) for the
 * effective sample size, with rewards scaled to [0, 1], and with their variance instead of that of a 0/1
 * reward.
 *
 * replay_audit.h judges whether the propensities can be right, and has Wilson's interval. */
#include "problem/problem_logged.h"
#include "sampler/mixture/mixture_posterior.h"
#include "study/estimates.h"
#include "study/replay_audit.h"
#include "study/simulation.h"
#include "study/studies.h"

#include <math.h>

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

/* The policies whose weights are known. */
enum { FROZEN, LEARNING, KINDS };

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
  ReplayWeights *weights[KINDS]; /* [B] each */
  double least; /* the smallest propensity */
  ReplayAudit audit;
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
  ALLOCATE_ARRAYS(memory, runs, &block->weights[FROZEN], &block->weights[LEARNING]);
  block->least = 1;
  for (int e = 0; e < log->rows; e++) block->least = fmin(block->least, log->propensity[e]);
  return replay_audit_log(log, config_is(block->run->setting, "problem.arms", "auto"), &block->audit);
}

/* Creates the policy before it has learned anything, in place of the one before it. */
static Status study_replay_begin(Arena *memory, RuleUse use, Block *block) {
  Simulation *simulation = block->simulation;
  simulation_destroy(simulation);
  *simulation = (Simulation){0};
  TRY(simulation_create(memory, block->run, use, simulation));
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
  if (!block->curve[DR]) return STATUS_OK;
  for (int b = 0; b < world->runs; b++) {
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
  TRY(study_replay_begin(memory, RULE_SETTLES, block));
  TRY(study_replay_train(block));
  simulation_settle(simulation);
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
      replay_audit_add_weight(&block->weights[FROZEN][b], w);
    }
    TRY(study_replay_tick(block, k));
  }
  study_replay_end(block);
  for (int b = 0; b < runs; b++) { /* (sum of w)^2 / sum of w^2 */
    ReplayWeights *of = &block->weights[FROZEN][b];
    of->size = of->squares > 0 ? of->total * of->total / of->squares : 0;
  }
  return STATUS_OK;
}

/* Returns whether run b uses an event whose arm the policy has chosen too: all such events have the same
 * probability to be met and used. */
static bool study_replay_accepts(const Block *block, int b, int event) {
  const World *world = &block->simulation->world;
  const double share = block->least / block->log->propensity[event];
  Rng rng = {.key = rng_key(block->run->study->seed, RNG_REJECTION),
             .run = world->first_run + (uint32_t)b,
             .round = world->round};
  double u;
  if (share >= 1) return true;
  rng_uniform(&rng, 1, &u);
  return u < share;
}

/* Computes the terms of the policy as it learns, from the events whose arm it chooses too. */
static Status study_value_learning_policy(Arena *memory, Block *block) {
  const int runs = block->run->task->runs, rows = block->log->rows;
  Simulation *simulation = block->simulation;
  TRY(study_replay_begin(memory, RULE_CHOOSES, block));
  for (int k = 1; k <= rows; k++) {
    simulation_advance(simulation, k);
    TRY(simulation_choose(simulation));
    for (int b = 0; b < runs; b++) {
      ReplayWeights *of = &block->weights[LEARNING][b];
      const int event = study_replay_event_of_run(block, b);
      const bool same = simulation->arm[b] == block->log->arm[event],
                 used = same && study_replay_accepts(block, b, event);
      study_replay_term(block, b, SAME)[event] = used;
      study_replay_term(block, b, SAME_R)[event] = used * block->log->reward[event];
      replay_audit_add_weight(of, same / block->log->propensity[event]);
      of->size += used;
      if (!used) simulation->arm[b] = -1;
    }
    TRY(study_replay_learn(block, k));
  }
  study_replay_end(block);
  return STATUS_OK;
}

/* Sets the points of a curve that all bootstrap samples share, its value being known. */
static void study_replay_set_points(const Block *block, const ReplayWeights *of, double *curve) {
  const ReplayAudit *audit = &block->audit;
  curve[ESTIMATES_RARE] = replay_audit_interval(audit, curve[ESTIMATES_VALUE], of->size,
                                                &curve[ESTIMATES_LOW], &curve[ESTIMATES_HIGH]);
  curve[ESTIMATES_LOGGED] = audit->rewards.mean;
  curve[ESTIMATES_LOGGED_SE] = moments_se(audit->rewards);
  replay_audit_interval(audit, audit->rewards.mean, (double)audit->rewards.n, &curve[ESTIMATES_LOGGED_LOW],
                        &curve[ESTIMATES_LOGGED_HIGH]);
  curve[ESTIMATES_SIZE] = of->size;
  curve[ESTIMATES_WEIGHT] = of->total / of->events;
  replay_audit_range(of, &curve[ESTIMATES_WEIGHT_SE], &curve[ESTIMATES_WEIGHT_LOW],
                     &curve[ESTIMATES_WEIGHT_HIGH]);
  curve[ESTIMATES_ARM] = audit->arm;
  curve[ESTIMATES_ARM_WEIGHT] = audit->arm_weight;
  curve[ESTIMATES_ARM_0_ABSENT] = audit->arm_0_absent;
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
    if (s >= 0)
      for (int e = 0; e < n; e++) count[rng_index(&rng, (uint64_t)n)]++;
    for (int i = 0; i < ESTIMATORS; i++) {
      if (!block->curve[i]) continue;
      for (int b = 0; b < runs; b++) {
        const double *above = study_replay_term(block, b, ratios[i].numerator),
                     *below = study_replay_term(block, b, ratios[i].denominator);
        double numerator = 0, denominator = 0, *curve = block->curve[i] + b * result->points;
        for (int e = 0; e < n; e++) {
          numerator += count[e] * above[e];
          denominator += count[e] * below[e];
        }
        curve[s < 0 ? ESTIMATES_VALUE : ESTIMATES_FIRST + s] =
            denominator > 0 ? numerator / denominator : NAN; /* NaN: no event contributes */
        if (s < 0) study_replay_set_points(block, &block->weights[i == REPLAY ? LEARNING : FROZEN][b], curve);
      }
    }
  }
  return STATUS_OK;
}

/* Returns whether estimators are asked for that value a frozen policy. */
static bool study_replay_freezes(const Study *study) {
  return study_measures(study, "ips") || study_measures(study, "snips") || study_measures(study, "dr");
}

static Status study_replay_run(const TaskRun *run) {
  SCRATCH_ARENA(memory);
  SCOPED(Simulation, simulation, simulation_destroy);
  Block block = {.run = run, .simulation = &simulation};
  TRY(study_replay_block_create(&memory, &block));
  if (study_replay_freezes(run->study)) TRY(study_value_frozen_policy(&memory, &block));
  if (block.curve[REPLAY]) TRY(study_value_learning_policy(&memory, &block));
  study_result_set_seconds(block.seconds, run->result);
  return study_replay_summarise_runs(&memory, &block);
}

static double study_replay_runs(const Study *study) {
  return fmin((double)study->runs.block, (double)study->runs.most);
}

/* Returns the number of posteriors in a block: one for each run, or for each arm of each run. */
static double study_replay_posteriors(const Study *study, const Problem *problem) {
  return study_replay_runs(study) * (problem->per_arm ? problem->arms : 1);
}

/* Returns the bytes of the draws and moments that a policy with these options holds. */
static double study_replay_rule_bytes(const Study *study, const Problem *problem, const Config *options) {
  return rule_bytes(options, problem->d, study_replay_posteriors(study, problem),
                    study_replay_freezes(study) ? RULE_SETTLES : RULE_CHOOSES);
}

static double study_replay_bytes(const Study *study, const Config *setting, const Problem *problem) {
  const EventLog *log = problem_logged_events(problem);
  const double runs = study_replay_runs(study), rows = log->rows, d = problem->d,
               evidence = study_replay_posteriors(study, problem) * d * d;
  const double numbers =
      rows * d * problem_vectors(problem) + runs * rows * (TERMS + d) + runs * problem->arms * d + evidence;
  const double flags = log->available ? rows * log->arms : 0; /* bytes */
  double rule = 0;
  (void)setting;
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    if (policy_named(policy->name).sampler)
      rule = fmax(rule, study_replay_rule_bytes(study, problem, policy->options));
  }
  return sizeof(double) * numbers + flags + rule;
}

/* Refuses a policy whose draws would take too much memory. */
static Status study_replay_check_memory(const Study *study, const Problem *problem, const Config *options) {
  static const double MOST_BYTES = 16e9;
  const double bytes = study_replay_rule_bytes(study, problem, options);
  if (bytes <= MOST_BYTES) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "once it is frozen a policy keeps %lld draws of %d numbers from each of %.0f posteriors, %.0f "
      "GB; allowed: %.0f GB. Reduce block, or the option propensity_draws",
      (long long)config_int(options, "propensity_draws"), problem->d, study_replay_posteriors(study, problem),
      bytes * 1e-9, MOST_BYTES * 1e-9);
}

/* Checks that the log has what the estimators need of the policy `target`. */
static Status study_replay_check_target(const Study *study, const Config *setting, const Problem *problem) {
  if (!problem_logged_has_target(problem) || !study_measures(study, "dr")) return STATUS_OK;
  if (problem_logged_events(problem)->target_columns > 1) return STATUS_OK;
  return status_set(
      STATUS_INPUT,
      "policy target: estimator dr needs its probabilities of all arms, which NetCDF logs have as "
      "target(event, arm); %s has only that of the arm played: set estimators: [ips, snips]",
      config_text(setting, "problem.file"));
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
    if (strcmp(method.name, "target") == 0) TRY(study_replay_check_target(study, setting, problem));
    if (study_replay_freezes(study)) TRY(policy_check_weigh(&method, policy->options));
    if (method.sampler) TRY(study_replay_check_memory(study, problem, policy->options));
  }
  const double trained = config_real(setting, "train_fraction") * problem->rounds;
  if (trained < problem->rounds) return STATUS_OK;
  return status_set(STATUS_INPUT, "train_fraction: all %d events would be used for training",
                    problem->rounds);
}

/* Advises about policies that do at each event what can be done more rarely. */
static void study_replay_advise(const Study *study, void (*note)(const char *sentence)) {
  const Config *setting = study->file->settings[0];
  const LikelihoodOps *likelihood = likelihood_find(config_text(setting, "likelihood"));
  char sentence[512];
  for (int p = 0; p < study->file->policy_count; p++) {
    const ConfigPolicy *policy = &study->file->policies[p];
    const SamplerOps *sampler = policy_named(policy->name).sampler;
    if (!sampler || !study_measures(study, "replay") || likelihood->quadratic) continue;
    if (mixture_posterior_options(policy->options).forgets) continue;
    snprintf(
        sentence, sizeof sentence,
        "policy %s: estimator replay fits its posterior again after each event that it uses, which takes "
        "long with rewards that are not Gaussian%s",
        policy->label,
        config_has(policy->options, "memory") ? "; its option memory: filtered absorbs each reward once"
                                              : "");
    note(sentence);
  }
}

static int study_replay_points(const Config *setting) {
  (void)setting;
  return ESTIMATES_POINTS;
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
                               .keys = "estimators train_fraction",
                               .axis = "estimator",
                               .axis_long_name = "estimator of the value",
                               .estimates = true,
                               .rewards_of = REWARDS_OF_LOG,
                               .curves = curves,
                               .points = study_replay_points,
                               .points_key = "estimators",
                               .check_setting = study_replay_check_setting,
                               .bytes = study_replay_bytes,
                               .advise = study_replay_advise,
                               .run = study_replay_run};
