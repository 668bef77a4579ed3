/* The tasks of a study: their results, the prior that each gets, and running them. */
#include "study/study.h"
#include "study/study_problem.h"

Status study_result_create(const Study *study, const Task *task, TaskResult *out) {
  const Config *setting = study->file->settings[task->setting];
  *out = (TaskResult){.runs = task->runs,
                      .points = study->ops->points(setting),
                      .rounds = (int)config_int(setting, "problem.rounds"),
                      .along = study->along,
                      .status = RUN_NOT_RUN};
  const size_t every = (size_t)(study->curve_count - study->along) * (size_t)out->rounds;
  out->size = (size_t)out->runs * ((size_t)out->along * (size_t)out->points + every);
  ALLOCATE(&out->memory, out->curves, out->size);
  return columns_create(&out->memory, (size_t)task->runs, &out->columns);
}

void study_result_destroy(TaskResult *result) { arena_free(&result->memory); }

bool study_has_shared(const Study *study) {
  for (int c = 0; c < study->curve_count; c++)
    if (study->curves[c]->shared) return true;
  return false;
}

void study_result_share(const Study *study, const TaskResult *finished, TaskResult *result) {
  const size_t bytes = (size_t)result->runs * (size_t)result->points * sizeof *result->curves;
  for (int c = 0; c < study->curve_count; c++)
    if (study->curves[c]->shared)
      memcpy(study_result_values(result, c, 0), study_result_values(finished, c, 0), bytes);
  result->has_shared = true;
}

/* Clears the result, except for shared curves that it has already. */
static void study_result_clear(const Study *study, TaskResult *result) {
  for (int c = 0; c < study->curve_count; c++) {
    if (result->has_shared && study->curves[c]->shared) continue;
    double *end = study_result_values(result, c + 1, 0);
    for (double *value = study_result_values(result, c, 0); value < end; value++) *value = NAN;
  }
  columns_clear((size_t)result->runs, &result->columns);
  result->message[0] = '\0';
}

/* Sets the status of the result. An error makes the task fail, but is returned if it concerns the job. */
static Status study_result_conclude(const Study *study, Status status, TaskResult *result) {
  result->status = status == STATUS_OK ? RUN_OK : RUN_FAILED;
  if (status == STATUS_STOPPED || status == STATUS_INTERNAL || status == STATUS_OK) return status;
  return study_result_fail(study, status_message(), result);
}

void study_result_set_seconds(double seconds, TaskResult *result) {
  for (int b = 0; b < result->runs; b++) result->columns.seconds[b] = seconds / result->runs;
}

Status study_run_spread(const Study *study, const StudySpread *spread, int count, const Task *tasks,
                        TaskResult *results) {
  for (int i = 0; i < count; i++) study_result_clear(study, &results[i]);
  const Status status = study->ops->run_spread(study, spread, count, tasks, results);
  Status outcome = STATUS_OK;
  for (int i = 0; i < count; i++) outcome = study_result_conclude(study, status, &results[i]);
  return outcome;
}

Status study_result_fail(const Study *study, const char *message, TaskResult *result) {
  result->has_shared = false;
  study_result_clear(study, result);
  result->status = RUN_FAILED;
  snprintf(result->message, sizeof result->message, "%s", message);
  return STATUS_OK;
}

void study_task_priors_free(TaskPriors *priors) {
  arena_free(&priors->memory);
  priors->known = false;
}

/* Finds the learned prior of a task: the one that is kept, or the file. */
static Status study_task_prior(TaskRun *run, TaskPriors *priors) {
  const Task *task = run->task, *last = &priors->task;
  run->prior = &priors->last;
  if (priors->known && task->setting == last->setting && task->policy == last->policy &&
      task->replicate == last->replicate)
    return STATUS_OK;
  study_task_priors_free(priors);
  TRY(study_belief_prior(&priors->memory, &run->belief, run->problem, priors->directory, &priors->last));
  priors->task = *task;
  priors->known = true;
  return STATUS_OK;
}

Status study_task_run_create(const Study *study, const Task *task, TaskPriors *priors, TaskRun *out) {
  const Config *setting = study->file->settings[task->setting];
  const ConfigPolicy *policy = &study->file->policies[task->policy];
  *out = (TaskRun){.study = study, .task = task, .setting = setting, .policy = policy};
  out->method = policy_named(policy->name);
  TRY(study_problem_create(setting, &out->own_problem));
  if (out->own_problem.cases > 0) TRY(out->own_problem.ops->take(&out->own_problem, task->first_run));
  out->problem = &out->own_problem;
  out->prior = &out->own_prior;
  TRY(study_belief_create(setting, policy, out->problem, task->replicate, &out->belief));
  if (!priors) return STATUS_OK;
  if (out->belief.kind == BELIEF_FITTED) return study_task_prior(out, priors);
  return study_belief_prior(&out->memory, &out->belief, out->problem, priors->directory, &out->own_prior);
}

void study_task_run_destroy(TaskRun *run) {
  problem_destroy(&run->own_problem);
  arena_free(&run->memory);
}

Status study_run_task(const Study *study, const Task *task, TaskPriors *priors, Tick tick,
                      TaskResult *result) {
  SCOPED(TaskRun, run, study_task_run_destroy);
  study_result_clear(study, result);
  const Tick before = core_tick_exchange(tick); /* for the prior, if another process computes it */
  Status status = study_task_run_create(study, task, priors, &run);
  run.tick = tick;
  run.result = result;
  if (status == STATUS_OK) status = study->ops->run(&run);
  core_tick_exchange(before);
  return study_result_conclude(study, status, result);
}

PolicySetup study_policy_setup(const TaskRun *run) {
  return (PolicySetup){.prior = run->prior,
                       .likelihood = &run->belief.likelihood,
                       .problem = run->problem,
                       .options = run->policy->options,
                       .seed = run->study->seed,
                       .first_run = run->task->first_run,
                       .runs = run->task->runs,
                       .tick = run->tick};
}
