/* The queue from which all ranks take tasks: a line for each policy, largest task first, and shared counters
 * of how far each line has got and how long its tasks took (worklist_choose chooses among lines). Each
 * group of ranks has a share of the tasks, with its own counters on one of its ranks; a rank that finds
 * nothing left there continues with the next group's share. Short tasks are taken several at a time; those
 * that a rank still holds when it stops are not done. What a rank has finished reaches the others within
 * about a second, a failure before the rank begins another task. */
#pragma once

#include "parallel/parallel.h"
#include "study/study.h"

typedef struct Queue Queue;

/* What is finished, over all ranks. */
typedef struct {
  int64_t done, failed;
  bool stopped; /* a rank asked to stop */
} QueueState;

/* Creates a queue of the study's tasks list[count], where task i has size[i], for `groups` <= ranks groups.
 * Collective; the caller must call queue_destroy, even after an error. */
Status queue_create(const Study *study, int groups, int count, const int *list, const double *size,
                    Queue **out);
/* Destroys a queue; NULL is allowed. Collective. */
void queue_destroy(Queue *queue);

/* Returns the next task for this rank, or -1 when none is left. */
int queue_take(Queue *queue);
/* Returns the number, from 0, of the next part that ranks should run together, on behalf of a group of them.
 * What the parts are, and whether there are so many, the callers know. */
int queue_take_part(Queue *queue);
/* Returns the seconds that a task will take, or slightly more, as far as this rank can estimate; 0 if it
 * cannot. */
double queue_expect(const Queue *queue, int task);
/* Reports that this rank has finished a task; one that failed or has no size, being part of a larger piece of
 * work, says nothing about speed. */
void queue_finish(Queue *queue, int task, bool failed, double seconds);

/* Asks all ranks to take no more tasks. */
void queue_stop(Queue *queue);
/* Returns whether a rank asked to stop, as of at most a second ago. */
bool queue_is_stopped(Queue *queue);
/* Reports what this rank has finished, and returns what all ranks have. */
QueueState queue_look(Queue *queue);
/* Returns the same as of the last trip to the counters, without a new trip. */
QueueState queue_seen(const Queue *queue);
/* Returns the share of the work that is finished, weighted by measured speeds. Takes one round trip to the
 * counters of all groups. */
double queue_share(Queue *queue);
