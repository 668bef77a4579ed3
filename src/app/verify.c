/* thompson verify: read every file that the program has put into the folder, run random tasks again, and
 * compare every byte with what the folder holds. */
#include "app/app.h"
#include "io/store.h"
#include "parallel/tasks/finished.h"

#include <dirent.h>
#include <unistd.h>

static struct {
  const char *directory;
  int tasks;
} arguments = {.tasks = 5};

static const AppOption options[] = {
    {"tasks", 0, "N", "number of tasks to run again (default: 5)", .count = &arguments.tasks, .high = 1e9},
    {0}};

typedef struct {
  Finished *finished;
  int *order; /* [count], the tasks that can be run again */
  int count;
  int read, damaged; /* tasks that were read, and how many of them cannot be used */
  int others, others_damaged; /* other files: journals, priors, results, prior samples */
} Found;

/* Checks the checksum of a file, if the file exists. */
static Status verify_check_file(const char *name, Found *found) {
  char path[4096];
  SCOPED(StoreFile *, file, store_close);
  snprintf(path, sizeof path, "%s/%s", arguments.directory, name);
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

/* Checks results, prior samples, journals, and fitted priors. */
static Status verify_check_files(Found *found) {
  char path[4096], name[300];
  const Finished *finished = found->finished;
  struct dirent **entries = NULL;
  TRY(verify_check_file("results.nc", found));
  TRY(verify_check_file("prior_samples.nc", found));
  /* Bytes of journals that are not part of any record may be what is left of missing tasks. */
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
  snprintf(path, sizeof path, "%s/priors", arguments.directory);
  const int count = scandir(path, &entries, verify_is_prior_file, alphasort);
  Status status = STATUS_OK;
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "priors/%s", entries[i]->d_name);
    if (status == STATUS_OK) status = verify_check_file(name, found);
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* Returns whether all columns agree that the record has and that repeat, in the runs where it has numbers. */
static bool verify_columns_are_same(const TaskResult *kept, const TaskResult *again) {
  for (int c = 0; c < kept->recorded; c++) {
    const char *before = columns_values(&kept->columns, c), *now = columns_values(&again->columns, c);
    const ColumnKind *kind = &column_kinds[c];
    if (!kind->repeats) continue;
    for (int b = 0; b < kept->runs; b++, before += COLUMN_BYTES, now += COLUMN_BYTES) {
      const bool known = kind->counts || !isnan(*(const double *)before);
      if (known && memcmp(before, now, COLUMN_BYTES) != 0) return false;
    }
  }
  return true;
}

/* Runs a task again and compares it with its record: *same is whether they agree. */
static Status verify_rerun_task(Finished *finished, const Task *task, bool *same) {
  const Study *study = finished->study;
  SCOPED(TaskResult, kept, study_result_destroy);
  SCOPED(TaskResult, again, study_result_destroy);
  SCOPED(TaskPriors, priors, study_task_priors_free);
  priors.directory = finished->directory;
  TRY(study_result_create(study, task, &kept));
  TRY(study_result_create(study, task, &again));
  TRY(finished_load(finished, task, &kept));
  TRY(study_run_task(study, task, &priors, (Tick){NULL, NULL}, &again));
  *same = kept.status == again.status &&
          memcmp(kept.curves, again.curves, kept.size * sizeof *kept.curves) == 0 &&
          verify_columns_are_same(&kept, &again);
  return STATUS_OK;
}

static Status verify_folder(void) {
  SCRATCH_ARENA(memory);
  SCOPED(Study, study, study_destroy);
  SCOPED(Finished, finished, finished_close);
  Found found = {.finished = &finished};
  const char *directory = arguments.directory;
  TRY(app_study_of_folder(directory, &study));
  TRY(finished_open(&memory, directory, &study, false, &finished));
  ALLOCATE(&memory, found.order, study.task_count);
  for (int i = 0; i < study.task_count; i++) {
    const Task task = study_task(&study, i);
    bool usable = false;
    if (finished.state[i] == RUN_NOT_RUN) continue;
    TRY(finished_try(&finished, &task, &usable));
    if (!usable) app_print_task(&study, &task, "UNUSABLE: ", status_message());
    found.read++;
    found.damaged += !usable;
    /* Failed tasks, and tasks of settings spread over ranks, are not run again. */
    if (usable && finished.state[i] == RUN_OK && !study_task_is_distributed(&study, &task))
      found.order[found.count++] = i;
  }
  TRY(verify_check_files(&found));
  if (found.count == 0 && found.damaged == 0 && found.others_damaged == 0)
    return status_set(
        STATUS_INPUT,
        "%s: no finished task to verify (those of settings spread over ranks are not run again)", directory);
  Rng rng = {.key = rng_key(study.seed, RNG_VERIFY)};
  for (int i = found.count - 1; i > 0; i--) { /* shuffles by the method of Fisher and Yates */
    int j = (int)rng_index(&rng, (uint64_t)i + 1), kept = found.order[i];
    found.order[i] = found.order[j], found.order[j] = kept;
  }
  int different = 0, again = found.count < arguments.tasks ? found.count : arguments.tasks;
  for (int i = 0; i < again; i++) {
    const Task task = study_task(&study, found.order[i]);
    bool same = false;
    TRY(verify_rerun_task(&finished, &task, &same));
    app_print_task(&study, &task, same ? "same" : "DIFFERENT", "");
    different += !same;
  }
  if (different == 0 && found.damaged == 0 && found.others_damaged == 0) return STATUS_OK;
  return status_set(STATUS_DIFFERENT,
                    "%s: %d of %d tasks that were run again differ; %d of %d finished tasks and %d of %d "
                    "other files cannot be used",
                    directory, different, again, found.damaged, found.read, found.others_damaged,
                    found.others);
}

const AppVerb app_verify = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .usage = "DIR",
    .help = "Read every file of the study, run random tasks again and compare every byte.",
    .run = verify_folder};
