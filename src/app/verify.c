/* thompson verify: read every file that the program has put into the folder, run random tasks again, and
 * compare every byte with what the folder holds. */
#include "app/app.h"
#include "core/arena.h"
#include "io/store.h"
#include "parallel/finished.h"

#include <dirent.h>
#include <math.h>
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
    {"tasks", KEY_TASKS, "N", 0, "number of tasks to run again (default: 5)", 0}, {0}};

static error_t verify_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case KEY_TASKS: arguments->tasks = (int)app_integer(state, "--tasks", text, 1, 1000000000); return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

typedef struct {
  Finished *finished;
  int *order; /* [count], the tasks that can be run again */
  int count;
  int read, damaged; /* tasks that were read, and how many of them cannot be used */
  int others, others_damaged; /* other files: journals, priors, results, prior samples */
} Found;

static void print_task(const Study *study, const Task *task, const char *verdict, const char *reason) {
  printf("task %d (setting %s, policy %s, runs %u to %u): %s%s\n", task->index,
         study->file->setting_labels[task->setting], study->file->policies[task->policy].label,
         task->first_run, task->first_run + (unsigned)task->runs - 1, verdict, reason);
}

/* Reads all tasks. Failed tasks, and tasks of large settings, are not run again. */
static Status verify_read_tasks(Found *found) {
  Finished *finished = found->finished;
  const Study *study = finished->study;
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    const signed char state = finished->state[i];
    bool usable = false;
    if (state == RUN_NOT_RUN) continue;
    TRY(finished_try(finished, &task, &usable));
    if (!usable) print_task(study, &task, "UNUSABLE: ", status_message());
    found->read++, found->damaged += !usable;
    if (usable && state == RUN_OK && !study_task_is_large(study, &task)) found->order[found->count++] = i;
  }
  return STATUS_OK;
}

/* Checks the checksum of a file, if the file exists. */
static Status verify_check_file(const char *directory, const char *name, Found *found) {
  char path[4096];
  SCOPED(StoreFile *, file, store_close);
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (access(path, F_OK) != 0) return STATUS_OK;
  found->others++;
  const Status status = store_open_own(path, &file);
  if (status != STATUS_INPUT) return status;
  found->others_damaged++;
  printf("%s: UNUSABLE: %s\n", name, status_message());
  return STATUS_OK;
}

static int verify_is_prior_file(const struct dirent *entry) {
  const char *ending = strrchr(entry->d_name, '.');
  return entry->d_name[0] != '.' && ending && strcmp(ending, ".nc") == 0;
}

/* Reports journals with bytes that are not part of any record: they may be what is left of missing tasks. */
static void verify_check_journals(Found *found) {
  const Finished *finished = found->finished;
  bool all = !finished->study->runs.adaptive;
  for (int i = 0; i < finished->study->task_count && all; i++) all = finished->state[i] != RUN_NOT_RUN;
  for (int i = 0; i < finished->journals; i++) {
    const FinishedJournal *journal = &finished->journal[i];
    found->others++;
    if (all || (journal->damaged == 0 && journal->rest == 0)) continue;
    found->others_damaged++;
    printf("tasks/%s: UNUSABLE: %d damaged stretches, %lld bytes at its end that are not a record\n",
           journal->name, journal->damaged, (long long)journal->rest);
  }
}

/* Checks results, prior samples, journals, and fitted priors. */
static Status verify_check_files(const char *directory, Found *found) {
  char path[4096], name[300];
  struct dirent **entries = NULL;
  TRY(verify_check_file(directory, "results.nc", found));
  TRY(verify_check_file(directory, "prior_samples.nc", found));
  verify_check_journals(found);
  snprintf(path, sizeof path, "%s/priors", directory);
  const int count = scandir(path, &entries, verify_is_prior_file, alphasort);
  Status status = STATUS_OK;
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "priors/%s", entries[i]->d_name);
    if (status == STATUS_OK) status = verify_check_file(directory, name, found);
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* Shuffles order[count] by the method of Fisher and Yates. */
static void verify_shuffle_tasks(uint64_t seed, int count, int *order) {
  Rng rng = {.key = rng_key(seed, RNG_VERIFY)};
  for (int i = count - 1; i > 0; i--) {
    int j = (int)rng_index(&rng, (uint64_t)i + 1), kept = order[i];
    order[i] = order[j], order[j] = kept;
  }
}

/* Runs a task again and compares it with its record: *same is whether they agree. */
static Status verify_rerun_task(Finished *finished, const Task *task, bool *same) {
  const Study *study = finished->study;
  SCOPED(TaskResult, kept, study_result_destroy);
  SCOPED(TaskResult, again, study_result_destroy);
  size_t size = (size_t)study->curve_count * (size_t)task->runs * (size_t)study->points * sizeof(double);
  TRY(study_result_create(study, task, &kept));
  TRY(study_result_create(study, task, &again));
  TRY(finished_load(finished, task, &kept));
  TRY(study_run_task(study, task, finished->directory, (Tick){NULL, NULL}, &again));
  *same = kept.status == again.status && memcmp(kept.curves, again.curves, size) == 0 &&
          memcmp(kept.fallbacks, again.fallbacks, (size_t)task->runs * sizeof *kept.fallbacks) == 0 &&
          (isnan(kept.watched[0]) || /* not known, or a record of an earlier version */
           memcmp(kept.watched, again.watched, 2 * (size_t)task->runs * sizeof *kept.watched) == 0);
  return STATUS_OK;
}

static Status verify_folder(Arena *memory, const Arguments *arguments, Found *found) {
  const Study *study = found->finished->study;
  const char *directory = arguments->directory;
  int different = 0;
  ALLOCATE(memory, found->order, study->task_count);
  TRY(verify_read_tasks(found));
  TRY(verify_check_files(directory, found));
  if (found->count == 0 && found->damaged == 0 && found->others_damaged == 0)
    return status_set(STATUS_INPUT,
                      "%s: no finished task to verify (those of large settings are not run again)",
                      directory);
  verify_shuffle_tasks(study->seed, found->count, found->order);
  int again = found->count < arguments->tasks ? found->count : arguments->tasks;
  for (int i = 0; i < again; i++) {
    const Task task = study_task(study, found->order[i]);
    bool same = false;
    TRY(verify_rerun_task(found->finished, &task, &same));
    print_task(study, &task, same ? "same" : "DIFFERENT", "");
    different += !same;
  }
  if (different == 0 && found->damaged == 0 && found->others_damaged == 0) return STATUS_OK;
  return status_set(STATUS_DIFFERENT,
                    "%s: %d of %d tasks that were run again differ; %d of %d finished tasks and %d of %d "
                    "other files cannot be used",
                    directory, different, again, found->damaged, found->read, found->others_damaged,
                    found->others);
}

Status app_verify(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = verify_parse,
      .args_doc = "DIR",
      .doc = "Read every file of the study, run random tasks again and compare every byte."};
  Arguments arguments = {.tasks = 5};
  SCRATCH_ARENA(memory);
  SCOPED(Study, study, study_destroy);
  SCOPED(Finished, finished, finished_close);
  Found found = {.finished = &finished};
  app_parse(&argp, argc, argv, &arguments);
  TRY(app_study_of_folder(arguments.directory, &study));
  TRY(finished_open(&memory, arguments.directory, &study, false, &finished));
  return verify_folder(&memory, &arguments, &found);
}
