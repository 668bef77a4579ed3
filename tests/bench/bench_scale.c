/* How far does a study scale? The scheduler and the reducer, fed with more tasks and ranks than this machine
 * has.
 *
 * bench_scale schedule STUDY.yaml RESULTS.nc RANKS TASKS MEAN TRIP SAVE
 *
 * Replays the task list of STUDY, repeated until it has TASKS tasks, on RANKS ranks. The order is the
 * program's (parallel/schedule.h); how long a task takes is drawn from what RESULTS measured for
 * its setting and policy, all multiplied so that their mean is MEAN seconds. A rank asks the counters (one
 * server, first come first served, COUNTER_SECONDS for each counter, plus TRIP seconds there and back),
 * works, and saves its file in SAVE seconds.
 *
 * mpiexec -n N bench_scale counter REQUESTS
 *
 * Every rank asks the
 * shared counters REQUESTS times, nine in one trip as in the program, and nine in nine trips.
 *
 * bench_scale files FOLDER TASKS RUNS ROUNDS
 *
 * Writes TASKS finished tasks of made-up numbers into FOLDER, then times the
 * reducer on them. */
#include "core/clock.h"
#include "core/rng.h"
#include "io/store.h"
#include "parallel/checkpoint.h"
#include "parallel/counter.h"
#include "parallel/queue.h"
#include "parallel/reduce.h"
#include "parallel/schedule.h"
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

static const double COUNTER_SECONDS = 1e-6; /* an atomic operation of the counters' host */
enum { COUNTERS = 9 }; /* those of a trip: 3 of the whole, 6 of the lines of the last task and of the next */

typedef struct {
  double modelled, seconds;
} Job;

static int longest_first(const void *a, const void *b) {
  const Job *first = a, *second = b;
  return (first->modelled < second->modelled) - (first->modelled > second->modelled);
}

/* The tasks of one policy. */
typedef struct {
  Job *jobs; /* longest first by the model */
  int count, taken;
} Line;

/* Lines of `count` jobs in all. */
static Line *list_jobs(const Study *study, const char *results, int count, double mean) {
  size_t shape[3] = {(size_t)study->file->setting_count, (size_t)study->file->policy_count,
                     (size_t)study->runs.most};
  double *seconds = allocate(shape[0] * shape[1] * shape[2], sizeof *seconds);
  Line *lines = allocate(shape[1], sizeof *lines);
  StoreFile *file;
  ok(store_open(results, &file));
  ok(store_shape(file, "seconds", 3, shape));
  ok(store_get_doubles(file, "seconds", seconds));
  store_abandon(file);
  Rng rng = {.key = rng_key(1, RNG_VERIFY)};
  double sum = 0;
  for (size_t l = 0; l < shape[1]; l++) lines[l].jobs = allocate((size_t)count, sizeof(Job));
  for (int i = 0; i < count; i++) {
    Task task = study_task(study, i % study->task_count);
    Line *line = &lines[task.policy];
    size_t cell = (size_t)(i % study->task_count / study->runs.blocks);
    double a_run = seconds[cell * shape[2] + rng_index(&rng, (uint64_t)shape[2])];
    if (isnan(a_run)) abort();
    line->jobs[line->count++] = (Job){study->ops->cost(study, &task), a_run * task.runs};
    sum += a_run * task.runs;
  }
  for (size_t l = 0; l < shape[1]; l++) {
    for (int i = 0; i < lines[l].count; i++) lines[l].jobs[i].seconds *= mean * count / sum;
    qsort(lines[l].jobs, (size_t)lines[l].count, sizeof(Job), longest_first);
  }
  free(seconds);
  return lines;
}

/* A rank: when it will be free, what it is busy with, and what the counters told it when it asked last. */
typedef struct {
  double free_at;
  int line; /* -1: nothing yet */
  Job job;
  ScheduleLine *known;
  double seen_all; /* when it asked for the counters of every line */
} Rank;

/* A heap: the first rank is free first. */
static void sift(int ranks, Rank *heap, Rank moved) {
  int at = 0;
  for (int child; (child = 2 * at + 1) < ranks; at = child) {
    if (child + 1 < ranks && heap[child + 1].free_at < heap[child].free_at) child++;
    if (heap[child].free_at >= moved.free_at) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

/* Tell what the rank has done, take a job of the line it chooses by what it knew, learn the news; once more
 * if that line has ended. Returns the trips to the counters; false: nothing is left. */
static bool take_job(int policies, Line *lines, ScheduleLine *shared, int number, bool all, Rank *rank,
                     int *trips) {
  if (rank->line >= 0) {
    shared[rank->line].cost += rank->job.modelled;
    shared[rank->line].seconds += rank->job.seconds;
  }
  for (*trips = 0;;) {
    const int l = schedule_choose(policies, rank->known, number);
    if (l < 0) return false;
    Line *line = &lines[l];
    const bool found = line->taken < line->count;
    if (found) rank->job = line->jobs[line->taken++];
    shared[l].begun = true;
    shared[l].next = line->taken < line->count ? line->jobs[line->taken].modelled : 0;
    if (rank->line >= 0) rank->known[rank->line] = shared[rank->line];
    rank->known[l] = shared[l];
    if (all) memcpy(rank->known, shared, (size_t)policies * sizeof *shared);
    ++*trips;
    rank->line = l;
    if (found) return true;
  }
}

static void schedule(const char *path, const char *results, int ranks, int count, double mean, double trip,
                     double save) {
  char *text;
  size_t size;
  Study study;
  ok(store_read_text(path, SIZE_MAX, &text, &size));
  read_study(path, text, &study);
  free(text);
  const int policies = study.file->policy_count;
  Line *lines = list_jobs(&study, results, count, mean);
  ScheduleLine *shared = allocate((size_t)policies, sizeof *shared);
  for (int l = 0; l < policies; l++) shared[l].next = lines[l].count ? lines[l].jobs[0].modelled : 0;
  Rank *heap = allocate((size_t)ranks, sizeof *heap);
  for (int r = 0; r < ranks; r++) {
    heap[r] = (Rank){.line = -1, .known = allocate((size_t)policies, sizeof *shared)};
    memcpy(heap[r].known, shared, (size_t)policies * sizeof *shared);
  }
  double server = 0, busy = 0, wait = 0, longest_wait = 0, work = 0, last = 0, first_idle = INFINITY;
  long asked = 0;
  for (int idle = 0; idle < ranks;) {
    Rank rank = heap[0];
    int trips;
    const bool all = rank.free_at - rank.seen_all >= 1;
    if (all) rank.seen_all = rank.free_at;
    if (!take_job(policies, lines, shared, (int)(asked % ranks), all, &rank, &trips)) {
      first_idle = fmin(first_idle, rank.free_at);
      last = fmax(last, rank.free_at);
      rank.free_at = INFINITY, idle++;
      sift(ranks, heap, rank);
      continue;
    }
    asked += trips;
    const double answer = COUNTER_SECONDS * (COUNTERS * trips + (all ? 3 * policies : 0));
    server = fmax(server, rank.free_at + trip / 2) + answer;
    busy += answer;
    const double begin = fmax(server + trip / 2, rank.free_at + trips * trip);
    wait += begin - rank.free_at;
    longest_wait = fmax(longest_wait, begin - rank.free_at);
    work += rank.job.seconds;
    rank.free_at = begin + rank.job.seconds + save;
    sift(ranks, heap, rank);
  }
  double idle = ranks * last - work;
  printf("ranks %d, tasks %d of %g s on average, trip %g s, save %g s\n", ranks, count, mean, trip, save);
  printf("  duration %.1f s, work %.0f s, idle %.0f s: parallel efficiency %.2f%%\n", last, work, idle,
         100 * work / (ranks * last));
  printf("  of the idle time: counters %.2f%%, saving %.2f%%, end %.2f%%; first rank idle %.2f s before the "
         "end\n",
         100 * wait / idle, 100 * save * count / idle, 100 * (idle - wait - save * count) / idle,
         last - first_idle);
  printf("  counters: %.0f trips a second, %.3f a task, busy %.2f%%; a rank waits %.3g s a task, at most "
         "%.3g s\n",
         (double)asked / last, (double)asked / count, 100 * busy / last, wait / count, longest_wait);
  for (int l = 0; l < policies; l++) free(lines[l].jobs);
  for (int r = 0; r < ranks; r++) free(heap[r].known);
  free(lines);
  free(shared);
  free(heap);
  study_destroy(&study);
}

/* The counter. */

static double ask(Counters *counters, int requests, bool one_trip) {
  const int64_t change[COUNTERS] = {1};
  int64_t now[COUNTERS];
  int index[COUNTERS];
  for (int k = 0; k < COUNTERS; k++) index[k] = k;
  parallel_barrier();
  double start = clock_wall();
  for (int i = 0; i < requests; i++) {
    if (one_trip) counter_exchange(counters, COUNTERS, index, change, now);
    for (int k = 0; k < COUNTERS && !one_trip; k++) counter_add(counters, k, change[k]);
  }
  parallel_barrier();
  return clock_wall() - start;
}

static void counter(int argc, char **argv, int requests) {
  Parallel parallel = parallel_begin(&argc, &argv);
  Counters *counters;
  ok(counter_create(COUNTERS, &counters));
  for (int one_trip = 0; one_trip < 2; one_trip++) {
    double seconds = ask(counters, requests, one_trip);
    if (parallel.rank == 0)
      printf("%d ranks, %s: %.3g requests a second, %.3g s each\n", parallel.size,
             one_trip ? "one trip" : "nine trips", requests * parallel.size / seconds, seconds / requests);
  }
  counter_destroy(counters);
  parallel_end(STATUS_OK);
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
  ok(reduce_study(&(Parallel){.rank = 0, .size = 1}, &study, folder, &(ReduceOptions){0}, &counts));
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
