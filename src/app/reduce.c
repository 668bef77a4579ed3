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

Status app_reduce(int argc, char **argv) {
  static const struct argp argp = {NULL, parse, "DIR", "Rebuild DIR/results.nc from the finished tasks.",
                                   NULL, NULL,  NULL};
  const char *directory = NULL;
  app_parse(&argp, argc, argv, &directory);
  Study study;
  ReduceCounts counts;
  TRY(app_study_of_folder(directory, &study));
  Status status = reduce_study(&study, directory, &counts);
  if (status == STATUS_OK) status = app_print_table(&study, directory);
  if (status == STATUS_OK)
    printf("\n%d tasks done, %d failed, %d not run\n", counts.ok, counts.failed, counts.missing);
  study_destroy(&study);
  if (status == STATUS_OK && counts.failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%d tasks failed; results written", counts.failed);
  return status;
}
