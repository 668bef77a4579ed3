/* thompson reduce: rebuild results.nc from the finished tasks. */
#include "parallel/results/reduce.h"
#include "app/app.h"
#include "core/numeral.h"

static struct {
  const char *directory;
  bool overwrite;
} arguments;

static const AppOption options[] = {{"overwrite", 0, NULL,
                                     "replace results.nc even if it has more tasks than are left",
                                     .flag = &arguments.overwrite},
                                    {0}};

/* Prints the table and the counts of tasks; returns STATUS_TASKS_FAILED if some are damaged or failed. */
static Status app_reduce_report(const Study *study, const ReduceCounts *counts, const Leaderboard *board) {
  app_print_table(study, board);
  printf("\n%s done, %d failed, %d not run\n", numeral_count(counts->ok, "task").text, counts->failed,
         counts->missing);
  if (counts->damaged > 0)
    return status_set(STATUS_TASKS_FAILED,
                      "%s cannot be read; results of the others written; `thompson run --resume` runs %s "
                      "again",
                      numeral_count(counts->damaged, "task record").text,
                      counts->damaged == 1 ? "this task" : "these tasks");
  if (counts->failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%s failed; results written",
                      numeral_count(counts->failed, "task").text);
  return STATUS_OK;
}

static Status reduce_folder(void) {
  SCOPED(Study, study, study_destroy);
  SCOPED(Leaderboard, board, leaderboard_destroy);
  ReduceCounts counts;
  TRY(parallel_agree(app_study_of_folder(arguments.directory, &study)));
  TRY(reduce_study(&study, arguments.directory, arguments.overwrite, &counts, &board));
  return parallel_agree(parallel_rank() == 0 ? app_reduce_report(&study, &counts, &board) : STATUS_OK);
}

const AppVerb app_reduce = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .usage = "DIR",
    .help = "Rebuild DIR/results.nc from the finished tasks, alone or under mpiexec or srun.",
    .collective = reduce_folder};
