/* thompson reduce: rebuild results.nc from the finished tasks. */
#include "parallel/reduce.h"
#include "app/app.h"

#include <stdio.h>

static error_t parse(int key, char *text, struct argp_state *state) {
  const char **directory = state->input;
  switch (key) {
  case ARGP_KEY_ARG: app_take(state, directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, *directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* Collective. */
static Status reduce(const Parallel *parallel, const char *directory) {
  Study study = {0};
  ReduceCounts counts = {0};
  Status status = parallel_agree(parallel, app_study_of_folder(directory, &study));
  if (status == STATUS_OK) status = reduce_study(parallel, &study, directory, &counts);
  if (status == STATUS_OK && parallel->rank == 0) status = app_print_table(&study, directory);
  if (status == STATUS_OK && parallel->rank == 0)
    printf("\n%d tasks done, %d failed, %d not run\n", counts.ok, counts.failed, counts.missing);
  study_destroy(&study);
  if (status == STATUS_OK && counts.failed > 0)
    status = status_set(STATUS_TASKS_FAILED, "%d tasks failed; results written", counts.failed);
  return parallel_agree(parallel, status);
}

Status app_reduce(int argc, char **argv) {
  static const struct argp argp = {
      NULL, parse, "DIR", "Rebuild DIR/results.nc from the finished tasks, alone or under mpiexec or srun.",
      NULL, NULL,  NULL};
  const char *directory = NULL;
  app_parse(&argp, argc, argv, &directory);
  Parallel parallel = app_begin_parallel(&argc, &argv);
  Status status = reduce(&parallel, directory);
  return app_end_parallel(status);
}
