/* Measures how long the reducer takes.
 *
 * bench_reduce write FOLDER TASKS RUNS ROUNDS
 *
 * Writes TASKS finished tasks of made-up numbers into FOLDER.
 *
 * mpiexec -n N bench_reduce reduce FOLDER
 *
 * Reduces the study in FOLDER, and prints the CPU seconds of every rank, excluding those in MPI, where a rank
 * that waits for another polls. */
#include "core/clock.h"
#include "core/rng.h"
#include "parallel/results/reduce.h"
#include "parallel/tasks/folder.h"
#include "parallel/tasks/journal.h"
#include "study/keys.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void ok(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_reduce: %s\n", status_message());
  exit(1);
}

static void read_study(const char *name, const char *text, Study *study) {
  StudyFile *file;
  ok(config_study_parse(name, text, &study_schema, 0, NULL, &file));
  ok(study_create(file, study));
}

/* Finished tasks. */

/* Makes curves that grow like regret, so that they compress like regret. */
static void make_result(const Task *task, Rng *rng, TaskResult *result) {
  for (int b = 0; b < task->runs; b++) {
    double *curve = result->curves + b * result->points;
    rng_uniform(rng, result->points, curve);
    for (int i = 0; i < result->points; i++) curve[i] = (i ? curve[i - 1] : 0) + fmax(0, curve[i] - 0.5);
    result->columns.seconds[b] = curve[result->points - 1];
  }
  result->status = RUN_OK;
}

static void make_study(int count, int runs, int rounds, Study *study) {
  enum { POLICIES = 8, BLOCKS = 8 };
  static char text[1 << 18];
  int length;
  length = snprintf(
      text, sizeof text,
      "{name: scale, runs: %d, block: %d, problem: {rounds: %d, arms: 2}, rounds_kept: all, policies: [",
      runs * BLOCKS, runs, rounds);
  for (int p = 0; p < POLICIES; p++)
    length += snprintf(text + length, sizeof text - (size_t)length, "{name: ts, label: p%d},", p);
  length += snprintf(text + length, sizeof text - (size_t)length, "], sweep: {problem.snr: [");
  for (int s = 1; s <= count / POLICIES / BLOCKS && length < (int)sizeof text - 16; s++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%d,", s);
  snprintf(text + length, sizeof text - (size_t)length, "]}}");
  read_study("scale", text, study);
}

static void write_tasks(const char *folder, int count, int runs, int rounds) {
  Study study;
  Lock *lock;
  make_study(count, runs, rounds, &study);
  ok(folder_open(folder, &study, FOLDER_RESUME, -1, &lock));
  SCRATCH_ARENA(memory);
  Journal *journal;
  ok(journal_create(&memory, folder, &study, &journal));
  const double start = clock_wall();
  for (int i = 0; i < study.task_count; i++) {
    Task task = study_task(&study, i);
    TaskResult result;
    Rng rng = {.key = rng_key((uint64_t)i, RNG_VERIFY)};
    ok(study_result_create(&study, &task, &result));
    make_result(&task, &rng, &result);
    ok(journal_append(journal, &task, &result));
    study_result_destroy(&result);
  }
  ok(journal_sync(journal));
  journal_close(journal);
  const double seconds = clock_wall() - start;
  printf("%d tasks of %d runs x %d rounds: made and saved in %.1f s, %.3g ms each\n", study.task_count, runs,
         rounds, seconds, 1e3 * seconds / study.task_count);
  io_lock_release(lock);
  study_destroy(&study);
}

/* The reducer. */

static double in_mpi; /* CPU seconds */

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm world,
             MPI_Status *status) {
  const double start = clock_cpu();
  const int code = PMPI_Recv(buffer, count, type, from, tag, world, status);
  in_mpi += clock_cpu() - start;
  return code;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm world) {
  const double start = clock_cpu();
  const int code = PMPI_Send(buffer, count, type, to, tag, world);
  in_mpi += clock_cpu() - start;
  return code;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm world) {
  const double start = clock_cpu();
  const int code = PMPI_Bcast(buffer, count, type, root, world);
  in_mpi += clock_cpu() - start;
  return code;
}

int MPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm world) {
  const double start = clock_cpu();
  const int code = PMPI_Allreduce(mine, all, count, type, op, world);
  in_mpi += clock_cpu() - start;
  return code;
}

static double system_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

static void reduce(const char *folder) {
  parallel_begin();
  char *text;
  Study study;
  SCOPED(Leaderboard, board, leaderboard_destroy);
  ReduceCounts counts;
  ok(folder_read_study(folder, &text));
  read_study(folder, text, &study);
  free(text);
  parallel_barrier();
  in_mpi = 0;
  const double start = clock_wall(), cpu = clock_cpu(), kernel = system_seconds();
  ok(reduce_study(&study, folder, true, &counts, &board));
  const double used = clock_cpu() - cpu, waited = in_mpi;
  printf("rank %d of %d: %.2f s, %.2f s of CPU without MPI (%.2f s in the system), %.2f s in MPI\n",
         parallel_rank(), parallel_size(), clock_wall() - start, used - waited, system_seconds() - kernel,
         waited);
  if (parallel_rank() == 0)
    printf("%d tasks, %.0f MB of curves\n", counts.ok,
           8e-6 * study.task_count * study.points * (double)study_task(&study, 0).runs);
  study_destroy(&study);
  parallel_end(STATUS_OK);
}

int main(int argc, char **argv) {
  if (argc == 6 && strcmp(argv[1], "write") == 0)
    write_tasks(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  else if (argc == 3 && strcmp(argv[1], "reduce") == 0)
    reduce(argv[2]);
  else
    fprintf(stderr, "usage: bench_reduce write FOLDER TASKS RUNS ROUNDS | reduce FOLDER\n");
  return 0;
}
