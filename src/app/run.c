/* thompson run: prepare priors, run tasks, reduce. Works alone and under mpiexec or srun. */
#include "app/app_job.h"
#include "core/numeral.h"
#include "parallel/tasks/adaptive.h"
#include "study/study_names.h"

#include <unistd.h>

/* ---- the command line */

static struct {
  const char *study, *directory;
  AppTexts sets;
  bool resume, overwrite, dry_run;
} arguments;

/* Takes --max-failures, or --fail-fast, which has no value. */
static void take_max_failures(struct argp_state *state, const char *text) {
  app_job.max_failures = text ? app_integer(state, "--max-failures", text, 0, 1LL << 53) : 0;
}

static void take_shard(struct argp_state *state, const char *text) {
  char extra;
  /* Nine digits cannot overflow. */
  if (sscanf(text, "%9d/%9d%c", &app_job.shard, &app_job.shards, &extra) != 2 || app_job.shards < 1 ||
      app_job.shard < 0 || app_job.shard >= app_job.shards)
    argp_error(state, "--shard: '%s' is not I/N with 0 <= I < N", text);
}

static const AppOption options[] = {
    {"output", 'o', "DIR", "results folder (default: results/NAME)", .output = &arguments.directory},
    {"set", 0, "KEY=VALUE", "change a key of the study; a list makes a sweep", .texts = &arguments.sets},
    {"seed", 0, "N", "the study's seed", .seed_of = &arguments.sets},
    {"resume", 0, NULL,
     "continue with what the folder holds; if the study was edited, finished tasks that it still has are "
     "used",
     .flag = &arguments.resume},
    {"dry-run", 0, NULL, "only say how many tasks are finished and how many would run",
     .flag = &arguments.dry_run},
    {"overwrite", 0, NULL, "replace what the folder holds", .flag = &arguments.overwrite},
    {"fail-fast", 0, NULL, "the same as --max-failures 0", .take = take_max_failures},
    {"max-failures", 0, "N", "start no task once more than N have failed; running tasks get 7 more seconds",
     .take = take_max_failures},
    {"shard", 0, "I/N", "run only part I (from 0) of N; `thompson reduce DIR` combines the parts",
     .take = take_shard},
    APP_JOB_OPTIONS,
    {0}};

static void run_check(struct argp_state *state) {
  if (arguments.resume && arguments.overwrite)
    argp_error(state, "--resume and --overwrite cannot be combined");
  if (app_job.shards > 1 && arguments.overwrite)
    argp_error(state, "--overwrite would remove what other shards have done; remove the folder first");
}

/* ---- tasks and results */

/* Writes results; *lost: tasks that were finished and can no longer be read. (If an adaptive study was
 * stopped by failures, the reducer may know of more waves from an earlier job, so its missing tasks need not
 * be lost.) Collective. */
static Status app_run_write_results(const Study *study, int64_t left, int *lost) {
  ReduceCounts counts = {0};
  const Status status = app_job_write_results(study, arguments.directory, &counts);
  *lost = left == 0 ? counts.missing : counts.damaged;
  parallel_broadcast(lost, sizeof *lost);
  return status;
}

static Status app_run_judge_outcome(const TasksOutcome *outcome, int lost) {
  const long long failed = outcome->failed;
  const long long left = outcome->left;
  static const char none_done[] = ", none was done in this job (try more time or a smaller block)";
  if (left > 0 && failed <= app_job.max_failures)
    return status_set(STATUS_STOPPED, "stopped early: %s left in %s%s; run again with --resume",
                      numeral_count(left, "task").text, arguments.directory,
                      outcome->here > 0 ? "" : none_done);
  if (lost > 0)
    return status_set(STATUS_TASKS_FAILED, "%s in %s can no longer be read; run again with --resume",
                      numeral_count(lost, "finished task").text, arguments.directory);
  if (failed > 0)
    return status_set(STATUS_TASKS_FAILED, "%s failed%s; run again with --resume to try %s again",
                      numeral_count(failed, "task").text, left > 0 ? ", the rest were not started" : "",
                      failed == 1 ? "it" : "them");
  return STATUS_OK;
}

/* Says, on rank 0, what is finished of the tasks of this job and what is not. */
static Status app_run_announce(Finished *finished, FILE *out) {
  SCRATCH_ARENA(scratch);
  const Study *study = finished->study;
  Adaptive adaptive;
  int tasks = 0, done = 0, left = 0, same = 0;
  TRY(adaptive_create(&scratch, finished, &adaptive));
  TRY(adaptive_replay(finished->state, &adaptive));
  for (int i = 0; i < study->task_count; i++) {
    const Task task = study_task(study, i);
    if (study_shard(study, i, app_job.shards) != app_job.shard) continue;
    if (i % study->runs.blocks >= adaptive.settings[task.setting].wanted) continue;
    tasks++;
    done += finished->state[i] == RUN_OK;
    if (finished->state[i] == RUN_OK) continue;
    const bool repeats = study_repeats_task(study, i, app_job.shard, app_job.shards);
    same += repeats;
    left += !repeats;
  }
  fprintf(out, "%d of %d tasks are finished, %d%s to run", done, tasks, left,
          study->runs.adaptive ? " or more" : "");
  if (same > 0) fprintf(out, ", %d the same as those", same);
  if (finished->unused > 0)
    fprintf(out, "; %lld finished tasks are not of this study (thompson prune %s)",
            (long long)finished->unused, arguments.directory);
  fputc('\n', out);
  return STATUS_OK;
}

/* Says what a run would find and do in its folder, and changes nothing. */
static Status app_run_dry(const Study *study) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close);
  SCOPED(char *, text, memory_free_text);
  char path[4096];
  snprintf(path, sizeof path, "%s/study.yaml", arguments.directory);
  if (access(path, F_OK) != 0 || arguments.overwrite) {
    int tasks = 0, left = 0;
    for (int i = 0; i < study->task_count; i++) {
      if (study_shard(study, i, app_job.shards) != app_job.shard) continue;
      tasks++;
      left += !study_repeats_task(study, i, app_job.shard, app_job.shards);
    }
    printf("0 of %d tasks are finished, %d%s to run", tasks, left, study->runs.adaptive ? " at most" : "");
    if (left < tasks) printf(", %d the same as those", tasks - left);
    putchar('\n');
    return STATUS_OK;
  }
  TRY(folder_read_study(arguments.directory, &text));
  if (!folder_is_version(text, study)) return status_prefix(STATUS_RESUME, "%s: ", arguments.directory);
  TRY(finished_open(&scratch, arguments.directory, study, false, &finished));
  return app_run_announce(&finished, stdout);
}

/* Runs all tasks that are not finished. */
static Status app_run_all_tasks(const Study *study, TasksOutcome *outcome) {
  SCRATCH_ARENA(scratch);
  SCOPED(Finished, finished, finished_close); /* whose files the reducer opens again */
  TRY(finished_open_all(&scratch, arguments.directory, study, &finished));
  TRY(finished_check(app_job.shard, app_job.shards, &finished));
  if (arguments.resume && app_job.progress != PROGRESS_NONE)
    TRY(parallel_agree(parallel_rank() == 0 ? app_run_announce(&finished, stderr) : STATUS_OK));
  return app_job_run(&finished, outcome);
}

/* Runs all tasks, then the reducer. */
static Status run_and_reduce(const Study *study) {
  TasksOutcome outcome = {0};
  int lost = 0;
  TRY(app_run_all_tasks(study, &outcome));
  const bool stopped = outcome.left > 0 && outcome.failed <= app_job.max_failures;
  Status written = STATUS_OK;
  if (app_job.shards == 1 && !stopped) written = app_run_write_results(study, outcome.left, &lost);
  if (written != STATUS_RESUME) return written != STATUS_OK ? written : app_run_judge_outcome(&outcome, lost);
  /* results.nc holds runs that the tasks lack, and was left as it is. If the tasks did not all succeed
   * either, that message is only printed, and their outcome is the status. */
  char kept[1024];
  snprintf(kept, sizeof kept, "%s", status_message());
  const Status status = app_run_judge_outcome(&outcome, lost);
  if (status == STATUS_OK) return status_set(written, "%s", kept);
  if (parallel_rank() == 0) fprintf(stderr, "%s\n", kept);
  return status;
}

/* ---- the verb */

static Status run_study(void) {
  SCOPED(char *, text, memory_free_text);
  SCOPED(Study, study, study_destroy);
  const bool first = parallel_rank() == 0, sharded = app_job.shards > 1;
  static char default_directory[512];
  /* Rank 0 reads the file, and all ranks parse the same text. */
  TRY(parallel_agree(first ? config_study_text(arguments.study, &text) : STATUS_OK));
  TRY(parallel_broadcast_text(&text));
  TRY(parallel_agree(app_study_of_file(arguments.study, text, &arguments.sets, &study)));
  /* Which blocks an adaptive study has depends on earlier ones, so no part of them can be run alone. */
  if (sharded && study.runs.adaptive)
    return status_set(
        STATUS_USAGE,
        "--shard: %s has an adaptive number of runs (runs.target_se); allowed: --shard with a fixed "
        "number, such as --set runs=512",
        arguments.study);
  TRY(app_note_unused(&study));
  if (!arguments.directory) {
    snprintf(default_directory, sizeof default_directory, "results/%s", study.name);
    arguments.directory = default_directory;
  }
  if (arguments.dry_run) return parallel_agree(first ? app_run_dry(&study) : STATUS_OK);
  const FolderMode mode = arguments.resume      ? FOLDER_RESUME
                          : sharded             ? FOLDER_JOIN
                          : arguments.overwrite ? FOLDER_OVERWRITE
                                                : FOLDER_FRESH;
  TRY(app_job_open(&study, arguments.directory, mode));
  return run_and_reduce(&study);
}

static Status run_begin(void) { return app_job_begin(run_study); }

const AppVerb app_run = {
    .options = options,
    .argument = &arguments.study,
    .what = "study file",
    .check = run_check,
    .usage = "STUDY.yaml",
    .help = "Run a study, alone or under mpiexec or srun.\vResults go to DIR/results.nc; finished tasks are "
            "kept, so a killed job continues with --resume on any number of ranks, also after the study was "
            "edited: tasks "
            "that it still has are not run again. If Open MPI's mpiexec "
            "refuses to run as root, set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            "(`source jobs/environment.sh` does). SIGTERM, SIGUSR1 and SIGUSR2, --time-limit and the end of "
            "the Slurm job stop the run early and keep what is finished (exit status 75).",
    .run = run_begin};
