/* How far does a study scale? The scheduler and the reducer, fed with more tasks and ranks than this machine
 * has.
 *
 *   bench_scale schedule STUDY.yaml RESULTS.nc RANKS TASKS MEAN TRIP SAVE
 *       Replays the task list of STUDY, repeated until it has TASKS tasks, on RANKS ranks. The order is the
 * program's (longest first by the cost model); how long a task takes is drawn from what RESULTS measured for
 * its setting and policy, all multiplied so that their mean is MEAN seconds. A rank asks the counter (one
 * server, first come first served, COUNTER_SECONDS an answer, plus TRIP seconds there and back), works, and
 * saves its file in SAVE seconds. mpiexec -n N bench_scale counter REQUESTS Every rank asks the shared
 * counters REQUESTS times, five in one trip as in the program, and five in five trips. bench_scale files
 * FOLDER TASKS RUNS ROUNDS Writes TASKS finished tasks of made-up numbers into FOLDER, then times the reducer
 * on them. */
#include "core/clock.h"
#include "core/rng.h"
#include "io/store.h"
#include "parallel/checkpoint.h"
#include "parallel/counter.h"
#include "parallel/reduce.h"
#include "study/keys.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void ok(Status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "bench_scale: %s\n", status_message());
  exit(1);
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) abort();
  return memory;
}

static void read_study(const char *name, const char *text, Study *study) {
  StudyFile *file;
  ok(config_study_parse(name, text, &study_schema, 0, NULL, &file));
  ok(study_create(file, study));
}

/* The schedule. */

static const double COUNTER_SECONDS = 1e-6; /* an atomic operation of the counter's host */

typedef struct {
  double modelled, seconds;
} Job;

static int longest_first(const void *a, const void *b) {
  const Job *first = a, *second = b;
  return (first->modelled < second->modelled) - (first->modelled > second->modelled);
}

/* jobs[count]: cost by the model, duration of a random measured block of the same cell. */
static Job *list_jobs(const Study *study, const char *results, int count, double mean) {
  size_t shape[3] = {(size_t)study->file->setting_count, (size_t)study->file->policy_count,
                     (size_t)study->runs.most};
  double *seconds = allocate(shape[0] * shape[1] * shape[2], sizeof *seconds);
  Job *jobs = allocate((size_t)count, sizeof *jobs);
  StoreFile *file;
  ok(store_open(results, &file));
  ok(store_shape(file, "seconds", 3, shape));
  ok(store_get_doubles(file, "seconds", seconds));
  store_abandon(file);
  Rng rng = {.key = rng_key(1, RNG_VERIFY)};
  double sum = 0;
  for (int i = 0; i < count; i++) {
    Task task = study_task(study, i % study->task_count);
    size_t cell = (size_t)(i % study->task_count / study->runs.blocks);
    double a_run = seconds[cell * shape[2] + rng_index(&rng, (uint64_t)shape[2])];
    if (isnan(a_run)) abort();
    jobs[i] = (Job){study->ops->cost(study, &task), a_run * task.runs};
    sum += jobs[i].seconds;
  }
  for (int i = 0; i < count; i++) jobs[i].seconds *= mean * count / sum;
  qsort(jobs, (size_t)count, sizeof *jobs, longest_first);
  free(seconds);
  return jobs;
}

/* A heap of the times at which ranks become free: free_at[0] is the earliest. */
static void sift(int ranks, double *free_at, double value) {
  int at = 0;
  for (int child; (child = 2 * at + 1) < ranks; at = child) {
    if (child + 1 < ranks && free_at[child + 1] < free_at[child]) child++;
    if (free_at[child] >= value) break;
    free_at[at] = free_at[child];
  }
  free_at[at] = value;
}

static void schedule(const char *path, const char *results, int ranks, int count, double mean, double trip,
                     double save) {
  char *text;
  size_t size;
  Study study;
  ok(store_read_text(path, &text, &size));
  read_study(path, text, &study);
  free(text);
  Job *jobs = list_jobs(&study, results, count, mean);
  double *free_at = allocate((size_t)ranks, sizeof *free_at), server = 0, wait = 0, longest_wait = 0,
         work = 0, last = 0;
  for (int i = 0; i < count; i++) {
    double asked = free_at[0],
           served = (server > asked + trip / 2 ? server : asked + trip / 2) + COUNTER_SECONDS;
    server = served;
    double begin = served + trip / 2, end = begin + jobs[i].seconds + save;
    wait += begin - asked;
    if (begin - asked > longest_wait) longest_wait = begin - asked;
    work += jobs[i].seconds;
    if (end > last) last = end;
    sift(ranks, free_at, end);
  }
  double tail = last - free_at[0], idle = ranks * last - work;
  printf("ranks %d, tasks %d of %g s on average, trip %g s, save %g s\n", ranks, count, mean, trip, save);
  printf("  duration %.1f s, work %.0f s, idle %.0f s: parallel efficiency %.2f%%\n", last, work, idle,
         100 * work / (ranks * last));
  printf("  of the idle time: counter %.2f%%, saving %.2f%%, end %.2f%%; first rank idle %.2f s before the "
         "end\n",
         100 * wait / idle, 100 * save * count / idle, 100 * (idle - wait - save * count) / idle, tail);
  printf("  counter: %.0f requests a second, busy %.2f%%; a rank waits %.3g s a task, at most %.3g s\n",
         count / last, 100 * count * COUNTER_SECONDS / last, wait / count, longest_wait);
  free(free_at);
  free(jobs);
  study_destroy(&study);
}

/* The counter. */

static double ask(Counters *counters, int requests, bool one_trip) {
  const int64_t change[5] = {1, 0, 0, 0, 0};
  int64_t now[5];
  parallel_barrier();
  double start = clock_wall();
  for (int i = 0; i < requests; i++) {
    if (one_trip) counter_exchange(counters, 5, change, now);
    for (int k = 0; k < 5 && !one_trip; k++) counter_add(counters, k, change[k]);
  }
  parallel_barrier();
  return clock_wall() - start;
}

static void counter(int argc, char **argv, int requests) {
  Parallel parallel = parallel_begin(&argc, &argv);
  Counters *counters;
  ok(counter_create(5, &counters));
  for (int one_trip = 0; one_trip < 2; one_trip++) {
    double seconds = ask(counters, requests, one_trip);
    if (parallel.rank == 0)
      printf("%d ranks, %s: %.3g requests a second, %.3g s each\n", parallel.size,
             one_trip ? "one trip" : "five trips", requests * parallel.size / seconds, seconds / requests);
  }
  counter_destroy(counters);
  parallel_end();
}

/* Files. */

static double megabytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1024;
}

/* Curves that grow like regret, so that they compress like it. */
static void make_result(const Task *task, Rng *rng, TaskResult *result) {
  for (int b = 0; b < task->runs; b++) {
    double *curve = result->curves + b * result->points;
    rng_uniform(rng, result->points, curve);
    for (int i = 0; i < result->points; i++) curve[i] = (i ? curve[i - 1] : 0) + fmax(0, curve[i] - 0.5);
    result->seconds[b] = curve[result->points - 1];
  }
  result->status = RUN_OK;
}

static void files(const char *folder, int count, int runs, int rounds) {
  enum { POLICIES = 8, BLOCKS = 8 };
  static char text[1 << 18];
  int settings = count / POLICIES / BLOCKS, length;
  length = snprintf(text, sizeof text,
                    "{name: scale, runs: %d, block: %d, problem: {rounds: %d, arms: 2}, policies: [",
                    runs * BLOCKS, runs, rounds);
  for (int p = 0; p < POLICIES; p++)
    length += snprintf(text + length, sizeof text - (size_t)length, "{name: ts, label: p%d},", p);
  length += snprintf(text + length, sizeof text - (size_t)length, "], sweep: {problem.snr: [");
  for (int s = 1; s <= settings && length < (int)sizeof text - 16; s++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%d,", s);
  snprintf(text + length, sizeof text - (size_t)length, "]}}");
  Study study;
  read_study("scale", text, &study);
  Lock *lock;
  ok(checkpoint_open(folder, &study, CHECKPOINT_RESUME, -1, &lock));
  double start = clock_wall();
  for (int i = 0; i < study.task_count; i++) {
    Task task = study_task(&study, i);
    TaskResult result;
    Rng rng = {.key = rng_key((uint64_t)i, RNG_VERIFY)};
    ok(task_result_create(&study, &task, &result));
    make_result(&task, &rng, &result);
    ok(checkpoint_save(folder, &study, &task, &result));
    task_result_destroy(&result);
  }
  double written = clock_wall(), before = megabytes();
  printf("%d tasks of %d runs x %d rounds: made and saved in %.1f s, %.3g ms each\n", study.task_count, runs,
         rounds, written - start, 1e3 * (written - start) / study.task_count);
  ReduceCounts counts;
  double cpu = clock_cpu();
  ok(reduce_study(&(Parallel){.rank = 0, .size = 1}, &study, folder, &counts));
  double reduced = clock_wall();
  printf("  reduced %d in %.1f s (%.1f s of CPU), %.3g ms each; %.0f MB of memory (%.0f MB before)\n",
         counts.ok, reduced - written, clock_cpu() - cpu, 1e3 * (reduced - written) / study.task_count,
         megabytes(), before);
  lock_release(lock);
  study_destroy(&study);
}

int main(int argc, char **argv) {
  if (argc == 9 && strcmp(argv[1], "schedule") == 0)
    schedule(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]), atof(argv[6]), atof(argv[7]), atof(argv[8]));
  else if (argc == 3 && strcmp(argv[1], "counter") == 0)
    counter(argc, argv, atoi(argv[2]));
  else if (argc == 6 && strcmp(argv[1], "files") == 0)
    files(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  else
    fprintf(stderr,
            "usage: bench_scale schedule STUDY RESULTS RANKS TASKS MEAN TRIP SAVE | counter REQUESTS | "
            "files FOLDER TASKS RUNS ROUNDS\n");
  return 0;
}
