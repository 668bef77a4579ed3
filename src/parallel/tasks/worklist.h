/* Which tasks come next: those expected to take longest, so that short ones are left to fill the end. The
 * expectation is the size of a task (study_task_size) times the seconds per size of its policy's finished
 * tasks: the size tells how the time grows with the setting, but not how fast each sampler is.
 *
 * So that any number of ranks can share counters, every group of ranks has its own counters for its share of
 * the tasks, and short tasks are taken several at a time. */
#pragma once

#include <stdbool.h>

/* The tasks of one policy in the share of a group, largest first. */
typedef struct {
  int left; /* tasks that nobody has taken */
  bool begun; /* one was taken */
  double next; /* size of the first task left */
  double size, seconds; /* sums over finished tasks */
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

/* Returns the seconds per unit of size of a line: measured on the line or, before its first task is finished,
 * on all lines together; 0 when nothing is finished. */
double worklist_speed(int count, const WorkLine *lines, int line);

/* Returns the line to take from, -1 when nothing is left. While nothing is finished sizes alone decide.
 * Each policy is started once before any line is preferred for its length, so that its speed is known early;
 * `rank` spreads these first choices. */
int worklist_choose(int count, const WorkLine *lines, int rank);

/* Returns how many tasks of the line to take at once: enough to last about a second, but not more than a part
 * of what remains for each of the group's `ranks`, so that all end together. It is one while the speed of the
 * line is unknown. */
int worklist_batch(int count, const WorkLine *lines, int line, double ranks);
