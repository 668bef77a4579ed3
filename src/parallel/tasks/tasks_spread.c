/* The settings of a study whose matrices are spread over ranks. */
#include "parallel/grid.h"
#include "parallel/tasks/tasks.h"
#include "study/study_problem.h"

#include <sys/resource.h>

typedef struct {
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
static bool tasks_spread_poll_for_stop(void *context, double fraction) {
  (void)fraction;
  Runner *runner = context;
  runner->stopped = runner->stopped || parallel_sum(runner->options->stop()) > 0;
  return !runner->stopped;
}

static bool speaks; /* the first rank does */

static void tasks_spread_task_report_stage(const char *what, double seconds) {
  if (speaks && seconds >= 1) fprintf(stderr, "  %s: %.1f s\n", what, seconds);
}

/* Appends the results of a block to the journal, and reports the tasks that failed. */
static Status tasks_spread_append_block(Runner *runner, int count) {
  for (int i = 0; i < count; i++) {
    TRY(journal_append(runner->journal, &runner->tasks[i], &runner->results[i]));
    if (runner->results[i].status == RUN_FAILED)
      tasks_report_failure(runner->study, runner->directory, &runner->tasks[i], &runner->results[i]);
  }
  return STATUS_OK;
}

/* Runs `count` tasks of one block. */
static Status tasks_spread_run_block(Runner *runner, int count, TasksOutcome *outcome) {
  const Study *study = runner->study;
  const StudyFile *file = study->file;
  const int setting = runner->tasks->setting;
  const bool many = grid_is_available() && parallel_size() > 1;
  const StudySpread spread = {.dense = many ? &runner->grid : &runner->lapack,
                              .tick = {tasks_spread_poll_for_stop, runner},
                              .stage = tasks_spread_task_report_stage};
  if (speaks && runner->announced != setting)
    fprintf(stderr, "setting %s: %s, because its dimension is at least linear_algebra.distributed_from%s\n",
            file->setting_labels[setting], spread.dense->ops->name,
            !grid_is_available()   ? ", and this build has no ScaLAPACK"
            : parallel_size() == 1 ? ", and there is only one rank"
                                   : "");
  runner->announced = setting;
  Status status = STATUS_OK;
  for (int i = 0; i < count && status == STATUS_OK; i++)
    status = study_result_create(study, &runner->tasks[i], &runner->results[i]);
  status = parallel_agree(status);
  if (status == STATUS_OK) status = study_run_spread(study, &spread, count, runner->tasks, runner->results);
  status = parallel_agree(status);
  if (status == STATUS_OK && parallel_rank() == 0) status = tasks_spread_append_block(runner, count);
  if (status == STATUS_OK) status = journal_sync(runner->journal);
  status = parallel_agree(status);
  for (int i = 0; i < count; i++) {
    outcome->failed += status == STATUS_OK && runner->results[i].status == RUN_FAILED;
    outcome->here += status == STATUS_OK;
    study_result_destroy(&runner->results[i]);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double own = (double)usage.ru_maxrss * 1024, all = parallel_sum(own); /* VmHWM */
  if (speaks)
    fprintf(stderr, "  peak memory: %.2f GB on the first rank, %.2f GB per rank on average\n", own / 1e9,
            all / 1e9 / parallel_size());
  return status;
}

/* Visits the blocks of these settings one after another, and runs the tasks of all policies that have not
 * succeeded. */
static Status tasks_spread_visit_blocks(Runner *runner, const signed char *state, TasksOutcome *outcome) {
  const Study *study = runner->study;
  for (int s = 0; s < study->file->setting_count; s++) {
    if (!study_problem_is_distributed(study->file->settings[s])) continue;
    for (int k = 0; k < study->runs.blocks; k++) {
      int count = 0;
      for (int p = 0; p < study->file->policy_count; p++) {
        const int index = study_task_index(study, s, p, k);
        if (state[index] != RUN_OK) runner->tasks[count++] = study_task(study, index);
      }
      if (count == 0) continue;
      Status status = STATUS_STOPPED;
      if (outcome->failed <= runner->options->max_failures && tasks_spread_poll_for_stop(runner, 0))
        status = tasks_spread_run_block(runner, count, outcome);
      if (status == STATUS_STOPPED)
        outcome->left += count;
      else
        TRY(status);
    }
  }
  return STATUS_OK;
}

Status tasks_spread_run(const Finished *finished, const TasksOptions *options, TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  const Study *study = finished->study;
  bool any = false;
  *outcome = (TasksOutcome){0};
  for (int s = 0; s < study->file->setting_count; s++)
    any |= study_problem_is_distributed(study->file->settings[s]);
  if (options->shard != 0 || !any) return STATUS_OK;
  speaks = parallel_rank() == 0 && options->progress != PROGRESS_NONE;
  Runner runner = {.study = study,
                   .directory = finished->directory,
                   .options = options,
                   .lapack = dense_lapack(parallel_rank(), parallel_size(), parallel_sum_all),
                   .announced = -1};
  ALLOCATE_ON_RANKS(&scratch, runner.tasks, study->file->policy_count);
  ALLOCATE_ON_RANKS(&scratch, runner.results, study->file->policy_count);
  TRY(parallel_agree(journal_create(&scratch, finished->directory, study, &runner.journal)));
  if (grid_is_available()) runner.grid = grid_create(GRID_BLOCK);
  const Status status = tasks_spread_visit_blocks(&runner, finished->state, outcome);
  grid_destroy(&runner.grid);
  journal_close(runner.journal);
  return status;
}
