/* thompson status: what is done, failed and left in a results folder; while the job runs, from any machine
 * that sees the folder. */
#include "app/app.h"
#include "core/memory.h"
#include "parallel/checkpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct {
  const char *directory;
  bool json;
} Arguments;

static const struct argp_option options[] = {{"json", 'j', NULL, 0, "as JSON", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

typedef struct {
  int tasks, done, failed;
  double seconds_per_task, seconds_left; /* wall clock, over all ranks; negative when unknown */
} Summary;

/* Speed from the times at which the task files were written. */
static void measure_speed(const char *directory, const Study *study, const signed char *state,
                          Summary *summary) {
  double first = 0, last = 0;
  int stamped = 0;
  for (int i = 0; i < study->task_count; i++) {
    char path[4096];
    struct stat file;
    snprintf(path, sizeof path, "%s/tasks/%06d.nc", directory, i);
    if (state[i] != RUN_OK || stat(path, &file) != 0) continue;
    double time = (double)file.st_mtim.tv_sec + 1e-9 * (double)file.st_mtim.tv_nsec;
    if (stamped == 0 || time < first) first = time;
    if (stamped == 0 || time > last) last = time;
    stamped++;
  }
  if (stamped < 2) return;
  summary->seconds_per_task = (last - first) / (stamped - 1);
  summary->seconds_left = summary->seconds_per_task * (study->task_count - summary->done - summary->failed);
}

static Status summarise(const char *directory, Summary *summary) {
  Study study;
  *summary = (Summary){.seconds_per_task = -1, .seconds_left = -1};
  TRY(app_study_of_folder(directory, &study));
  signed char *state = NULL;
  Status status = memory_new((void **)&state, (size_t)study.task_count, 1);
  if (status == STATUS_OK) status = checkpoint_scan(directory, &study, state);
  if (status == STATUS_OK) {
    summary->tasks = study.task_count;
    for (int i = 0; i < study.task_count; i++) {
      summary->done += state[i] == RUN_OK;
      summary->failed += state[i] == RUN_FAILED;
    }
    measure_speed(directory, &study, state, summary);
  }
  free(state);
  study_destroy(&study);
  return status;
}

static Status print_json(const Summary *summary) {
  int left = summary->tasks - summary->done - summary->failed;
  json_t *object = json_pack("{s:i, s:i, s:i, s:i}", "tasks", summary->tasks, "done", summary->done, "failed",
                             summary->failed, "left", left);
  if (!object) return status_set(STATUS_INTERNAL, "out of memory");
  json_object_set_new(object, "seconds_per_task",
                      summary->seconds_per_task < 0 ? json_null() : json_real(summary->seconds_per_task));
  json_object_set_new(object, "seconds_left",
                      summary->seconds_left < 0 ? json_null() : json_real(summary->seconds_left));
  json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
  printf("\n");
  json_decref(object);
  return STATUS_OK;
}

Status app_status(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "DIR", "Tell what is done, failed and left in a results folder.", NULL, NULL, NULL};
  Arguments arguments = {0};
  Summary summary;
  app_parse(&argp, argc, argv, &arguments);
  TRY(summarise(arguments.directory, &summary));
  if (arguments.json) return print_json(&summary);
  printf("%d tasks: %d done, %d failed, %d left\n", summary.tasks, summary.done, summary.failed,
         summary.tasks - summary.done - summary.failed);
  if (summary.seconds_per_task >= 0)
    printf("%.3g seconds a task, about %.0f seconds left at that speed\n", summary.seconds_per_task,
           summary.seconds_left);
  return STATUS_OK;
}
