/* The queue from which all ranks take tasks: a line for each policy, longest task first, and shared counters
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

/* Creates a queue of the study's tasks list[count], where task i costs cost[i] units, for `groups` <= ranks
 * groups. Collective; the caller must call queue_destroy, even after an error. */
Status queue_create(const Study *study, int groups, int count, const int *list, const double *cost,
                    Queue **out);
/* Destroys a queue; NULL is allowed. Collective. */
void queue_destroy(Queue *queue);

/* Returns the next task for this rank, or -1 when none is left. */
int queue_take(Queue *queue);
/* Returns the seconds that a task will take, or slightly more, as far as this rank can estimate; 0 if it
 * cannot. */
double queue_expect(const Queue *queue, int task);
/* Reports that this rank has finished a task; a failed one says nothing about speed. */
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

/* Which tasks come next: those expected to take longest, so that short ones are left to fill the end. The
 * expectation comes from the study's cost model, corrected for each policy by the time its finished tasks
 * took: the model knows how cost grows with the setting, but not how fast each sampler is.
 *
 * So that any number of ranks can share counters, every group of ranks has its own counters for its share of
 * the tasks, and short tasks are taken several at a time. */

/* The tasks of one policy in the share of a group, longest first by the model. */
typedef struct {
  int left; /* tasks that nobody has taken */
  bool begun; /* one was taken */
  double next; /* cost of the first task left */
  double cost, seconds; /* sums over finished tasks */
} WorkLine;

/* Returns the number of groups for this number of ranks, about 1 000 ranks in each. */
int worklist_groups(int ranks);
/* Returns the group of a rank. */
int worklist_group_of_rank(int rank, int ranks, int groups);
/* Returns the number of groups, its own included, in whose shares a rank looks for work. It does not visit
 * every group: each share is emptied by its own group, and visits of all ranks to all groups would be most of
 * the traffic. */
int worklist_visits(int groups);
/* Counts the tasks of a line of `count` that are in the share of a group: group, group + groups, ... */
int worklist_part(int count, int group, int groups);

/* Returns the seconds per unit of cost of a line: measured on the line or, before its first task is finished,
 * on all lines together; 0 when nothing is finished. */
double worklist_speed(int count, const WorkLine *lines, int line);

/* Returns the line to take from, -1 when nothing is left. While nothing is finished the model alone decides.
 * Each policy is started once before any line is preferred for its length, so that its speed is known early;
 * `rank` spreads these first choices. */
int worklist_choose(int count, const WorkLine *lines, int rank);

/* Returns how many tasks of the line to take at once: enough to last about a second, but not more than a part
 * of what remains for each of the group's `ranks`, so that all end together. It is one while the speed of the
 * line is unknown. */
int worklist_batch(int count, const WorkLine *lines, int line, double ranks);
