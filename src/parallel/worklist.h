/* Which tasks come next: those that are expected to take longest, so that short ones are left to fill the
 * end. What is expected comes from the study's cost model, corrected policy by policy with what the finished
 * tasks took: the model knows how cost grows with the setting, not how fast each sampler is.
 *
 * So that counters can be shared by any number of ranks, every group of ranks has its own, of its part of the
 * tasks, and short tasks are taken several at a time. */
#pragma once

#include <stdbool.h>

/* The tasks of one policy in the part of a group, longest first by the model. */
typedef struct {
  int left; /* those that nobody has taken */
  bool begun; /* one was taken */
  double next; /* cost of the first that is left */
  double cost, seconds; /* of those that are finished: sums */
} WorkLine;

/* Groups that so many ranks make, of about 1 000 ranks each. */
int worklist_groups(int ranks);
/* Returns the group of a rank. */
int worklist_group_of_rank(int rank, int ranks, int groups);
/* Returns in how many parts, its own included, a rank looks for work when nothing is left in the part of its
 * group. It does not visit every one: each is emptied by its own group, and the visits of all ranks to all
 * groups would be most of the traffic. */
int worklist_visits(int groups);
/* Counts the tasks of a line of `count` that are in the part of a group: group, group + groups, ... */
int worklist_part(int count, int group, int groups);

/* Returns the seconds for a unit of cost of a line: measured, or that of all lines together, or 0 when
 * nothing is finished. */
double worklist_speed(int count, const WorkLine *lines, int line);

/* Returns the line to take from, -1 when nothing is left; by the model alone while nothing is finished. Each
 * policy is started once before any line is preferred for its length, so that its speed is known early;
 * `rank` spreads these first choices. */
int worklist_choose(int count, const WorkLine *lines, int rank);

/* Returns how many tasks of the line to take at once: as many as are expected to last a second, and not more
 * than a part of what remains for each of the group's `ranks`, so that all end together. It is one while the
 * speed of the line is unknown. */
int worklist_batch(int count, const WorkLine *lines, int line, double ranks);
