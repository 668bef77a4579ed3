/* thompson status: what is done, failed and left in a results folder. Works while the job runs, on any
 * machine that sees the folder. */
#include "app/app.h"
#include "core/numeral.h"
#include "io/io_lock.h"
#include "parallel/priors/study_priors.h"
#include "parallel/tasks/adaptive.h"

#include <time.h>
#include <unistd.h>

static struct {
  const char *directory;
  bool json, table, watch;
  double interval; /* seconds */
} arguments = {.interval = 10};

static const AppOption options[] = {
    {"table", 't', NULL,
     "show the table of results so far, with standard errors, instead of the largest error",
     .flag = &arguments.table},
    {"watch", 'w', NULL, "look again and again, until no job writes to the folder", .flag = &arguments.watch},
    {"interval", 0, "SECONDS", "time between two looks of --watch (default: 10)", .real = &arguments.interval,
     .low = 0.1, .high = 1e6},
    {"json", 'j', NULL, "as JSON", .flag = &arguments.json},
    {0}};

static void status_check(struct argp_state *state) {
  if (arguments.json && (arguments.table || arguments.watch))
    argp_error(state, "--json cannot be combined with --table or --watch");
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
  int priors, learned; /* distinct priors that are fitted, and those that are there */
  char job[512]; /* that writes to the folder; empty: none */
  bool job_runs; /* it certainly does */
  double seconds_per_task, seconds_left; /* wall clock, over all ranks; NaN when unknown */
  const char *untimed; /* a policy of which tasks are left and none is done: its speed is unknown; or NULL */
  char target[128]; /* what `moments` are of, in words */
  Adaptive adaptive;
  bool too_many; /* finished tasks to be read */
  Moments *moments; /* [setting_count, policy_count], of the runs that are finished; or, with --table: */
  Leaderboard board;
} Overview;

static int app_status_tasks_left(const Count *count) { return count->tasks - count->done - count->failed; }

/* Returns whether a setting needs no more blocks and all the requested ones are over. */
static bool app_status_has_ended(const Overview *overview, int setting) {
  return overview->adaptive.settings[setting].ended &&
         app_status_tasks_left(&overview->setting[setting]) == 0;
}

/* Finds a policy that has tasks left and none done. Tasks of policies may differ by any factor in their time.
 */
static void app_status_find_untimed(Overview *overview) {
  const Study *study = &overview->study;
  const signed char *state = overview->finished.state;
  for (int p = 0; p < study->file->policy_count && !overview->untimed; p++) {
    bool done = false, left = false;
    for (int s = 0; s < study->file->setting_count; s++)
      for (int k = 0; k < overview->adaptive.settings[s].wanted; k++) {
        const int task = study_task_index(study, s, p, k);
        done = done || state[task] == RUN_OK;
        left = left || state[task] == RUN_NOT_RUN;
      }
    if (left && !done) overview->untimed = study->file->policies[p].label;
  }
}

static Status look_over(const char *directory, Overview *overview) {
  *overview = (Overview){.seconds_per_task = NAN, .seconds_left = NAN};
  const Study *study = &overview->study;
  Finished *finished = &overview->finished;
  TRY(app_study_of_folder(directory, &overview->study));
  const int settings = study->file->setting_count, policies = study->file->policy_count;
  study_target(study, sizeof overview->target, overview->target);
  ALLOCATE(&overview->memory, overview->setting, settings);
  ALLOCATE(&overview->memory, overview->moments, settings * policies);
  TRY(study_priors_count(study, directory, &overview->learned, &overview->priors));
  overview->job_runs = io_lock_holder(directory, sizeof overview->job, overview->job);
  TRY(finished_open(&overview->memory, directory, study, false, finished));
  TRY(adaptive_create(&overview->memory, finished, &overview->adaptive));
  TRY(adaptive_replay(finished->state, &overview->adaptive));
  Count *all = &overview->all;
  for (int s = 0; s < settings; s++) {
    Count *count = &overview->setting[s];
    for (int p = 0; p < policies; p++)
      for (int k = 0; k < overview->adaptive.settings[s].wanted; k++) {
        signed char state = finished->state[study_task_index(study, s, p, k)];
        count->tasks++;
        count->done += state == RUN_OK;
        count->failed += state == RUN_FAILED;
      }
    all->tasks += count->tasks;
    all->done += count->done;
    all->failed += count->failed;
  }
  int done = 0; /* including tasks that nobody requested */
  for (int i = 0; i < study->task_count; i++) done += finished->state[i] == RUN_OK;
  app_status_find_untimed(overview);
  if (done > 1) overview->seconds_per_task = (finished->last - finished->first) / (done - 1);
  if (!overview->untimed) overview->seconds_left = overview->seconds_per_task * app_status_tasks_left(all);
  if (arguments.table) return leaderboard_read(finished, &overview->board);
  overview->too_many = all->done > MOST_READ;
  for (int s = 0; s < settings && !overview->too_many; s++)
    TRY(adaptive_present(&overview->adaptive, s, overview->moments + s * policies));
  return STATUS_OK;
}

static void overview_destroy(Overview *overview) {
  leaderboard_destroy(&overview->board);
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
    json_object_set_new(se, file->policies[p].label, app_json_number(moments_se(moments)));
    json_object_set_new(runs, file->policies[p].label,
                        overview->too_many ? json_null() : json_integer((json_int_t)moments.n));
  }
  const Count *count = &overview->setting[setting];
  return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:b, s:o, s:o}", "setting", file->setting_labels[setting],
                   "tasks", count->tasks, "done", count->done, "failed", count->failed, "left",
                   app_status_tasks_left(count), "runs_asked",
                   (json_int_t)study_runs_in_blocks(&overview->study.runs, at->wanted), "ended",
                   app_status_has_ended(overview, setting), "runs", runs, "se", se);
}

static Status status_print_json(const Overview *overview) {
  const Count *all = &overview->all;
  const Runs *runs = &overview->study.runs;
  json_t *settings = json_array();
  for (int s = 0; s < overview->study.file->setting_count; s++)
    json_array_append_new(settings, setting_json(overview, s));
  json_t *job = *overview->job ? json_string(overview->job) : json_null();
  json_t *object = json_pack(
      "{s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:s, s:o, s:o}", "job", job, "priors", overview->priors,
      "priors_learned", overview->learned, "tasks", all->tasks, "done", all->done, "failed", all->failed,
      "left", app_status_tasks_left(all), "seconds_per_task", app_json_number(overview->seconds_per_task),
      "seconds_left", app_json_number(overview->seconds_left), "se_of", overview->target, "target_se",
      runs->adaptive ? json_real(runs->target) : json_null(), "settings", settings);
  return app_print_json(object, 6);
}

/* Prints how many parts with spread matrices are done, and by which groups of ranks. */
static void print_groups(const Overview *overview) {
  const Study *study = &overview->study;
  char groups[128];
  const int parts = app_groups(study, sizeof groups, groups);
  int done = 0;
  if (parts == 0) return;
  for (int s = 0; s < study->file->setting_count; s++) {
    if (study->spread_bytes[s] == 0) continue;
    for (int k = 0; k < study->runs.blocks; k++) {
      bool whole = true;
      for (int p = 0; p < study->file->policy_count; p++)
        whole = whole && overview->finished.state[study_task_index(study, s, p, k)] == RUN_OK;
      done += whole;
    }
  }
  printf("%d of %d parts with spread matrices are done, by %s\n", done, parts, groups);
}

/* Prints one line for each setting: runs, and the policy with the largest standard error. */
static void print_settings(const Overview *overview) {
  const Study *study = &overview->study;
  const int policies = study->file->policy_count;
  if (overview->too_many) {
    printf("more than %d finished tasks: `thompson reduce` prints standard errors\n", MOST_READ);
    return;
  }
  printf("largest standard error of %s at the last point", overview->target);
  if (study->runs.adaptive) printf(" (target %g)", study->runs.target);
  printf(":\n");
  for (int s = 0; s < study->file->setting_count; s++) {
    const Moments *moments = overview->moments + s * policies;
    const AdaptiveSetting *at = &overview->adaptive.settings[s];
    int worst = -1; /* none has a standard error yet */
    for (int p = study->target_paired ? 1 : 0; p < policies; p++)
      if (moments[p].n > 1 && (worst < 0 || moments_se(moments[p]) > moments_se(moments[worst]))) worst = p;
    printf("  %s: ", study->file->setting_labels[s]);
    if (worst < 0)
      printf(overview->setting[s].done + overview->setting[s].failed > 0 ? "none yet" : "not started");
    else
      printf("%.3g (%s, %s)", moments_se(moments[worst]), study->file->policies[worst].label,
             numeral_count(moments[worst].n, "run").text);
    if (study->runs.adaptive)
      printf(app_status_has_ended(overview, s) ? "; ended with %s" : "; %s requested",
             numeral_count(study_runs_in_blocks(&study->runs, at->wanted), "run").text);
    printf("\n");
  }
}

static void status_print(const Overview *overview) {
  const Count *all = &overview->all;
  /* Scripts read these lines, so that they have one form for all numbers. */
  printf("%d tasks: %d done, %d failed, %d left\n", all->tasks, all->done, all->failed,
         app_status_tasks_left(all));
  if (*overview->job)
    printf("%s: %s\n", overview->job_runs ? "running" : "running, or ended without a trace", overview->job);
  if (overview->learned < overview->priors)
    printf("%d priors: %d learned, %d left\n", overview->priors, overview->learned,
           overview->priors - overview->learned);
  if (!isnan(overview->seconds_left))
    printf("%.3g seconds per task, about %.0f seconds left at that speed\n", overview->seconds_per_task,
           overview->seconds_left);
  else if (overview->untimed && all->done > 0)
    printf("time left unknown: no task of '%s' is done\n", overview->untimed);
  print_groups(overview);
  if (arguments.table)
    app_print_table(&overview->study, &overview->board);
  else
    print_settings(overview);
}

/* Looks once; *job_writes is whether a job writes to the folder. A new look replaces the last one on a
 * terminal, and follows it, after an empty line, elsewhere. */
static Status status_look(bool again, bool *job_writes) {
  SCOPED(Overview, overview, overview_destroy);
  TRY(look_over(arguments.directory, &overview));
  *job_writes = *overview.job;
  if (arguments.json) return status_print_json(&overview);
  if (arguments.watch && isatty(STDOUT_FILENO))
    printf("\033[H\033[2J"); /* goes to the upper left corner, and clears the screen */
  else if (again)
    putchar('\n');
  status_print(&overview);
  return STATUS_OK;
}

static Status status_of_folder(void) {
  const struct timespec interval = {.tv_sec = (time_t)arguments.interval,
                                    .tv_nsec = (long)(1e9 * fmod(arguments.interval, 1))};
  bool job_writes;
  TRY(status_look(false, &job_writes));
  while (arguments.watch && job_writes) {
    nanosleep(&interval, NULL);
    TRY(status_look(true, &job_writes));
  }
  return STATUS_OK;
}

const AppVerb app_status = {
    .options = options,
    .argument = &arguments.directory,
    .what = "results folder",
    .check = status_check,
    .usage = "DIR",
    .help =
        "Show what is done, failed and left in a results folder, which job writes to it, how many priors are "
        "learned, and how large standard errors are now, or with --table the results so far. Reads finished "
        "tasks only, and disturbs no job. "
        "With an adaptive number of runs, `left` counts only the current wave.",
    .run = status_of_folder};
