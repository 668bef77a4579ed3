/* thompson reduce: rebuild results.nc from the finished tasks. */
#include "parallel/reduce.h"
#include "app/app.h"

#include <stdio.h>

typedef struct {
  const char *directory;
  ReduceOptions reduce;
} Arguments;

enum { KEY_OVERWRITE = 256 };

static const struct argp_option options[] = {
    {"overwrite", KEY_OVERWRITE, NULL, 0, "replace results.nc even if it has more tasks than are left", 0},
    {0}};

static error_t reduce_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_OVERWRITE: arguments->reduce.overwrite = true; return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Prints the table and the counts of tasks; returns STATUS_TASKS_FAILED if some are damaged or failed. */
static Status app_reduce_report(const Study *study, const char *directory, const ReduceCounts *counts) {
  TRY(app_print_table(study, directory));
  printf("\n%d tasks done, %d failed, %d not run\n", counts->ok, counts->failed, counts->missing);
  if (counts->damaged > 0)
    return status_set(STATUS_TASKS_FAILED,
                      "%d task records cannot be read; results of the others written; `thompson run "
                      "--resume` runs these tasks again",
                      counts->damaged);
  if (counts->failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%d tasks failed; results written", counts->failed);
  return STATUS_OK;
}

/* Rebuilds results.nc in the folder, and reports. Collective. */
static Status reduce_folder(const Parallel *parallel, const Arguments *arguments) {
  const char *directory = arguments->directory;
  SCOPED(Study, study, study_destroy);
  ReduceCounts counts;
  TRY(parallel_agree(parallel, app_study_of_folder(directory, &study)));
  TRY(reduce_study(parallel, &study, directory, &arguments->reduce, &counts));
  return parallel_agree(parallel,
                        parallel->rank == 0 ? app_reduce_report(&study, directory, &counts) : STATUS_OK);
}

Status app_reduce(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = reduce_parse,
      .args_doc = "DIR",
      .doc = "Rebuild DIR/results.nc from the finished tasks, alone or under mpiexec or srun."};
  Arguments arguments = {0};
  app_parse(&argp, argc, argv, &arguments);
  Parallel parallel = app_begin_parallel();
  Status status = reduce_folder(&parallel, &arguments);
  return app_end_parallel(status);
}
