/* Measures how far a study scales, by running the scheduler with more tasks and ranks than this machine has.
 *
 * bench_scale schedule STUDY.yaml RESULTS.nc RANKS TASKS MEAN TRIP SAVE EVERY
 *
 * Replays the task list of STUDY, repeated until it has TASKS tasks, on RANKS ranks. Groups, order and
 * batches are the program's (parallel/tasks/worklist.h), trips to the counters are as in
 * parallel/tasks/queue.c; the duration of a task is drawn from those in RESULTS for its setting and policy,
 * all multiplied so that their mean is MEAN seconds. A rank asks the counters of a host (first come first
 * served, COUNTER_SECONDS for each counter, plus TRIP seconds for the round trip), works, and saves finished
 * work, which takes SAVE seconds, once that work took EVERY seconds or nothing is left (0: after each task).
 *
 * mpiexec -n N bench_scale counter REQUESTS
 *
 * Every rank asks the shared counters REQUESTS times, nine in one trip and nine in nine trips. */
#include "core/clock.h"
#include "core/rng.h"
#include "io/store.h"
#include "parallel/parallel.h"
#include "parallel/tasks/worklist.h"
#include "study/keys.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const double COUNTER_SECONDS = 1e-6; /* an atomic operation on the host of the counters */
static const double ASK_AGAIN = 1, ASK_ALONG = 0.5; /* as in parallel/tasks/queue.c */
enum { OF_WHOLE = 3, OF_LINE = 3 }; /* counters */

typedef struct {
  double size, seconds;
} Job;

static int largest_first(const void *a, const void *b) {
  const Job *first = a, *second = b;
  return (first->size < second->size) - (first->size > second->size);
}

/* The tasks of one policy. */
typedef struct {
  Job *jobs; /* largest first */
  int count;
} Line;

/* Lists `count` jobs in all. */
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
    line->jobs[line->count++] = (Job){study_task_size(study, &task), a_run * task.runs};
    sum += a_run * task.runs;
  }
  for (size_t l = 0; l < shape[1]; l++) {
    for (int i = 0; i < lines[l].count; i++) lines[l].jobs[i].seconds *= mean * count / sum;
    qsort(lines[l].jobs, (size_t)lines[l].count, sizeof(Job), largest_first);
  }
  free(seconds);
  return lines;
}

/* A rank: the time of its next action, and what it knows. */
typedef struct {
  double at; /* it polls, or has finished its work and asks for more */
  double work_left, unsaved; /* seconds */
  double seen_whole, seen_lines;
  int number, home, visited;
  int line; /* of the batch that it finished and has not reported; -1: none */
  double size, seconds; /* of that batch */
  WorkLine *known; /* [lines] */
} Rank;

typedef struct {
  const Line *lines;
  int count, ranks, groups; /* lines, ... */
  double trip, save, every;
  WorkLine *shared; /* [groups, lines] */
  int *taken; /* [groups, lines] */
  double *server, *busy; /* [groups]: when the host of the counters is free, and how long it was busy */
  double wait, longest_wait, work, last, first_idle;
  long trips, saves;
} Replay;

/* Restores the heap, in which the rank that acts first is on top. */
static void sift(int ranks, Rank *heap, Rank moved) {
  int at = 0;
  for (int child; (child = 2 * at + 1) < ranks; at = child) {
    if (child + 1 < ranks && heap[child + 1].at < heap[child].at) child++;
    if (heap[child].at >= moved.at) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

static int group_of(const Replay *replay, const Rank *rank) {
  return (rank->home + rank->visited) % replay->groups;
}

/* Updates what is left of a line in a group's part. */
static void update_shared(Replay *replay, int group, int l) {
  WorkLine *shared = &replay->shared[group * replay->count + l];
  const int taken = replay->taken[group * replay->count + l];
  shared->begun = taken > 0;
  shared->left = worklist_part(replay->lines[l].count, group, replay->groups) - taken;
  if (shared->left < 0) shared->left = 0;
  shared->next = shared->left ? replay->lines[l].jobs[group + taken * replay->groups].size : 0;
}

/* Makes a trip to some counters of one host; returns when the rank has the answer. */
static double visit(Replay *replay, int group, double at, int counters) {
  const double answer = COUNTER_SECONDS * counters;
  replay->server[group] = fmax(replay->server[group], at + replay->trip / 2) + answer;
  replay->busy[group] += answer;
  return replay->server[group] + replay->trip / 2;
}

/* Makes a trip to the counters of the group, and to those of the whole when that is due: report the last
 * batch, take `wanted` tasks of line l (none: l < 0), and get the news of the lines that are asked for. */
static void exchange(Replay *replay, Rank *rank, int l, int wanted, bool all) {
  const int group = group_of(replay, rank), reported = rank->line;
  WorkLine *shared = replay->shared + group * replay->count;
  const double from = rank->at;
  const bool whole = from - rank->seen_whole >= ASK_ALONG;
  if (reported >= 0) {
    shared[reported].size += rank->size;
    shared[reported].seconds += rank->seconds;
  }
  if (l >= 0) {
    replay->taken[group * replay->count + l] += wanted;
    update_shared(replay, group, l);
  }
  for (int i = 0; i < replay->count; i++)
    if (all || i == l || i == reported) rank->known[i] = shared[i];
  rank->at = visit(replay, group, from,
                   all ? OF_LINE * replay->count : (reported >= 0 ? OF_LINE - 1 : 0) + (l >= 0));
  if (whole) rank->at = fmax(rank->at, visit(replay, 0, from, OF_WHOLE)), rank->seen_whole = from;
  if (all) rank->seen_lines = from;
  rank->line = -1;
  replay->trips++;
  replay->wait += rank->at - from;
  replay->longest_wait = fmax(replay->longest_wait, rank->at - from);
}

/* Returns the seconds that a rank works on a task and saves what is due. */
static double work_on(Replay *replay, const Job *job, Rank *rank) {
  replay->work += job->seconds;
  rank->size += job->size;
  rank->seconds += job->seconds;
  rank->unsaved += job->seconds;
  if (rank->unsaved < replay->every) return job->seconds;
  rank->unsaved = 0;
  replay->saves++;
  return job->seconds + replay->save;
}

/* Takes work as queue_take does: a batch of the group's part, or a trip to the next group; false: nothing is
 * left. */
static bool take(Replay *replay, Rank *rank) {
  const int l = worklist_choose(replay->count, rank->known, rank->number);
  if (l < 0) {
    if (rank->visited + 1 == worklist_visits(replay->groups)) return false;
    if (rank->line >= 0) exchange(replay, rank, -1, 0, false);
    rank->visited++;
    exchange(replay, rank, -1, 0, true);
    return true;
  }
  const int wanted = worklist_batch(replay->count, rank->known, l, (double)replay->ranks / replay->groups);
  const int group = group_of(replay, rank), first = replay->taken[group * replay->count + l];
  const int there = worklist_part(replay->lines[l].count, group, replay->groups);
  exchange(replay, rank, l, wanted, rank->at - rank->seen_lines >= ASK_AGAIN);
  if (first >= there) return true;
  rank->line = l, rank->size = rank->seconds = 0;
  for (int i = first; i < first + wanted && i < there; i++)
    rank->work_left += work_on(replay, &replay->lines[l].jobs[group + i * replay->groups], rank);
  return true;
}

/* Performs a rank's next action and determines how long it takes; false: the rank has ended. */
static bool act(Replay *replay, Rank *rank) {
  if (rank->work_left > 0) { /* the poll, once a second, whether others have stopped */
    const double at = rank->at;
    rank->at = visit(replay, 0, at, OF_WHOLE), rank->seen_whole = at;
    replay->wait += rank->at - at;
  } else if (!take(replay, rank)) {
    replay->first_idle = fmin(replay->first_idle, rank->at);
    if (rank->unsaved > 0) rank->at += replay->save, replay->saves++;
    replay->last = fmax(replay->last, rank->at);
    return false;
  }
  const double step = fmin(rank->work_left, fmax(0, rank->seen_whole + ASK_AGAIN - rank->at));
  rank->work_left -= step;
  rank->at += step;
  return true;
}

static void print_replay(const Replay *replay, int tasks) {
  const double whole = replay->ranks * replay->last, saving = replay->save * (double)replay->saves;
  double busiest = 0;
  for (int g = 0; g < replay->groups; g++) busiest = fmax(busiest, replay->busy[g]);
  printf("  %d groups, duration %.2f s, parallel efficiency %.2f%%\n", replay->groups, replay->last,
         100 * replay->work / whole);
  printf("  of the ranks' time: counters %.2f%%, saving %.2f%%, end %.2f%%; first rank idle %.2f s before "
         "the end\n",
         100 * replay->wait / whole, 100 * saving / whole,
         100 * (whole - replay->work - replay->wait - saving) / whole, replay->last - replay->first_idle);
  printf("  counters: %.3f trips a task, the busiest host %.2f%%; a trip waits %.3g s, at most %.3g s\n",
         (double)replay->trips / tasks, 100 * busiest / replay->last, replay->wait / (double)replay->trips,
         replay->longest_wait);
}

static void run_replay(Replay *replay) {
  const size_t lines = (size_t)replay->count, groups = (size_t)replay->groups;
  replay->shared = allocate(groups * lines, sizeof *replay->shared);
  replay->taken = allocate(groups * lines, sizeof *replay->taken);
  replay->server = allocate(groups, sizeof *replay->server);
  replay->busy = allocate(groups, sizeof *replay->busy);
  for (int g = 0; g < replay->groups; g++)
    for (int l = 0; l < replay->count; l++) update_shared(replay, g, l);
  Rank *heap = allocate((size_t)replay->ranks, sizeof *heap);
  for (int r = 0; r < replay->ranks; r++) {
    const int home = worklist_group_of_rank(r, replay->ranks, replay->groups);
    heap[r] = (Rank){.number = r, .home = home, .line = -1, .known = allocate(lines, sizeof(WorkLine))};
    heap[r].seen_whole = heap[r].seen_lines = -ASK_AGAIN * r / replay->ranks;
    memcpy(heap[r].known, replay->shared + (size_t)home * lines, lines * sizeof(WorkLine));
  }
  for (int idle = 0; idle < replay->ranks;) {
    Rank rank = heap[0];
    if (!act(replay, &rank)) rank.at = INFINITY, idle++;
    sift(replay->ranks, heap, rank);
  }
  for (int r = 0; r < replay->ranks; r++) free(heap[r].known);
  free(heap);
}

static void schedule(char **argv) {
  const char *path = argv[0];
  const int ranks = atoi(argv[2]), tasks = atoi(argv[3]);
  char *text;
  size_t size;
  Study study;
  ok(store_read_text(path, SIZE_MAX, &text, &size));
  read_study(path, text, &study);
  free(text);
  Line *lines = list_jobs(&study, argv[1], tasks, atof(argv[4]));
  Replay replay = {.lines = lines,
                   .count = study.file->policy_count,
                   .ranks = ranks,
                   .groups = worklist_groups(ranks),
                   .trip = atof(argv[5]),
                   .save = atof(argv[6]),
                   .every = atof(argv[7]),
                   .first_idle = INFINITY};
  run_replay(&replay);
  printf("ranks %d, tasks %d of %s s on average, trip %s s, saving %s s every %s s\n", ranks, tasks, argv[4],
         argv[5], argv[6], argv[7]);
  print_replay(&replay, tasks);
  for (int l = 0; l < replay.count; l++) free(lines[l].jobs);
  free(lines);
  free(replay.shared);
  free(replay.taken);
  free(replay.server);
  free(replay.busy);
  study_destroy(&study);
}

/* The counter. */

enum { COUNTERS = 9 };

static double ask(Counters *counters, int requests, bool one_trip) {
  CounterStop stops[COUNTERS];
  for (int k = 0; k < COUNTERS; k++) stops[k] = (CounterStop){.index = k, .change = k == 0};
  parallel_barrier();
  double start = clock_wall();
  for (int i = 0; i < requests; i++) {
    if (one_trip) parallel_counter_exchange(counters, COUNTERS, stops);
    for (int k = 0; k < COUNTERS && !one_trip; k++) parallel_counter_add(counters, k, stops[k].change);
  }
  parallel_barrier();
  return clock_wall() - start;
}

static void counter(int requests) {
  parallel_begin();
  Counters *counters;
  ok(parallel_counter_create(1, COUNTERS, &counters));
  for (int one_trip = 0; one_trip < 2; one_trip++) {
    double seconds = ask(counters, requests, one_trip);
    if (parallel_rank() == 0)
      printf("%d ranks, %s: %.3g requests a second, %.3g s each\n", parallel_size(),
             one_trip ? "one trip" : "nine trips", requests * parallel_size() / seconds, seconds / requests);
  }
  parallel_counter_destroy(counters);
  parallel_end(STATUS_OK);
}

int main(int argc, char **argv) {
  if (argc == 10 && strcmp(argv[1], "schedule") == 0)
    schedule(argv + 2);
  else if (argc == 3 && strcmp(argv[1], "counter") == 0)
    counter(atoi(argv[2]));
  else
    fprintf(
        stderr,
        "usage: bench_scale schedule STUDY RESULTS RANKS TASKS MEAN TRIP SAVE EVERY | counter REQUESTS\n");
  return 0;
}
