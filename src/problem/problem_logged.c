/* Bandits whose events are given.
 *
 * `logged`: a log of events, each with the arm that was taken, its reward, and the probability with which it
 * was chosen. There is no theta*, and the rewards of the other arms are unknown; the replay study estimates
 * the value of policies all the same.
 *
 * `table`: events with the reward of every arm, such as a data set of classes or of answers that were all
 * judged. A context is the same for all arms, and each arm has its own posterior.
 *
 * Every run meets the events in its own random order, none twice. */
#include "problem/problem_logged.h"

#include "core/linalg/linalg.h"
#include "problem/problems.h"

#include <math.h>
#include <string.h>

/* Returns the reward of an arm in an event; 0 if it was not taken. */
static double logged_reward(const EventLog *log, int event, int arm) {
  if (log->rewards) return log->rewards[(size_t)event * (size_t)log->arms + (size_t)arm];
  return arm == log->arm[event] ? log->reward[event] : 0;
}

const EventLog *problem_logged_events(const Problem *problem) { return problem->state; }

bool problem_logged_has_target(const Problem *problem) {
  return problem->ops == &problem_logged && problem_logged_events(problem)->target != NULL;
}

int problem_logged_event(const Problem *problem, uint32_t run, uint32_t round) {
  return rng_permuted(problem_logged_events(problem)->rows, rng_key(problem->seed, RNG_EVENTS), run,
                      (int)round - 1);
}

void problem_logged_ridge(const EventLog *log, int count, const int *events, double *square, double *theta) {
  const size_t d = (size_t)log->d;
  const int models = log->has_features ? 1 : log->arms;
  for (int m = 0; m < models; m++, theta += d) {
    const bool own_events = m == 0 || !log->rewards; /* all arms of a table have the same events */
    memset(theta, 0, d * sizeof *theta);
    if (own_events) {
      memset(square, 0, d * d * sizeof *square);
      for (size_t i = 0; i < d; i++) square[i * d + i] = 1;
    }
    for (int n = 0; n < count; n++) {
      const int event = events[n], arm = log->rewards ? m : log->arm[event];
      if (!log->has_features && arm != m) continue;
      const double *x = logged_features(log, event, arm), y = logged_reward(log, event, arm);
      for (size_t i = 0; i < d; i++) theta[i] += x[i] * y;
      if (!own_events) continue;
      for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) square[i * d + j] += x[i] * x[j];
    }
    if (own_events) linalg_factor_cholesky(log->d, 1, square, NULL);
    linalg_factor_solve(log->d, 1, square, theta);
  }
}

double problem_logged_predict(const EventLog *log, const double *theta, int event, int arm) {
  const double *x = logged_features(log, event, arm);
  double sum = 0;
  if (!log->has_features) theta += (size_t)arm * (size_t)log->d;
  for (int i = 0; i < log->d; i++) sum += x[i] * theta[i];
  return sum;
}

/* Computes sigma, the root mean square residual of ridge fits to all events. */
static Status logged_bandit_fit_noise(const EventLog *log, double *noise) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)log->d, rows = (size_t)log->rows, arms = (size_t)log->arms;
  double *square, *theta, total = 0;
  int *events;
  ALLOCATE(&scratch, square, d * d);
  ALLOCATE(&scratch, theta, d * (log->has_features ? 1 : arms));
  ALLOCATE(&scratch, events, rows);
  for (int e = 0; e < log->rows; e++) events[e] = e;
  problem_logged_ridge(log, log->rows, events, square, theta);
  if (log->rewards) {
    for (size_t k = 0; k < arms; k++)
      for (size_t e = 0; e < rows; e++) {
        double off = log->rewards[e * arms + k];
        for (size_t i = 0; i < d; i++) off -= log->x[e * d + i] * theta[k * d + i];
        total += off * off;
      }
  } else {
    for (int e = 0; e < log->rows; e++)
      total += pow(log->reward[e] - problem_logged_predict(log, theta, e, log->arm[e]), 2);
  }
  *noise = sqrt(total / (double)(log->rewards ? rows * arms : rows));
  *noise = fmax(*noise, 1e-6); /* an exact fit leaves no residual */
  return STATUS_OK;
}

/* Takes from the events what they determine. */
static Status logged_bandit_finish(Problem *self, const Config *config) {
  const EventLog *log = self->state;
  self->arms = log->arms;
  self->per_arm = !log->has_features;
  self->resample_arms = true;
  self->arms_come_and_go = log->available != NULL;
  if (config_is(config, "problem.noise", "auto") && likelihood_has_noise(&self->likelihood)) {
    self->likelihood.noise = log->noise;
    if (log->noise <= 0) TRY(logged_bandit_fit_noise(log, &self->likelihood.noise));
  }
  return problem_theta_create_gaussian(log->d, self->seed, &self->theta);
}

static Status logged_bandit_create(Problem *self, const Config *config) {
  const LikelihoodOps *ops = self->likelihood.ops;
  EventLog *log = self->state;
  const char *path = config_text(config, "problem.file");
  TRY(io_dataset_read_events(&self->memory, path, log));
  if (self->d > 0 && self->d != log->d)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but the events of %s have %d", self->d, path,
                      log->d);
  if (!config_is(config, "problem.arms", "auto")) {
    const bool fixed = log->has_features || log->available;
    if (self->arms < log->arms || (fixed && self->arms > log->arms))
      return status_set(STATUS_INPUT, "problem.arms: %d, but %s has %d", self->arms, path, log->arms);
    log->arms = self->arms;
  }
  for (int e = 0; e < log->rows; e++)
    if (!ops->admits(log->reward[e]))
      return status_set(STATUS_INPUT,
                        "%s: the reward of event %d (from 0) is %g; with likelihood %s it must be %s", path,
                        e, log->reward[e], ops->name, ops->rewards);
  self->rounds = log->rows;
  return logged_bandit_finish(self, config);
}

static void logged_bandit_features(World *world) {
  const EventLog *log = world->problem->state;
  const size_t count = (size_t)log->d * (size_t)problem_vectors(world->problem), runs = (size_t)world->runs;
  for (size_t b = 0; b < runs; b++) {
    const int event = problem_logged_event(world->problem, world->first_run + (uint32_t)b, world->round);
    const double *from = logged_features(log, event, 0);
    for (size_t i = 0; i < count; i++) world->features[i * runs + b] = from[i];
    if (log->available)
      memcpy(world->available + b * (size_t)log->arms, log->available + (size_t)event * (size_t)log->arms,
             (size_t)log->arms);
  }
}

/* Sets the means of all arms to their rewards; in a log those of the arms that were not taken are 0, and none
 * is shown to a policy. */
static void logged_bandit_rewards(World *world) {
  const EventLog *log = world->problem->state;
  for (int b = 0; b < world->runs; b++) {
    const int event = problem_logged_event(world->problem, world->first_run + (uint32_t)b, world->round);
    for (int k = 0; k < log->arms; k++) world->mean[k * world->runs + b] = logged_reward(log, event, k);
  }
}

const ProblemOps problem_logged = {.name = "logged",
                                   .summary = "events of a log, with the arm taken and its probability",
                                   .reference = "Li, Chu, Langford and Wang 2011",
                                   .keys = "problem.file problem.resample_arms",
                                   .state_size = sizeof(EventLog),
                                   .needs_file = true,
                                   .rewards_of = REWARDS_OF_LOG,
                                   .per_arm = true,
                                   .create = logged_bandit_create,
                                   .features = logged_bandit_features,
                                   .rewards = logged_bandit_rewards};

/* ---- a table */

static Status table_bandit_create(Problem *self, const Config *config) {
  const LikelihoodOps *ops = self->likelihood.ops;
  EventLog *table = self->state;
  const char *path = config_text(config, "problem.file");
  TRY(io_dataset_read_table(&self->memory, path, table));
  const size_t arms = (size_t)table->arms;
  if (config_is(config, "problem.arms", "auto") && table->lacks_class_0)
    return status_set(STATUS_INPUT,
                      "%s: no event has class 0; classes are counted from 0, so this table would have an arm "
                      "without rewards. Number them from 0, or set problem.arms: %d",
                      path, table->arms);
  if (!config_is(config, "problem.arms", "auto") && self->arms != table->arms)
    return status_set(STATUS_INPUT, "problem.arms: %d, but %s has %d", self->arms, path, table->arms);
  if (self->d > 0 && self->d != table->d)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but the contexts of %s have %d", self->d, path,
                      table->d);
  if (self->rounds > table->rows)
    return status_set(STATUS_INPUT,
                      "problem.rounds: %d, but %s has %d events, and a run uses each at most once",
                      self->rounds, path, table->rows);
  for (size_t i = 0; i < (size_t)table->rows * arms; i++)
    if (!ops->admits(table->rewards[i]))
      return status_set(
          STATUS_INPUT,
          "%s: the reward of event %zu and arm %zu (from 0) is %g; with likelihood %s it must be %s", path,
          i / arms, i % arms, table->rewards[i], ops->name, ops->rewards);
  return logged_bandit_finish(self, config);
}

const ProblemOps problem_table = {.name = "table",
                                  .summary = "events from a file that gives the reward of every arm",
                                  .reference = "Riquelme, Tucker and Snoek 2018 (data sets as bandits)",
                                  .keys = "problem.file problem.resample_arms",
                                  .state_size = sizeof(EventLog),
                                  .needs_file = true,
                                  .rewards_of = REWARDS_OF_ARMS,
                                  .per_arm = true,
                                  .create = table_bandit_create,
                                  .features = logged_bandit_features,
                                  .rewards = logged_bandit_rewards};
