/* thompson status: what is done, failed and left in a results folder. Works while the job runs, on any
 * machine that sees the folder. */
#include "app/app.h"
#include "core/arena.h"
#include "parallel/parallel_adaptive.h"

#include <math.h>
#include <stdio.h>

typedef struct {
  const char *directory;
  bool json;
} Arguments;

static const struct argp_option options[] = {{"json", 'j', NULL, 0, "as JSON", 0}, {0}};

static error_t status_parse(int key, char *text, struct argp_state *state) {
  Arguments *arguments = state->input;
  switch (key) {
  case 'j': arguments->json = true; return 0;
  case ARGP_KEY_ARG: app_take(state, &arguments->directory, text, "results folder"); return 0;
  case ARGP_KEY_END: app_need(state, arguments->directory, "results folder"); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

enum { MOST_READ = 20000 }; /* most finished tasks that are read for standard errors: a minute or less */

/* Counts of tasks in the blocks that were requested. */
typedef struct {
  int tasks, done, failed;
} Count;

typedef struct {
  Arena memory;
  Study study;
  Finished finished;
  Count all, *setting; /* [setting_count] */
  double seconds_per_task, seconds_left; /* wall clock, over all ranks; NaN when unknown */
  Adaptive adaptive;
  Moments *moments; /* [setting_count, policy_count], of the runs that are finished */
} Overview;

static int app_status_tasks_left(const Count *count) { return count->tasks - count->done - count->failed; }

/* Returns whether a setting needs no more blocks and all the requested ones are over. */
static bool app_status_has_ended(const Overview *overview, int setting) {
  return overview->adaptive.settings[setting].ended &&
         app_status_tasks_left(&overview->setting[setting]) == 0;
}

/* Computes the speed from the times at which tasks were finished. */
static void measure_speed(Overview *overview) {
  const Finished *finished = &overview->finished;
  int done = 0;
  for (int i = 0; i < overview->study.task_count; i++) done += finished->state[i] == RUN_OK;
  if (done < 2) return;
  overview->seconds_per_task = (finished->last - finished->first) / (done - 1);
  overview->seconds_left = overview->seconds_per_task * app_status_tasks_left(&overview->all);
}

static void app_status_count_tasks(Overview *overview) {
  const Study *study = &overview->study;
  for (int s = 0; s < study->file->setting_count; s++) {
    Count *count = &overview->setting[s], *all = &overview->all;
    for (int p = 0; p < study->file->policy_count; p++)
      for (int k = 0; k < overview->adaptive.settings[s].wanted; k++) {
        signed char state = overview->finished.state[study_task_index(study, s, p, k)];
        count->tasks++;
        count->done += state == RUN_OK;
        count->failed += state == RUN_FAILED;
      }
    all->tasks += count->tasks, all->done += count->done, all->failed += count->failed;
  }
}

static bool app_status_too_many_tasks(const Overview *overview) { return overview->all.done > MOST_READ; }

static Status look_over(const char *directory, Overview *overview) {
  *overview = (Overview){.seconds_per_task = NAN, .seconds_left = NAN};
  const Study *study = &overview->study;
  TRY(app_study_of_folder(directory, &overview->study));
  int policies = study->file->policy_count;
  ALLOCATE(&overview->memory, overview->setting, study->file->setting_count);
  ALLOCATE(&overview->memory, overview->moments, study->file->setting_count * policies);
  TRY(finished_open(&overview->memory, directory, study, false, &overview->finished));
  TRY(parallel_adaptive_create(&overview->memory, &overview->finished, &overview->adaptive));
  TRY(parallel_adaptive_replay(overview->finished.state, &overview->adaptive));
  app_status_count_tasks(overview);
  measure_speed(overview);
  for (int s = 0; s < study->file->setting_count && !app_status_too_many_tasks(overview); s++)
    TRY(parallel_adaptive_present(&overview->adaptive, s, overview->moments + s * policies));
  return STATUS_OK;
}

static void overview_destroy(Overview *overview) {
  finished_close(&overview->finished);
  study_destroy(&overview->study);
  arena_free(&overview->memory);
}

/* Lists the tasks of a setting, the runs that were requested, and the runs and standard error of each policy,
 * which are null if there are too many tasks to read. */
static json_t *setting_json(const Overview *overview, int setting) {
  const StudyFile *file = overview->study.file;
  const AdaptiveSetting *at = &overview->adaptive.settings[setting];
  json_t *se = json_object(), *runs = json_object();
  for (int p = 0; p < file->policy_count; p++) {
    Moments moments = overview->moments[setting * file->policy_count + p];
    json_object_set_new(se, file->policies[p].label, app_json_number(parallel_adaptive_moments_se(moments)));
    json_object_set_new(runs, file->policies[p].label,
                        app_status_too_many_tasks(overview) ? json_null()
                                                            : json_integer((json_int_t)moments.n));
  }
  const Count *count = &overview->setting[setting];
  return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:b, s:o, s:o}", "setting", file->setting_labels[setting],
                   "tasks", count->tasks, "done", count->done, "failed", count->failed, "left",
                   app_status_tasks_left(count), "runs_asked",
                   (json_int_t)study_runs_in_blocks(&overview->study.runs, at->wanted), "ended",
                   app_status_has_ended(overview, setting), "runs", runs, "se", se);
}

static Status status_print_json(const Overview *overview) {
  char target[128];
  const Count *all = &overview->all;
  json_t *object = json_pack("{s:i, s:i, s:i, s:i}", "tasks", all->tasks, "done", all->done, "failed",
                             all->failed, "left", app_status_tasks_left(all)),
         *settings = json_array();
  if (!object || !settings) return status_set(STATUS_INTERNAL, "out of memory");
  json_object_set_new(object, "seconds_per_task", app_json_number(overview->seconds_per_task));
  json_object_set_new(object, "seconds_left", app_json_number(overview->seconds_left));
  study_target(&overview->study, sizeof target, target);
  json_object_set_new(object, "se_of", json_string(target));
  json_object_set_new(object, "target_se",
                      overview->study.runs.adaptive ? json_real(overview->study.runs.target) : json_null());
  for (int s = 0; s < overview->study.file->setting_count; s++)
    json_array_append_new(settings, setting_json(overview, s));
  json_object_set_new(object, "settings", settings);
  app_print_json(object, 6);
  return STATUS_OK;
}

/* Returns the policy with the largest standard error in a setting, or -1 if none has one yet. */
static int app_status_worst_policy(const Overview *overview, const Moments *moments) {
  int worst = -1;
  for (int p = overview->study.target_paired ? 1 : 0; p < overview->study.file->policy_count; p++)
    if (moments[p].n > 1 && (worst < 0 || parallel_adaptive_moments_se(moments[p]) >
                                              parallel_adaptive_moments_se(moments[worst])))
      worst = p;
  return worst;
}

/* Prints one line for each setting: runs and the largest standard error. */
static void print_settings(const Overview *overview) {
  const Study *study = &overview->study;
  char target[128];
  study_target(study, sizeof target, target);
  if (app_status_too_many_tasks(overview)) {
    printf("more than %d finished tasks: `thompson reduce` prints standard errors\n", MOST_READ);
    return;
  }
  printf("largest standard error of %s at the last point", target);
  if (study->runs.adaptive) printf(" (target %g)", study->runs.target);
  printf(":\n");
  for (int s = 0; s < study->file->setting_count; s++) {
    const Moments *moments = overview->moments + s * study->file->policy_count;
    const AdaptiveSetting *at = &overview->adaptive.settings[s];
    int worst = app_status_worst_policy(overview, moments);
    printf("  %s: ", study->file->setting_labels[s]);
    if (worst < 0)
      printf(overview->setting[s].done + overview->setting[s].failed > 0 ? "none yet" : "not started");
    else
      printf("%.3g (%s, %lld runs)", parallel_adaptive_moments_se(moments[worst]),
             study->file->policies[worst].label, (long long)moments[worst].n);
    if (study->runs.adaptive)
      printf(app_status_has_ended(overview, s) ? "; ended with %lld runs" : "; %lld runs requested",
             (long long)study_runs_in_blocks(&study->runs, at->wanted));
    printf("\n");
  }
}

static void status_print_text(const Overview *overview) {
  const Count *all = &overview->all;
  printf("%d tasks: %d done, %d failed, %d left\n", all->tasks, all->done, all->failed,
         app_status_tasks_left(all));
  if (!isnan(overview->seconds_per_task))
    printf("%.3g seconds per task, about %.0f seconds left at that speed\n", overview->seconds_per_task,
           overview->seconds_left);
  print_settings(overview);
}

Status app_status(int argc, char **argv) {
  static const struct argp argp = {
      .options = options,
      .parser = status_parse,
      .args_doc = "DIR",
      .doc = "Show what is done, failed and left in a results folder, and how large standard errors are now. "
             "With an adaptive number of runs, `left` counts only the current wave."};
  Arguments arguments = {0};
  SCOPED(Overview, overview, overview_destroy);
  app_parse(&argp, argc, argv, &arguments);
  TRY(look_over(arguments.directory, &overview));
  if (arguments.json) return status_print_json(&overview);
  status_print_text(&overview);
  return STATUS_OK;
}
