#include "app/app_job.h"

#include "core/clock.h"
#include "io/io_shell.h"
#include "parallel/priors/study_priors.h"
#include "parallel/results/reduce.h"

#include <signal.h>
#include <time.h>

/* ---- the end of a job */

static const double MARGIN = 15; /* seconds before the scheduler ends the job: to write results and to exit */

static volatile sig_atomic_t signalled;
static double deadline = INFINITY; /* by clock_wall */
static Lock *lock; /* of the folder, on rank 0 */

static void job_on_signal(int number) { signalled = number; }

/* Sets a deadline: the work should be over `seconds` from now. The earliest of several deadlines counts. */
static void job_set_deadline(double seconds) { deadline = fmin(deadline, clock_wall() + seconds); }

/* Returns the seconds until the deadline; INFINITY without one. */
static double job_time_left(void) { return deadline - clock_wall(); }

/* Returns whether the work should end, so that no new task is begun. */
static bool job_shutdown_is_asked(void) { return signalled != 0 || job_time_left() <= 0; }

static bool job_stop_is_asked(void) { return job_shutdown_is_asked() || io_lock_lost(lock); }

/* ---- the command line */

TasksOptions app_job = {
    .max_failures = INT64_MAX, .shards = 1, .stop = job_stop_is_asked, .time_left = job_time_left};

void app_job_take_time_limit(struct argp_state *state, const char *text) {
  job_set_deadline(app_real(state, "--time-limit", text, 1e-3, 1e9));
}

void app_job_take_progress(struct argp_state *state, const char *text) {
  static const char *const words[] = {"auto", "plain", "none"};
  int mode = 0;
  while (mode < 3 && strcmp(text, words[mode]) != 0) mode++;
  if (mode == 3) argp_error(state, "--progress: unknown value '%s'; allowed: auto, plain, none", text);
  app_job.progress = (ProgressMode)mode;
}

/* ---- the work */

Status app_job_begin(Status (*work)(void)) {
  struct sigaction action = {.sa_handler = job_on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  signal(SIGXFSZ, SIG_IGN);
  const char *end = getenv("SLURM_JOB_END_TIME");
  double left = end ? strtod(end, NULL) - (double)time(NULL) : 0;
  if (left > 0) /* if it is in the past, the job was given more time */
    job_set_deadline(fmax(left - MARGIN, 0));
  app_begin_parallel();
  const Status status = work();
  io_lock_release(lock);
  return app_end_parallel(status);
}

/* Returns whether to keep waiting while the program checks that the user's own code is there. */
static bool job_goes_on(void *context, double fraction) {
  (void)context, (void)fraction;
  return !job_shutdown_is_asked();
}

/* Checks that everything outside of this program that the policies need is available. */
static Status job_check_policies(const Study *study) {
  for (int p = 0; p < study->file->policy_count; p++) {
    const PolicyMethod method = policy_named(study->file->policies[p].name);
    TRY(policy_ready(&method, study->file->policies[p].options, (Tick){job_goes_on, NULL}));
  }
  const Tick before = core_tick_exchange((Tick){job_goes_on, NULL});
  const Status status = study_ready(study);
  core_tick_exchange(before);
  return status;
}

Status app_job_open(const Study *study, const char *directory, FolderMode mode) {
  const bool first = parallel_rank() == 0;
  const int shard = app_job.shards > 1 ? app_job.shard : -1;
  TRY(parallel_agree(first ? job_check_policies(study) : STATUS_OK));
  TRY(parallel_agree(first ? folder_open(directory, study, mode, shard, &lock) : STATUS_OK));
  return study_priors_fit(study, directory, app_job.progress, job_stop_is_asked);
}

Status app_job_run(Finished *finished, TasksOutcome *outcome) {
  TRY(tasks_run(finished, &app_job, outcome));
  if (!io_lock_lost(lock)) return parallel_agree(STATUS_OK);
  return parallel_agree(status_set(STATUS_FILE,
                                   "%s: another job took over this folder while this job was "
                                   "frozen, or the folder is gone",
                                   finished->directory));
}

/* Returns the script that draws a study, in analysis/figures unless it names a folder: the study's own, or
 * that of its kind, which has a panel for each setting and curves in it, if that suits: settings of a zip or
 * a design are points, not a grid of panels. */
static const char *job_figure(const Study *study) {
  enum { MOST_PANELS = 8 };
  const char *given = config_text(study->file->settings[0], "figure");
  const int settings = study->file->setting_count;
  if (given) return given;
  if (study->points > 1 && settings <= MOST_PANELS && study->file->grid) return study->ops->figure;
  return settings > 1 ? "ablation.py" : "tools/table.py";
}

Status app_job_write_results(const Study *study, const char *directory, ReduceCounts *counts) {
  SCOPED(Leaderboard, board, leaderboard_destroy);
  TRY(reduce_study(study, directory, false, counts, &board));
  if (parallel_rank() != 0) return STATUS_OK;
  app_print_table(study, &board);
  const char *figure = job_figure(study);
  printf("\nresults: %s/results.nc\nfigure:  analysis/%s%s ", directory,
         strchr(figure, '/') ? "" : "figures/", figure);
  io_shell_print(stdout, directory);
  if (study->published > 0) { /* it has curves */
    printf("\nreport:  analysis/tools/report.py ");
    io_shell_print(stdout, directory);
  }
  putchar('\n');
  return STATUS_OK;
}
