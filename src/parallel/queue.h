/* The tasks that all ranks take their work from: a line for each policy, longest first, and shared counters
 * of how far each line is and how long its tasks took (parallel/schedule.h chooses among lines). What a rank
 * has finished reaches the others when it takes its next task, in one trip. */
#ifndef PARALLEL_QUEUE_H
#define PARALLEL_QUEUE_H

#include "parallel/parallel.h"
#include "study/study.h"

typedef struct Queue Queue;

/* What is finished, over all ranks. */
typedef struct {
  int64_t done, failed;
  double share; /* of the work, by measured speeds */
  bool stopped; /* a rank asked for the end */
} QueueState;

/* Tasks list[count] of the study, which cost[] (by task) units each. Collective; the caller ends with
 * queue_destroy, also after an error. */
Status queue_create(const Parallel *parallel, const Study *study, int count, const int *list,
                    const double *cost, Queue **out);
/* Collective. NULL is allowed. */
void queue_destroy(Queue *queue);

/* The next task for this rank, or -1 when none is left. */
int queue_take(Queue *queue);
/* Seconds that a task will take, or a little more, as far as this rank can estimate; 0 if it cannot. */
double queue_expect(const Queue *queue, int task);
/* This rank has finished a task; a failed one says nothing about speed. */
void queue_finish(Queue *queue, int task, bool failed, double seconds);

/* Ask all ranks to take nothing more. */
void queue_stop(Queue *queue);
/* Whether a rank asked for the end. */
bool queue_is_stopped(Queue *queue);
/* Tell what this rank has finished, and see what the others have. */
QueueState queue_look(Queue *queue);
/* The same as of the last trip, without a new one. */
QueueState queue_seen(const Queue *queue);

#endif
