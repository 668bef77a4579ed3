/* The tasks that all ranks take their work from: a line for each policy, longest first, and shared counters
 * of how far each line is and how long its tasks took (parallel/worklist.h chooses among lines). Every group
 * of ranks has counters of its own, on one of its ranks, of its part of the tasks; a rank that finds nothing
 * left there goes on with the next group's part. Short tasks are taken several at a time; those that a rank
 * has taken when it stops are not done. What a rank has finished reaches the others within about a second, a
 * failure before the rank begins another task. */
#pragma once

#include "parallel/parallel.h"
#include "study/study.h"

typedef struct Queue Queue;

/* What is finished, over all ranks. */
typedef struct {
  int64_t done, failed;
  bool stopped; /* a rank asked for the end */
} QueueState;

/* Creates a queue of the tasks list[count] of the study, which cost[] (by task) units each, for `groups` <=
 * ranks groups. Collective; the caller ends with queue_destroy, also after an error. */
Status queue_create(const Parallel *parallel, const Study *study, int groups, int count, const int *list,
                    const double *cost, Queue **out);
/* Destroys a queue; NULL is allowed. Collective. */
void queue_destroy(Queue *queue);

/* Returns the next task for this rank, or -1 when none is left. */
int queue_take(Queue *queue);
/* Returns the seconds that a task will take, or a little more, as far as this rank can estimate; 0 if it
 * cannot. */
double queue_expect(const Queue *queue, int task);
/* Reports that this rank has finished a task; a failed one says nothing about speed. */
void queue_finish(Queue *queue, int task, bool failed, double seconds);

/* Asks all ranks to take nothing more. */
void queue_stop(Queue *queue);
/* Returns whether a rank asked for the end, as of at most a second ago. */
bool queue_is_stopped(Queue *queue);
/* Tells what this rank has finished, and sees what the others have. */
QueueState queue_look(Queue *queue);
/* Returns the same as of the last trip, without a new one. */
QueueState queue_seen(const Queue *queue);
/* Returns the share of the work that is finished, weighted by measured speeds. Takes one round trip to the
 * counters of all groups. */
double queue_share(Queue *queue);
