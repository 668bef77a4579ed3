/* Bandits whose rewards are known: a table of events with the reward of every arm, such as a data set of
 * classes or of answers that were all judged. A context is the same for all arms, and each arm has its own
 * posterior. Every run meets the events in its own random order, none twice. */
#include "core/linalg.h"
#include "problem/problem_logged.h"
#include "problem/problems.h"

#include <math.h>
#include <string.h>

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

static void rewards(World *world) {
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
                                  .features = problem_logged_features_of_round,
                                  .rewards = rewards};
