/* thompson rerun: run finished tasks of a study again. Their old records stay, and count until the new ones
 * are there. */
#include "app/app_job.h"
#include "core/numeral.h"
#include "study/study_names.h"

static struct {
  const char *directory, *setting, *policy;
  bool failed, dry_run;
} arguments;

static const AppOption options[] = {
    {"failed", 0, NULL, "only tasks that failed", .flag = &arguments.failed},
    {"setting", 0, "LABEL", "only tasks of this setting, such as problem.noise=1",
     .text = &arguments.setting},
    {"policy", 0, "LABEL", "only tasks of this policy", .text = &arguments.policy},
    {"dry-run", 0, NULL, "only list the tasks, with the messages of those that failed",
     .flag = &arguments.dry_run},
    APP_JOB_OPTIONS,
    {0}};

/* ---- which tasks */

static const StudyFile *labels; /* of the study in the folder */

static const char *rerun_setting_label(int index) {
  return index < labels->setting_count ? labels->setting_labels[index] : NULL;
}

static const char *rerun_policy_label(int index) {
  return index < labels->policy_count ? labels->policies[index].label : NULL;
}

/* Finds the number of a label; -1 if none was given, which stands for all. */
static Status rerun_find_label(const char *label, const char *what, const char *(*word)(int index),
                               int *out) {
  *out = -1;
  if (!label) return STATUS_OK;
  for (int i = 0; word(i); i++)
    if (strcmp(label, word(i)) == 0) *out = i;
  return *out >= 0 ? STATUS_OK : config_unknown_name(STATUS_USAGE, label, what, word);
}

/* Chooses the tasks to be run: chosen[task_count], one of those that have the same name. Their number is
 * *count. */
static Status rerun_choose(const Finished *finished, bool *chosen, int *count) {
  const Study *study = finished->study;
  int setting, policy;
  labels = study->file;
  TRY(rerun_find_label(arguments.setting, "a setting of this study", rerun_setting_label, &setting));
  TRY(rerun_find_label(arguments.policy, "a policy of this study", rerun_policy_label, &policy));
  *count = 0;
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    const bool ended =
        arguments.failed ? finished->state[i] == RUN_FAILED : finished->state[i] != RUN_NOT_RUN;
    bool is_there = false;
    if (!ended || (setting >= 0 && task.setting != setting) || (policy >= 0 && task.policy != policy))
      continue;
    const TaskName name = study_task_name(study, i);
    const TasksAlike alike = study_find_tasks(study, &name);
    for (int k = 0; k < alike.count; k++) is_there |= chosen[study_task_alike(study, &alike, k)];
    chosen[i] = !is_there;
    *count += chosen[i];
  }
  return STATUS_OK;
}

/* Lists the tasks, and what is known of each. */
static Status rerun_list(Finished *finished, const bool *chosen, int count) {
  const Study *study = finished->study;
  for (int i = 0; i < study->task_count; i++) {
    if (!chosen[i]) continue;
    const Task task = study_task(study, i);
    SCOPED(TaskResult, result, study_result_destroy);
    TRY(study_result_create(study, &task, &result));
    const Status status = finished_load(finished, &task, &result);
    if (status == STATUS_INPUT)
      app_print_task(study, &task, "unreadable: ", status_message());
    else if (status != STATUS_OK)
      return status;
    else
      app_print_task(study, &task, result.status == RUN_FAILED ? "failed: " : "done", result.message);
  }
  printf("%s would run again\n", numeral_count(count, "task").text);
  return STATUS_OK;
}

/* ---- the verb */

/* Forgets, for this job, what is known of the chosen tasks, so that nothing is copied from them. */
static void rerun_forget(Finished *finished, const bool *chosen) {
  const Study *study = finished->study;
  for (int i = 0; i < study->task_count; i++) {
    if (!chosen[i]) continue;
    const TaskName name = study_task_name(study, i);
    const TasksAlike alike = study_find_tasks(study, &name);
    for (int k = 0; k < alike.count; k++) finished->state[study_task_alike(study, &alike, k)] = RUN_NOT_RUN;
  }
}

/* Returns the exit status of what was done. */
static Status rerun_judge(const TasksOutcome *outcome, const ReduceCounts *counts) {
  if (counts->damaged > 0)
    return status_set(STATUS_TASKS_FAILED,
                      "%s in %s can no longer be read; `thompson run --resume` runs %s again",
                      numeral_count(counts->damaged, "finished task").text, arguments.directory,
                      counts->damaged == 1 ? "it" : "them");
  if (outcome->failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%s failed; what %s had before is kept",
                      numeral_count(outcome->failed, "task").text, outcome->failed == 1 ? "it" : "they");
  return STATUS_OK;
}

/* Runs the tasks of a folder that is open for this job, and writes its results. */
static Status rerun_run(const Study *study) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close);
  TasksOutcome outcome = {0};
  ReduceCounts counts = {0};
  bool *chosen;
  int count;
  ALLOCATE_ON_RANKS(&scratch, chosen, study->task_count);
  TRY(finished_open_all(&scratch, arguments.directory, study, &finished));
  TRY(parallel_agree(rerun_choose(&finished, chosen, &count)));
  rerun_forget(&finished, chosen);
  app_job.only = chosen;
  TRY(app_job_run(&finished, &outcome));
  if (outcome.left > 0)
    return status_set(
        STATUS_STOPPED,
        "stopped early: %lld of %d tasks in %s were not run again, and have what they had before",
        (long long)outcome.left, count, arguments.directory);
  TRY(app_job_write_results(study, arguments.directory, &counts));
  return parallel_agree(parallel_rank() == 0 ? rerun_judge(&outcome, &counts) : STATUS_OK);
}

/* Says what would run; *count is 0 if there is nothing to do. */
static Status rerun_look(const Study *study, int *count) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close);
  bool *chosen;
  ALLOCATE(&scratch, chosen, study->task_count);
  TRY(finished_open(&scratch, arguments.directory, study, false, &finished));
  TRY(rerun_choose(&finished, chosen, count));
  if (arguments.dry_run) return rerun_list(&finished, chosen, *count);
  if (*count == 0) printf("no such task has ended in %s\n", arguments.directory);
  return STATUS_OK;
}

static Status rerun_folder(void) {
  SCOPED(Study, study, study_destroy);
  int count = 0;
  TRY(parallel_agree(app_study_of_folder(arguments.directory, &study)));
  TRY(parallel_agree(parallel_rank() == 0 ? rerun_look(&study, &count) : STATUS_OK));
  parallel_broadcast(&count, sizeof count);
  if (arguments.dry_run || count == 0) return STATUS_OK;
  TRY(app_job_open(&study, arguments.directory, FOLDER_RESUME));
  return rerun_run(&study);
}

static Status rerun_begin(void) { return app_job_begin(rerun_folder); }

const AppVerb app_rerun = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .usage = "DIR",
    .help = "Run finished tasks of a study again, alone or under mpiexec or srun: all of them, or those that "
            "the options select. Old results of a task stay until it has succeeded again.",
    .run = rerun_begin};
