#include "parallel/queue.h"

#include "core/clock.h"
#include "parallel/counter.h"
#include "parallel/worklist.h"

#include <math.h>
#include <string.h>

/* The counters of a host: three of the whole, which count on host 0 only, then three for each line of the
 * part of the tasks that its group has. Finished COST is in units of the line's whole work. */
enum { STOP, DONE, FAILED, OF_LINES };
enum { TAKEN, COST, MICROSECONDS, OF_LINE };
static const double COST_UNITS = 1e12;

static const double ASK_AGAIN = 1; /* seconds after which a rank asks for what only others change ... */
static const double ASK_ALONG = 0.5; /* ... and for the whole when it makes a trip anyway */

typedef struct {
  int count, *task; /* longest first */
  double cost; /* of all */
  double slowest; /* seconds for a unit of cost, of the tasks that this rank has finished */
} Line;

struct Queue {
  Arena memory; /* of the arrays */
  const Study *study;
  const double *cost; /* [task_count], not owned */
  int lines, rank, groups, counters; /* counters of a host */
  double group_ranks; /* ranks of a group */
  int home, visited; /* this rank's group; how many groups after it are those whose part it takes from */
  Line *line; /* [lines], one for each policy */
  WorkLine *known; /* [lines] of the group's part, as of the last trip */
  WorkLine *all; /* [lines], scratch: cost and seconds of all groups */
  int64_t *change, *now; /* [counters]: not reported yet; as of the last trip */
  CounterStop *stops; /* [counters + 2 * lines * groups], scratch: a trip */
  double seen_whole, seen_lines; /* seconds; when a trip last asked for all of these counters */
  int *next, left; /* tasks that this rank has taken and not begun */
  Counters *shared;
};

static int64_t *of_line(int64_t *counters, int line) { return counters + OF_LINES + line * OF_LINE; }

typedef struct {
  double cost;
  int index;
} Ranked;

static int longest_first(const void *a, const void *b) {
  const Ranked *first = a, *second = b;
  if (first->cost != second->cost) return first->cost < second->cost ? 1 : -1;
  return first->index - second->index;
}

static Status fill_lines(Queue *queue, int count, const int *list) {
  SCRATCH_ARENA(scratch);
  Ranked *ranked;
  ALLOCATE_ARRAYS(&queue->memory, queue->lines, queue->line, queue->known, queue->all);
  ALLOCATE_ARRAYS(&queue->memory, queue->counters, queue->change, queue->now);
  ALLOCATE(&queue->memory, queue->stops, queue->counters + 2 * queue->lines * queue->groups);
  ALLOCATE(&scratch, ranked, count);
  for (int i = 0; i < count; i++) {
    ASSERT(queue->cost[list[i]] > 0);
    ranked[i] = (Ranked){queue->cost[list[i]], list[i]};
  }
  qsort(ranked, (size_t)count, sizeof *ranked, longest_first);
  for (int l = 0; l < queue->lines; l++) {
    Line *line = &queue->line[l];
    for (int i = 0; i < count; i++) line->count += study_task(queue->study, ranked[i].index).policy == l;
    ALLOCATE(&queue->memory, line->task, line->count);
    line->count = 0;
    for (int i = 0; i < count; i++) {
      if (study_task(queue->study, ranked[i].index).policy != l) continue;
      line->task[line->count++] = ranked[i].index;
      line->cost += ranked[i].cost;
    }
  }
  return STATUS_OK;
}

static int group_of(const Queue *queue) { return (queue->home + queue->visited) % queue->groups; }

/* Returns a task of the group's part of a line. */
static int *task_of(const Queue *queue, int line, int64_t ticket) {
  return &queue->line[line].task[group_of(queue) + ticket * queue->groups];
}

/* Updates what the counters say, in the words of the schedule. */
static void update_known(Queue *queue) {
  for (int l = 0; l < queue->lines; l++) {
    const Line *line = &queue->line[l];
    const int64_t *now = of_line(queue->now, l);
    const int64_t left = worklist_part(line->count, group_of(queue), queue->groups) - now[TAKEN];
    queue->known[l] = (WorkLine){.left = left > 0 ? (int)left : 0,
                                 .begun = now[TAKEN] > 0,
                                 .next = left > 0 ? queue->cost[*task_of(queue, l, now[TAKEN])] : 0,
                                 .cost = (double)now[COST] / COST_UNITS * line->cost,
                                 .seconds = 1e-6 * (double)now[MICROSECONDS]};
  }
}

/* Makes one trip to the counters, with what this rank has to report and to ask: of the whole and of the
 * group's lines, all or those that it changes. A failure is reported with the whole, since it may end the
 * work. */
static void exchange_lists(Queue *queue, bool whole, bool lines) {
  int count = 0;
  whole = whole || queue->change[STOP] > 0 || queue->change[FAILED] > 0;
  for (int i = 0; i < queue->counters; i++)
    if (i < OF_LINES ? whole : lines || queue->change[i] != 0)
      queue->stops[count++] = (CounterStop){i < OF_LINES ? 0 : group_of(queue), i, queue->change[i], 0};
  counter_exchange(queue->shared, count, queue->stops);
  for (int k = 0; k < count; k++) {
    queue->now[queue->stops[k].index] = queue->stops[k].now;
    queue->change[queue->stops[k].index] = 0;
  }
  if (whole) queue->seen_whole = clock_wall();
  if (lines) queue->seen_lines = clock_wall();
  update_known(queue);
}

Status queue_create(const Parallel *parallel, const Study *study, int groups, int count, const int *list,
                    const double *cost, Queue **out) {
  Queue *queue;
  NEW(queue, 1);
  *out = queue;
  *queue = (Queue){.study = study,
                   .cost = cost,
                   .rank = parallel->rank,
                   .lines = study->file->policy_count,
                   .groups = groups,
                   .group_ranks = (double)parallel->size / groups,
                   .home = worklist_group_of_rank(parallel->rank, parallel->size, groups)};
  queue->counters = OF_LINES + queue->lines * OF_LINE;
  TRY(parallel_agree(parallel, fill_lines(queue, count, list)));
  TRY(counter_create(parallel, groups, queue->counters, &queue->shared));
  /* Spread over a second, or the ranks would ask all at once, again and again. */
  queue->seen_whole = queue->seen_lines = clock_wall() - ASK_AGAIN * parallel->rank / parallel->size;
  update_known(queue);
  return STATUS_OK;
}

void queue_destroy(Queue *queue) {
  if (!queue) return;
  counter_destroy(queue->shared);
  arena_free(&queue->memory);
  free(queue);
}

static double seconds_since(double seen) { return clock_wall() - seen; }

/* Takes tasks of the group's part. The line is chosen by what earlier trips reported; the trip that takes
 * the tickets brings what is new. False when nothing is left. */
static bool take_batch(Queue *queue) {
  for (int l; (l = worklist_choose(queue->lines, queue->known, queue->rank)) >= 0;) {
    const int wanted = worklist_batch(queue->lines, queue->known, l, queue->group_ranks);
    of_line(queue->change, l)[TAKEN] = wanted;
    exchange_lists(queue, seconds_since(queue->seen_whole) >= ASK_ALONG,
                   seconds_since(queue->seen_lines) >= ASK_AGAIN);
    const int64_t first = of_line(queue->now, l)[TAKEN] - wanted;
    const int64_t got = worklist_part(queue->line[l].count, group_of(queue), queue->groups) - first;
    if (got <= 0) continue;
    queue->next = task_of(queue, l, first);
    queue->left = got < wanted ? (int)got : wanted;
    return true;
  }
  return false;
}

int queue_take(Queue *queue) {
  if (queue->change[FAILED] > 0) exchange_lists(queue, true, false);
  while (queue->left == 0 && !take_batch(queue)) {
    if (queue->visited + 1 == worklist_visits(queue->groups)) return -1;
    exchange_lists(queue, false, false); /* what is to report of this group's part */
    queue->visited++;
    exchange_lists(queue, false, true);
  }
  const int task = *queue->next;
  queue->next += queue->groups, queue->left--;
  return task;
}

double queue_expect(const Queue *queue, int task) {
  const int l = study_task(queue->study, task).policy;
  const double mean = worklist_speed(queue->lines, queue->known, l);
  return queue->cost[task] * fmax(mean, queue->line[l].slowest);
}

void queue_finish(Queue *queue, int task, bool failed, double seconds) {
  const int l = study_task(queue->study, task).policy;
  Line *line = &queue->line[l];
  queue->change[failed ? FAILED : DONE]++;
  if (failed) return;
  of_line(queue->change, l)[COST] += (int64_t)(COST_UNITS * (queue->cost[task] / line->cost));
  of_line(queue->change, l)[MICROSECONDS] += (int64_t)(1e6 * seconds);
  line->slowest = fmax(line->slowest, seconds / queue->cost[task]);
}

void queue_stop(Queue *queue) { queue->change[STOP]++; }

bool queue_is_stopped(Queue *queue) {
  if (seconds_since(queue->seen_whole) >= ASK_AGAIN) exchange_lists(queue, true, false);
  return queue->now[STOP] > 0;
}

QueueState queue_look(Queue *queue) {
  exchange_lists(queue, true, false);
  return queue_seen(queue);
}

QueueState queue_seen(const Queue *queue) {
  return (QueueState){
      .done = queue->now[DONE], .failed = queue->now[FAILED], .stopped = queue->now[STOP] > 0};
}

double queue_share(Queue *queue) {
  int count = 0;
  for (int g = 0; g < queue->groups; g++)
    for (int l = 0; l < queue->lines; l++)
      for (int i = COST; i <= MICROSECONDS; i++)
        queue->stops[count++] = (CounterStop){g, OF_LINES + l * OF_LINE + i, 0, 0};
  counter_exchange(queue->shared, count, queue->stops);
  memset(queue->all, 0, (size_t)queue->lines * sizeof *queue->all);
  for (int k = 0; k < count; k += 2) {
    const int l = k / 2 % queue->lines;
    queue->all[l].cost += (double)queue->stops[k].now / COST_UNITS * queue->line[l].cost;
    queue->all[l].seconds += 1e-6 * (double)queue->stops[k + 1].now;
  }
  double work = 0, finished = 0;
  for (int l = 0; l < queue->lines; l++) {
    const double speed = worklist_speed(queue->lines, queue->all, l);
    work += speed * queue->line[l].cost;
    finished += speed * queue->all[l].cost;
  }
  return work > 0 ? finished / work : 0;
}
