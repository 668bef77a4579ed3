#include "parallel/queue.h"

#include "core/arena.h"
#include "core/clock.h"
#include "core/memory.h"
#include "parallel/counter.h"
#include "parallel/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The shared counters: three of the whole, then three for each line. Finished COST is in units of the line's
 * whole work. */
enum { STOP, DONE, FAILED, OF_LINES };
enum { TAKEN, COST, MICROSECONDS, OF_LINE };
static const double COST_UNITS = 1e12;

static const double LOOK_AT_ALL = 1; /* seconds after which a taker asks for the counters of every line */

typedef struct {
  int count, *task; /* longest first */
  double cost; /* of all */
  double slowest; /* seconds for a unit of cost, of the tasks that this rank has finished */
} Line;

struct Queue {
  const Study *study;
  const double *cost; /* [task_count], not owned */
  int lines, rank, counters;
  Line *line; /* [lines], one for each policy */
  ScheduleLine *known; /* [lines], of the last trip */
  int64_t *change, *now; /* [counters]: not reported yet; as of the last trip */
  int *asked; /* [counters], scratch: those of a trip */
  double seen_all; /* seconds; when a trip last asked for all */
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
  NEW(queue->line, queue->lines);
  NEW(queue->known, queue->lines);
  NEW(queue->change, queue->counters);
  NEW(queue->now, queue->counters);
  NEW(queue->asked, queue->counters);
  ALLOCATE(&scratch, ranked, count);
  for (int i = 0; i < count; i++) {
    ASSERT(queue->cost[list[i]] > 0);
    ranked[i] = (Ranked){queue->cost[list[i]], list[i]};
  }
  qsort(ranked, (size_t)count, sizeof *ranked, longest_first);
  for (int l = 0; l < queue->lines; l++) {
    Line *line = &queue->line[l];
    for (int i = 0; i < count; i++) line->count += study_task(queue->study, ranked[i].index).policy == l;
    NEW(line->task, line->count);
    line->count = 0;
    for (int i = 0; i < count; i++) {
      if (study_task(queue->study, ranked[i].index).policy != l) continue;
      line->task[line->count++] = ranked[i].index;
      line->cost += ranked[i].cost;
    }
  }
  return STATUS_OK;
}

/* What the counters say, in the words of the schedule. */
static void update_known(Queue *queue) {
  for (int l = 0; l < queue->lines; l++) {
    const Line *line = &queue->line[l];
    const int64_t *now = of_line(queue->now, l);
    queue->known[l] =
        (ScheduleLine){.next = now[TAKEN] < line->count ? queue->cost[line->task[now[TAKEN]]] : 0,
                       .begun = now[TAKEN] > 0,
                       .cost = (double)now[COST] / COST_UNITS * line->cost,
                       .seconds = 1e-6 * (double)now[MICROSECONDS]};
  }
}

/* One trip to the counters: all, or those of the whole and what this rank has to report. */
static void exchange(Queue *queue, bool all) {
  int count = 0;
  for (int i = 0; i < queue->counters; i++)
    if (all || i < OF_LINES || queue->change[i] != 0) queue->asked[count++] = i;
  counter_exchange(queue->shared, count, queue->asked, queue->change, queue->now);
  if (all) queue->seen_all = clock_wall();
  memset(queue->change, 0, (size_t)queue->counters * sizeof *queue->change);
  update_known(queue);
}

Status queue_create(const Parallel *parallel, const Study *study, int count, const int *list,
                    const double *cost, Queue **out) {
  Queue *queue;
  NEW(queue, 1);
  *out = queue;
  *queue = (Queue){.study = study, .cost = cost, .rank = parallel->rank, .lines = study->file->policy_count};
  queue->counters = OF_LINES + queue->lines * OF_LINE;
  TRY(parallel_agree(parallel, fill_lines(queue, count, list)));
  TRY(counter_create(queue->counters, &queue->shared));
  update_known(queue);
  return STATUS_OK;
}

void queue_destroy(Queue *queue) {
  if (!queue) return;
  counter_destroy(queue->shared);
  for (int l = 0; l < queue->lines && queue->line; l++) free(queue->line[l].task);
  free(queue->line);
  free(queue->known);
  free(queue->change);
  free(queue->now);
  free(queue->asked);
  free(queue);
}

/* The line is chosen by what earlier trips reported; the trip that takes the ticket brings what is new. */
int queue_take(Queue *queue) {
  for (int l; (l = schedule_choose(queue->lines, queue->known, queue->rank)) >= 0;) {
    of_line(queue->change, l)[TAKEN] = 1;
    exchange(queue, clock_wall() - queue->seen_all >= LOOK_AT_ALL);
    const int64_t ticket = of_line(queue->now, l)[TAKEN] - 1;
    if (ticket < queue->line[l].count) return queue->line[l].task[ticket];
  }
  return -1;
}

double queue_expect(const Queue *queue, int task) {
  const int l = study_task(queue->study, task).policy;
  const double mean = schedule_speed(queue->lines, queue->known, l);
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
  exchange(queue, false);
  return queue->now[STOP] > 0;
}

QueueState queue_look(Queue *queue) {
  exchange(queue, true);
  return queue_seen(queue);
}

QueueState queue_seen(const Queue *queue) {
  double work = 0, finished = 0;
  for (int l = 0; l < queue->lines; l++) {
    const double speed = schedule_speed(queue->lines, queue->known, l);
    work += speed * queue->line[l].cost;
    finished += speed * queue->known[l].cost;
  }
  return (QueueState){.done = queue->now[DONE],
                      .failed = queue->now[FAILED],
                      .share = work > 0 ? finished / work : 0,
                      .stopped = queue->now[STOP] > 0};
}
