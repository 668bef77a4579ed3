#include "parallel/tasks/queue.h"

#include "core/clock.h"
#include "parallel/tasks/worklist.h"

#include <math.h>
#include <string.h>

/* The counters of a host: three for the whole queue, used on host 0 only, then three for each line, about its
 * group's share of the tasks, and on host 0 the number of parts that groups have taken, which no trip reads.
 * SIZE of finished tasks is in units of which the whole line has SIZE_UNITS. */
enum { STOP, DONE, FAILED, OF_LINES };
enum { TAKEN, SIZE, MICROSECONDS, OF_LINE };
static const double SIZE_UNITS = 1e12;

static const double ASK_AGAIN = 1; /* seconds after which a rank asks for what only others change ... */
static const double ASK_ALONG = 0.5; /* ... and for the whole when it makes a trip anyway */

typedef struct {
  int count, *task; /* largest first */
  double size; /* sum over tasks */
  double slowest; /* seconds per unit of size, the most of any task that this rank has finished */
} Line;

struct Queue {
  Arena memory; /* of the arrays */
  const Study *study;
  const double *size; /* [task_count], not owned */
  int lines, groups, counters; /* counters of a host */
  double group_ranks; /* ranks per group */
  int home,
      visited; /* this rank's group; number of groups after it to the one that the rank now takes from */
  Line *line; /* [lines], one for each policy */
  WorkLine *known; /* [lines] of the group's share, as of the last trip */
  WorkLine *all; /* [lines], scratch: size and seconds of all groups */
  int64_t *change, *now; /* [counters]: not reported yet; as of the last trip */
  CounterStop *stops; /* [counters + 2 * lines * groups], scratch: a trip */
  double seen_whole, seen_lines; /* seconds; when a trip last asked for all of these counters */
  int *next, left; /* tasks that this rank has taken but not begun */
  Counters *shared;
};

static int64_t *queue_line_counters(int64_t *counters, int line) {
  return counters + OF_LINES + line * OF_LINE;
}

static int queue_largest_first(const void *a, const void *b, void *context) {
  const double *size = ((const Queue *)context)->size;
  const int first = *(const int *)a, second = *(const int *)b;
  if (size[first] != size[second]) return size[first] < size[second] ? 1 : -1;
  return first - second;
}

static Status queue_fill_lines(Queue *queue, int count, const int *list) {
  SCRATCH_ARENA(scratch);
  int *ranked;
  ALLOCATE(&queue->memory, queue->line, queue->lines);
  ALLOCATE_ARRAYS(&queue->memory, queue->lines, &queue->known, &queue->all);
  ALLOCATE_ARRAYS(&queue->memory, queue->counters, &queue->change, &queue->now);
  ALLOCATE(&queue->memory, queue->stops, queue->counters + 2 * queue->lines * queue->groups);
  ALLOCATE(&scratch, ranked, count);
  for (int i = 0; i < count; i++) {
    ASSERT(queue->size[list[i]] > 0);
    ranked[i] = list[i];
  }
  qsort_r(ranked, (size_t)count, sizeof *ranked, queue_largest_first, queue);
  for (int l = 0; l < queue->lines; l++) {
    Line *line = &queue->line[l];
    for (int i = 0; i < count; i++) line->count += study_task(queue->study, ranked[i]).policy == l;
    ALLOCATE(&queue->memory, line->task, line->count);
    line->count = 0;
    for (int i = 0; i < count; i++) {
      if (study_task(queue->study, ranked[i]).policy != l) continue;
      line->task[line->count++] = ranked[i];
      line->size += queue->size[ranked[i]];
    }
  }
  return STATUS_OK;
}

static int queue_group_in_turn(const Queue *queue) { return (queue->home + queue->visited) % queue->groups; }

/* Returns the place of the task with this ticket in the group's share of a line. */
static int *queue_task_of_ticket(const Queue *queue, int line, int64_t ticket) {
  return &queue->line[line].task[queue_group_in_turn(queue) + ticket * queue->groups];
}

/* Translates the counters of the last trip into work lines. */
static void queue_update_known(Queue *queue) {
  for (int l = 0; l < queue->lines; l++) {
    const Line *line = &queue->line[l];
    const int64_t *now = queue_line_counters(queue->now, l);
    const int64_t left = worklist_part(line->count, queue_group_in_turn(queue), queue->groups) - now[TAKEN];
    queue->known[l] =
        (WorkLine){.left = left > 0 ? (int)left : 0,
                   .begun = now[TAKEN] > 0,
                   .next = left > 0 ? queue->size[*queue_task_of_ticket(queue, l, now[TAKEN])] : 0,
                   .size = (double)now[SIZE] / SIZE_UNITS * line->size,
                   .seconds = 1e-6 * (double)now[MICROSECONDS]};
  }
}

/* Makes one trip to the counters, to report what has changed and to read: the counters of the whole queue if
 * `whole`, and those of the group's lines, either all (`lines`) or only the changed ones. A stop or a failure
 * always includes the whole, since it may end the work. */
static void queue_exchange_counters(Queue *queue, bool whole, bool lines) {
  int count = 0;
  whole = whole || queue->change[STOP] > 0 || queue->change[FAILED] > 0;
  for (int i = 0; i < queue->counters; i++)
    if (i < OF_LINES ? whole : lines || queue->change[i] != 0)
      queue->stops[count++] =
          (CounterStop){i < OF_LINES ? 0 : queue_group_in_turn(queue), i, queue->change[i], 0};
  parallel_counter_exchange(queue->shared, count, queue->stops);
  for (int k = 0; k < count; k++) {
    queue->now[queue->stops[k].index] = queue->stops[k].now;
    queue->change[queue->stops[k].index] = 0;
  }
  if (whole) queue->seen_whole = clock_wall();
  if (lines) queue->seen_lines = clock_wall();
  queue_update_known(queue);
}

Status queue_create(const Study *study, int groups, int count, const int *list, const double *size,
                    Queue **out) {
  Queue *queue = NULL;
  const Status status = memory_new((void **)&queue, 1, sizeof *queue);
  *out = queue;
  TRY(parallel_agree(status));
  *queue = (Queue){.study = study,
                   .size = size,
                   .lines = study->file->policy_count,
                   .groups = groups,
                   .group_ranks = (double)parallel_size() / groups,
                   .home = worklist_group_of_rank(parallel_rank(), parallel_size(), groups)};
  queue->counters = OF_LINES + queue->lines * OF_LINE;
  TRY(parallel_agree(queue_fill_lines(queue, count, list)));
  TRY(parallel_counter_create(groups, queue->counters + 1, &queue->shared));
  /* Spread over a second, or all ranks would ask at the same time, again and again. */
  queue->seen_whole = queue->seen_lines = clock_wall() - ASK_AGAIN * parallel_rank() / parallel_size();
  queue_update_known(queue);
  return STATUS_OK;
}

void queue_destroy(Queue *queue) {
  if (!queue) return;
  parallel_counter_destroy(queue->shared);
  arena_free(&queue->memory);
  free(queue);
}

/* Takes tasks of the group's share. The line is chosen by what earlier trips reported; the trip that takes
 * the tickets also brings news. Returns false when nothing is left. */
static bool queue_take_batch(Queue *queue) {
  for (int l; (l = worklist_choose(queue->lines, queue->known, parallel_rank())) >= 0;) {
    const int wanted = worklist_batch(queue->lines, queue->known, l, queue->group_ranks);
    queue_line_counters(queue->change, l)[TAKEN] = wanted;
    queue_exchange_counters(queue, clock_wall() - queue->seen_whole >= ASK_ALONG,
                            clock_wall() - queue->seen_lines >= ASK_AGAIN);
    const int64_t first = queue_line_counters(queue->now, l)[TAKEN] - wanted;
    const int64_t got =
        worklist_part(queue->line[l].count, queue_group_in_turn(queue), queue->groups) - first;
    if (got <= 0) continue;
    queue->next = queue_task_of_ticket(queue, l, first);
    queue->left = got < wanted ? (int)got : wanted;
    return true;
  }
  return false;
}

int queue_take(Queue *queue) {
  if (queue->change[FAILED] > 0) queue_exchange_counters(queue, true, false);
  while (queue->left == 0 && !queue_take_batch(queue)) {
    if (queue->visited + 1 == worklist_visits(queue->groups)) return -1;
    queue_exchange_counters(queue, false, false); /* reports what is still to report of this group's share */
    queue->visited++;
    queue_exchange_counters(queue, false, true);
  }
  const int task = *queue->next;
  queue->next += queue->groups, queue->left--;
  return task;
}

int queue_take_part(Queue *queue) {
  if (queue->change[FAILED] > 0) queue_exchange_counters(queue, true, false);
  return (int)parallel_counter_add(queue->shared, queue->counters, 1);
}

double queue_expect(const Queue *queue, int task) {
  const int l = study_task(queue->study, task).policy;
  const double mean = worklist_speed(queue->lines, queue->known, l);
  return queue->size[task] * fmax(mean, queue->line[l].slowest);
}

void queue_finish(Queue *queue, int task, bool failed, double seconds) {
  const int l = study_task(queue->study, task).policy;
  Line *line = &queue->line[l];
  queue->change[failed ? FAILED : DONE]++;
  if (failed || queue->size[task] == 0) return;
  queue_line_counters(queue->change, l)[SIZE] += (int64_t)(SIZE_UNITS * (queue->size[task] / line->size));
  queue_line_counters(queue->change, l)[MICROSECONDS] += (int64_t)(1e6 * seconds);
  line->slowest = fmax(line->slowest, seconds / queue->size[task]);
}

void queue_stop(Queue *queue) { queue->change[STOP]++; }

bool queue_is_stopped(Queue *queue) {
  if (clock_wall() - queue->seen_whole >= ASK_AGAIN) queue_exchange_counters(queue, true, false);
  return queue->now[STOP] > 0;
}

QueueState queue_look(Queue *queue) {
  queue_exchange_counters(queue, true, false);
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
      for (int i = SIZE; i <= MICROSECONDS; i++)
        queue->stops[count++] = (CounterStop){g, OF_LINES + l * OF_LINE + i, 0, 0};
  parallel_counter_exchange(queue->shared, count, queue->stops);
  memset(queue->all, 0, (size_t)queue->lines * sizeof *queue->all);
  for (int k = 0; k < count; k += 2) {
    const int l = k / 2 % queue->lines;
    queue->all[l].size += (double)queue->stops[k].now / SIZE_UNITS * queue->line[l].size;
    queue->all[l].seconds += 1e-6 * (double)queue->stops[k + 1].now;
  }
  double work = 0, finished = 0;
  for (int l = 0; l < queue->lines; l++) {
    const double speed = worklist_speed(queue->lines, queue->all, l);
    work += speed * queue->line[l].size;
    finished += speed * queue->all[l].size;
  }
  return work > 0 ? finished / work : 0;
}
