/* A job that runs tasks in the folder of a study, for `run` and `rerun`. It ends before its work is done at
 * SIGTERM, SIGUSR1 or SIGUSR2, shortly before the end of its Slurm job, or at a time limit. */
#pragma once

#include "app/app.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/tasks.h"

/* What the command line says of the job. */
extern TasksOptions app_job;

/* The options of both verbs, which set it. */
#define APP_JOB_OPTIONS                                                                                      \
  {"time-limit", 0, "SECONDS",                                                                               \
   "stop after this time and start nothing that would not finish in it; exit status 75",                     \
   .take = app_job_take_time_limit},                                                                         \
      {"task-timeout",                                                                                       \
       0,                                                                                                    \
       "SECONDS",                                                                                            \
       "run every task in its own process; a task that takes longer than this, or crashes, has failed",      \
       .real = &app_job.task_timeout,                                                                        \
       .low = 1e-3,                                                                                          \
       .high = 1e9},                                                                                         \
  {                                                                                                          \
    "progress", 0, "MODE", "auto, plain or none", .take = app_job_take_progress                              \
  }
void app_job_take_time_limit(struct argp_state *state, const char *text);
void app_job_take_progress(struct argp_state *state, const char *text);

/* Starts MPI, does the work, frees the folder, and ends MPI. From its beginning on signals request a
 * shutdown, and writing beyond the limit on file sizes is an error instead of a fatal signal. */
Status app_job_begin(Status (*work)(void));

/* Checks that everything outside of this program that the policies need is available, locks the folder for
 * the study, and fits the priors that the folder lacks. Collective. */
Status app_job_open(const Study *study, const char *directory, FolderMode mode);
/* Runs the tasks that app_job asks for, as tasks_run does. Collective. */
Status app_job_run(Finished *finished, TasksOutcome *outcome);
/* Writes the results file, prints the table, and says what to run next. `counts` is valid on rank 0.
 * Collective. */
Status app_job_write_results(const Study *study, const char *directory, ReduceCounts *counts);
