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

#include "core/linalg.h"
#include "problem/problems.h"

#include <math.h>
#include <string.h>

const EventLog *problem_logged_events(const Problem *problem) { return problem->state; }

int problem_logged_event(const Problem *problem, uint32_t run, uint32_t round) {
  return rng_permuted(problem_logged_events(problem)->rows, rng_key(problem->seed, RNG_EVENTS), run,
                      (int)round - 1);
}

void problem_logged_ridge(const EventLog *log, int count, const int *events, double *square, double *theta) {
  const size_t d = (size_t)log->d;
  const int models = log->has_features ? 1 : log->arms;
  for (int m = 0; m < models; m++, theta += d) {
    memset(square, 0, d * d * sizeof *square);
    memset(theta, 0, d * sizeof *theta);
    for (size_t i = 0; i < d; i++) square[i * d + i] = 1;
    for (int n = 0; n < count; n++) {
      const int event = events[n];
      if (!log->has_features && log->arm[event] != m) continue;
      const double *x = logged_features(log, event, log->arm[event]);
      for (size_t i = 0; i < d; i++) {
        theta[i] += x[i] * log->reward[event];
        for (size_t j = 0; j < d; j++) square[i * d + j] += x[i] * x[j];
      }
    }
    linalg_cholesky_lanes(log->d, 1, square, NULL);
    linalg_solve_lanes(log->d, 1, square, theta);
  }
}

double problem_logged_predict(const EventLog *log, const double *theta, int event, int arm) {
  const double *x = logged_features(log, event, arm);
  double sum = 0;
  if (!log->has_features) theta += (size_t)arm * (size_t)log->d;
  for (int i = 0; i < log->d; i++) sum += x[i] * theta[i];
  return sum;
}

/* Computes sigma, the root mean square residual of a ridge fit to all events. */
static Status logged_bandit_fit_noise(const EventLog *log, double *noise) {
  SCRATCH_ARENA(scratch);
  const size_t d = (size_t)log->d, models = log->has_features ? 1 : (size_t)log->arms;
  double *square, *theta, total = 0;
  int *events;
  ALLOCATE(&scratch, square, d * d);
  ALLOCATE(&scratch, theta, d * models);
  ALLOCATE(&scratch, events, log->rows);
  for (int e = 0; e < log->rows; e++) events[e] = e;
  problem_logged_ridge(log, log->rows, events, square, theta);
  for (int e = 0; e < log->rows; e++)
    total += pow(log->reward[e] - problem_logged_predict(log, theta, e, log->arm[e]), 2);
  *noise = fmax(sqrt(total / log->rows), 1e-6); /* an exact fit leaves no residual */
  return STATUS_OK;
}

static Status logged_bandit_create(Problem *self, const Config *config) {
  const LikelihoodOps *ops = self->likelihood.ops;
  EventLog *log;
  ALLOCATE(&self->memory, log, 1);
  self->state = log;
  const char *path = config_text(config, "problem.file");
  if (!path)
    return status_set(STATUS_INPUT, "problem.family = logged needs problem.file, which is not given");
  TRY(io_dataset_read_events(&self->memory, path, log));
  if (!config_is(config, "study", "replay"))
    return status_set(STATUS_INPUT, "problem.family: logged is for study replay; this is study %s",
                      config_text(config, "study"));
  if (self->d > 0 && self->d != log->d)
    return status_set(STATUS_INPUT, "problem.dimension: %d, but the events of %s have %d", self->d, path,
                      log->d);
  if (!config_is(config, "problem.arms", "auto")) {
    if (self->arms < log->arms || (log->has_features && self->arms > log->arms))
      return status_set(STATUS_INPUT, "problem.arms: %d, but %s has %d", self->arms, path, log->arms);
    log->arms = self->arms;
  }
  for (int e = 0; e < log->rows; e++)
    if (!ops->admits(log->reward[e]))
      return status_set(STATUS_INPUT,
                        "%s: the reward of event %d (from 0) is %g; with likelihood %s it must be %s", path,
                        e, log->reward[e], ops->name, ops->rewards);
  self->arms = log->arms, self->rounds = log->rows;
  self->per_arm = !log->has_features, self->resample_arms = true;
  if (config_is(config, "problem.noise", "auto") && likelihood_is_conjugate(&self->likelihood)) {
    self->likelihood.noise = log->noise;
    if (log->noise <= 0) TRY(logged_bandit_fit_noise(log, &self->likelihood.noise));
  }
  return problem_theta_create_gaussian(log->d, self->seed, &self->theta);
}

static void logged_bandit_features(World *world) {
  const EventLog *log = world->problem->state;
  const size_t count = (size_t)log->d * (size_t)problem_vectors(world->problem), runs = (size_t)world->runs;
  for (size_t b = 0; b < runs; b++) {
    const int event = problem_logged_event(world->problem, world->first_run + (uint32_t)b, world->round);
    const double *from = logged_features(log, event, 0);
    for (size_t i = 0; i < count; i++) world->features[i * runs + b] = from[i];
  }
}

/* Sets the mean of the arm that was taken to its reward, and that of the others to 0; neither is shown to a
 * policy. */
static void logged_bandit_rewards(World *world) {
  const EventLog *log = world->problem->state;
  for (int i = 0; i < world->problem->arms * world->runs; i++) world->mean[i] = 0;
  for (int b = 0; b < world->runs; b++) {
    const int event = problem_logged_event(world->problem, world->first_run + (uint32_t)b, world->round);
    world->mean[log->arm[event] * world->runs + b] = log->reward[event];
  }
}

const ProblemOps problem_logged = {.name = "logged",
                                   .summary = "events of a log, with the arm taken and its probability",
                                   .reference = "Li, Chu, Langford and Wang 2011",
                                   .per_arm = true,
                                   .create = logged_bandit_create,
                                   .features = logged_bandit_features,
                                   .rewards = logged_bandit_rewards};

/* ---- a table */

/* Checks the study's sizes, and that the likelihood admits the rewards. */
static Status table_bandit_check(const Problem *self, const Config *config, const char *path,
                                 const EventLog *table) {
  const LikelihoodOps *ops = self->likelihood.ops;
  const size_t arms = (size_t)table->arms;
  if (!config_is(config, "study", "bandit"))
    return status_set(STATUS_INPUT, "problem.family: table is for study bandit; this is study %s",
                      config_text(config, "study"));
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
  return STATUS_OK;
}

/* Computes sigma, the root mean square residual of ridge fits, (X'X + I) theta = X'y, one per arm, to all
 * events. */
static Status table_bandit_fit_noise(const EventLog *table, double *noise) {
  SCRATCH_ARENA(memory);
  const size_t d = (size_t)table->d, arms = (size_t)table->arms, rows = (size_t)table->rows;
  double *square, *theta, total = 0;
  ALLOCATE(&memory, square, d * d);
  ALLOCATE(&memory, theta, d);
  for (size_t i = 0; i < d; i++) square[i * d + i] = 1;
  for (size_t e = 0; e < rows; e++)
    for (size_t i = 0; i < d; i++)
      for (size_t j = 0; j < d; j++) square[i * d + j] += table->x[e * d + i] * table->x[e * d + j];
  linalg_cholesky_lanes(table->d, 1, square, NULL);
  for (size_t k = 0; k < arms; k++) {
    memset(theta, 0, d * sizeof *theta);
    for (size_t e = 0; e < rows; e++)
      for (size_t i = 0; i < d; i++) theta[i] += table->x[e * d + i] * table->rewards[e * arms + k];
    linalg_solve_lanes(table->d, 1, square, theta);
    for (size_t e = 0; e < rows; e++) {
      double off = table->rewards[e * arms + k];
      for (size_t i = 0; i < d; i++) off -= table->x[e * d + i] * theta[i];
      total += off * off;
    }
  }
  *noise = fmax(sqrt(total / (double)(rows * arms)), 1e-6); /* an exact fit leaves no residual */
  return STATUS_OK;
}

static Status table_bandit_create(Problem *self, const Config *config) {
  EventLog *table;
  ALLOCATE(&self->memory, table, 1);
  self->state = table;
  const char *path = config_text(config, "problem.file");
  if (!path) return status_set(STATUS_INPUT, "problem.family = table needs problem.file, which is not given");
  TRY(io_dataset_read_table(&self->memory, path, table));
  TRY(table_bandit_check(self, config, path, table));
  self->arms = table->arms;
  self->per_arm = self->resample_arms = true;
  if (config_is(config, "problem.noise", "auto") && likelihood_is_conjugate(&self->likelihood))
    TRY(table_bandit_fit_noise(table, &self->likelihood.noise));
  return problem_theta_create_gaussian(table->d, self->seed, &self->theta);
}

static void table_bandit_rewards(World *world) {
  const EventLog *table = world->problem->state;
  for (int b = 0; b < world->runs; b++) {
    const int event = problem_logged_event(world->problem, world->first_run + (uint32_t)b, world->round);
    const double *from = table->rewards + (size_t)event * (size_t)table->arms;
    for (int k = 0; k < table->arms; k++) world->mean[k * world->runs + b] = from[k];
  }
}

const ProblemOps problem_table = {.name = "table",
                                  .summary = "events from a file that gives the reward of every arm",
                                  .reference = "Riquelme, Tucker and Snoek 2018 (data sets as bandits)",
                                  .per_arm = true,
                                  .create = table_bandit_create,
                                  .features = logged_bandit_features,
                                  .rewards = table_bandit_rewards};
