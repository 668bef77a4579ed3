/* thompson verify: read every file that the program has put into the folder, run random tasks again and
 * compare every byte with what the folder holds. */
#include "app/app.h"
#include "core/arena.h"
#include "core/memory.h"
#include "io/store.h"
#include "parallel/checkpoint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *directory;
  int tasks;
} Arguments;

enum { KEY_TASKS = 256 };
static const struct argp_option options[] = {
    {"tasks", KEY_TASKS, "N", 0, "how many tasks to run again (default: 5)", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_TASKS: arguments->tasks = (int)app_integer(state, "--tasks", text, 1, 1000000000); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

typedef struct {
  int *order; /* [count], tasks that can be run again */
  int count;
  int read, damaged; /* files of tasks, and those of them that cannot be used */
  int others, others_damaged; /* priors, results, prior samples */
} Finished;

static void print_task(const Study *study, const Task *task, const char *verdict, const char *reason) {
  printf("task %d (setting %s, policy %s, runs %u to %u): %s%s\n", task->index,
         study->file->setting_labels[task->setting], study->file->policies[task->policy].label,
         task->first_run, task->first_run + (unsigned)task->runs - 1, verdict, reason);
}

/* Whether the file of a task, finished or failed, can be read; if not, it is reported. */
static Status check_task(const Study *study, const Task *task, const char *directory, bool failed,
                         bool *usable) {
  TaskResult kept = {0};
  Status status = task_result_create(study, task, &kept);
  if (status == STATUS_OK) status = checkpoint_load(directory, study, task, failed, &kept);
  task_result_destroy(&kept);
  *usable = status == STATUS_OK;
  if (status != STATUS_INPUT) return status;
  print_task(study, task, "UNUSABLE: ", status_message());
  return STATUS_OK;
}

/* Read the files of all tasks; those that failed, and those of large settings, are not run again. */
static Status check_tasks(const Study *study, const char *directory, Finished *finished) {
  SCRATCH_ARENA(scratch);
  signed char *state;
  ALLOCATE(&scratch, state, study->task_count);
  Status status = checkpoint_scan(directory, study, state);
  for (int i = 0; i < study->task_count && status == STATUS_OK; i++) {
    const Task task = study_task(study, i);
    bool usable;
    if (state[i] == RUN_NOT_RUN) continue;
    status = check_task(study, &task, directory, state[i] == RUN_FAILED, &usable);
    finished->read++, finished->damaged += !usable;
    if (usable && state[i] == RUN_OK && !study_task_is_large(study, &task))
      finished->order[finished->count++] = i;
  }
  return status;
}

/* A file with a checksum, if it is there. */
static Status check_other(const char *directory, const char *name, Finished *finished) {
  char path[4096];
  StoreFile *file;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (access(path, F_OK) != 0) return STATUS_OK;
  finished->others++;
  Status status = store_open_own(path, &file);
  if (status == STATUS_OK) store_abandon(file);
  if (status != STATUS_INPUT) return status;
  finished->others_damaged++;
  printf("%s: UNUSABLE: %s\n", name, status_message());
  return STATUS_OK;
}

static int is_prior(const struct dirent *entry) {
  const char *ending = strrchr(entry->d_name, '.');
  return entry->d_name[0] != '.' && ending && strcmp(ending, ".nc") == 0;
}

/* Results, prior samples, and fitted priors. */
static Status check_others(const char *directory, Finished *finished) {
  char path[4096], name[300];
  struct dirent **entries = NULL;
  TRY(check_other(directory, "results.nc", finished));
  TRY(check_other(directory, "prior_samples.nc", finished));
  snprintf(path, sizeof path, "%s/priors", directory);
  const int count = scandir(path, &entries, is_prior, alphasort);
  Status status = STATUS_OK;
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "priors/%s", entries[i]->d_name);
    if (status == STATUS_OK) status = check_other(directory, name, finished);
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* Fisher-Yates. */
static void shuffle(uint64_t seed, int count, int *order) {
  Rng rng = {.key = rng_key(seed, RNG_VERIFY)};
  for (int i = count - 1; i > 0; i--) {
    int j = (int)rng_index(&rng, (uint64_t)i + 1), kept = order[i];
    order[i] = order[j], order[j] = kept;
  }
}

/* Run a task again and compare it with its file; `same` is the outcome. */
static Status verify_task(const Study *study, const Task *task, const char *directory, bool *same) {
  TaskResult kept = {0}, again = {0};
  size_t size = (size_t)study->curve_count * (size_t)task->runs * (size_t)study->points * sizeof(double);
  Status status = task_result_create(study, task, &kept);
  if (status == STATUS_OK) status = task_result_create(study, task, &again);
  if (status == STATUS_OK) status = checkpoint_load(directory, study, task, false, &kept);
  if (status == STATUS_OK) status = study_run_task(study, task, directory, (StudyTick){NULL, NULL}, &again);
  if (status == STATUS_OK)
    *same = kept.status == again.status && memcmp(kept.curves, again.curves, size) == 0 &&
            memcmp(kept.fallbacks, again.fallbacks, (size_t)task->runs * sizeof *kept.fallbacks) == 0;
  task_result_destroy(&kept);
  task_result_destroy(&again);
  return status;
}

static Status verify(const Study *study, const Arguments *arguments, Finished *finished) {
  int different = 0;
  TRY(check_tasks(study, arguments->directory, finished));
  TRY(check_others(arguments->directory, finished));
  if (finished->count == 0 && finished->damaged == 0 && finished->others_damaged == 0)
    return status_set(STATUS_INPUT,
                      "%s: no finished task to verify (those of large settings are not run again)",
                      arguments->directory);
  shuffle(study->seed, finished->count, finished->order);
  int again = finished->count < arguments->tasks ? finished->count : arguments->tasks;
  for (int i = 0; i < again; i++) {
    const Task task = study_task(study, finished->order[i]);
    bool same = false;
    TRY(verify_task(study, &task, arguments->directory, &same));
    print_task(study, &task, same ? "same" : "DIFFERENT", "");
    different += !same;
  }
  if (different == 0 && finished->damaged == 0 && finished->others_damaged == 0) return STATUS_OK;
  return status_set(
      STATUS_DIFFERENT,
      "%s: %d of %d tasks that were run again differ, %d of %d files of tasks and %d of %d other "
      "files cannot be used",
      arguments->directory, different, again, finished->damaged, finished->read, finished->others_damaged,
      finished->others);
}

Status app_verify(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "DIR", "Read every file of the study, run random tasks again and compare every byte.",
      NULL,    NULL,  NULL};
  Arguments arguments = {.tasks = 5};
  Finished finished = {0};
  Study study;
  app_parse(&argp, argc, argv, &arguments);
  TRY(app_study_of_folder(arguments.directory, &study));
  Status status = memory_new((void **)&finished.order, (size_t)study.task_count, sizeof *finished.order);
  if (status == STATUS_OK) status = verify(&study, &arguments, &finished);
  free(finished.order);
  study_destroy(&study);
  return status;
}
