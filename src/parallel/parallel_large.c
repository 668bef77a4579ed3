#include "parallel/parallel_large.h"

#include "parallel/grid.h"

#include <sys/resource.h>

typedef struct {
  const Parallel *parallel;
  const Study *study;
  const char *directory;
  const TasksOptions *options;
  Journal *journal; /* of rank 0 */
  Dense lapack, grid;
  Task *tasks; /* [policies]: those of one block that are to be run */
  TaskResult *results; /* [policies] */
  bool stopped;
  int announced; /* setting that was last reported */
} Runner;

/* Polls for a stop between the runs and policies of a block. Collective. */
static bool all_ranks_poll_for_stop(void *context, double fraction) {
  (void)fraction;
  Runner *runner = context;
  runner->stopped = runner->stopped || parallel_sum(runner->options->stop()) > 0;
  return !runner->stopped;
}

/* ---- reports of the first rank */

static bool speaks;

static void parallel_large_task_report_stage(const char *what, double seconds) {
  if (speaks && seconds >= 1) fprintf(stderr, "  %s: %.1f s\n", what, seconds);
}

static void parallel_large_task_report_setting(Runner *runner, int setting, const Dense *dense) {
  const StudyFile *file = runner->study->file;
  if (!speaks || runner->announced == setting) return;
  runner->announced = setting;
  fprintf(stderr, "large setting %s: %s, because its dimension is %s linear_algebra.distributed_from%s\n",
          file->setting_labels[setting], dense->ops->name,
          problem_is_distributed(file->settings[setting]) ? "at least" : "below",
          !grid_is_available()          ? " and this build has no ScaLAPACK"
          : runner->parallel->size == 1 ? " and there is only one rank"
                                        : "");
}

/* Reports the peak memory (VmHWM) of the first rank and the average over ranks. Collective. */
static void all_ranks_report_memory(const Runner *runner) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double here = (double)usage.ru_maxrss * 1024, all = parallel_sum(here);
  if (speaks)
    fprintf(stderr, "  peak memory: %.2f GB on the first rank, %.2f GB per rank on average\n", here / 1e9,
            all / 1e9 / runner->parallel->size);
}

/* ---- running */

static Status journal_append_large_results(Runner *runner, int count) {
  if (runner->parallel->rank != 0) return STATUS_OK;
  for (int i = 0; i < count; i++) {
    TRY(journal_append(runner->journal, &runner->tasks[i], &runner->results[i]));
    if (runner->results[i].status == RUN_FAILED)
      tasks_report_failure(runner->study, runner->directory, &runner->tasks[i], &runner->results[i]);
  }
  return journal_sync(runner->journal);
}

/* Runs `count` tasks of one block. */
static Status all_ranks_run_block(Runner *runner, int count, TasksOutcome *outcome) {
  const Study *study = runner->study;
  const int setting = runner->tasks->setting;
  const bool spread = grid_is_available() && problem_is_distributed(study->file->settings[setting]) &&
                      runner->parallel->size > 1;
  const StudyLarge large = {.dense = spread ? &runner->grid : &runner->lapack,
                            .tick = {all_ranks_poll_for_stop, runner},
                            .stage = parallel_large_task_report_stage};
  parallel_large_task_report_setting(runner, setting, large.dense);
  Status status = STATUS_OK;
  for (int i = 0; i < count && status == STATUS_OK; i++)
    status = study_result_create(study, &runner->tasks[i], &runner->results[i]);
  status = parallel_agree(runner->parallel, status);
  if (status == STATUS_OK) status = study_run_large(study, &large, count, runner->tasks, runner->results);
  status = parallel_agree(runner->parallel, status);
  if (status == STATUS_OK)
    status = parallel_agree(runner->parallel, journal_append_large_results(runner, count));
  for (int i = 0; i < count && status == STATUS_OK; i++) {
    outcome->failed += runner->results[i].status == RUN_FAILED;
    outcome->here++;
  }
  for (int i = 0; i < count; i++) study_result_destroy(&runner->results[i]);
  all_ranks_report_memory(runner);
  return status;
}

/* Visits one block of a setting, and runs the tasks of all policies that have not succeeded. */
static Status all_ranks_visit_block(Runner *runner, int setting, int block, const signed char *state,
                                    TasksOutcome *outcome) {
  int count = 0;
  for (int p = 0; p < runner->study->file->policy_count; p++) {
    const int index = study_task_index(runner->study, setting, p, block);
    if (state[index] != RUN_OK) runner->tasks[count++] = study_task(runner->study, index);
  }
  const bool too_many = outcome->failed > runner->options->max_failures;
  if (count == 0 || too_many || !all_ranks_poll_for_stop(runner, 0)) {
    outcome->left += count;
    return STATUS_OK;
  }
  Status status = all_ranks_run_block(runner, count, outcome);
  if (status != STATUS_STOPPED) return status;
  outcome->left += count;
  return STATUS_OK;
}

static Status all_ranks_run_settings(Runner *runner, const Finished *finished, TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  const Study *study = runner->study;
  const int policies = study->file->policy_count;
  ALLOCATE_ARRAYS(&scratch, policies, runner->tasks, runner->results);
  TRY(journal_create(&scratch, runner->directory, study, &runner->journal));
  Status status = STATUS_OK;
  for (int s = 0; s < study->file->setting_count; s++)
    for (int k = 0; k < study->runs.blocks && problem_is_large(study->file->settings[s]); k++)
      if (status == STATUS_OK) status = all_ranks_visit_block(runner, s, k, finished->state, outcome);
  journal_close(runner->journal);
  return status;
}

static bool parallel_large_tasks_exist(const Study *study) {
  for (int s = 0; s < study->file->setting_count; s++)
    if (problem_is_large(study->file->settings[s])) return true;
  return false;
}

Status parallel_large_run(const Parallel *parallel, const Finished *finished, const TasksOptions *options,
                          TasksOutcome *outcome) {
  *outcome = (TasksOutcome){0};
  if (options->shard != 0 || !parallel_large_tasks_exist(finished->study)) return STATUS_OK;
  speaks = parallel->rank == 0 && options->progress != PROGRESS_NONE;
  Runner runner = {.parallel = parallel,
                   .study = finished->study,
                   .directory = finished->directory,
                   .options = options,
                   .lapack = dense_lapack(parallel->rank, parallel->size, parallel_sum_all),
                   .announced = -1};
  if (grid_is_available()) runner.grid = grid_create(parallel, GRID_BLOCK);
  const Status status = all_ranks_run_settings(&runner, finished, outcome);
  grid_destroy(&runner.grid);
  return status;
}
