/* Which task comes next: the one that is expected to take longest, so that short ones are left to fill the
 * end. What is expected comes from the study's cost model, corrected policy by policy with what the finished
 * tasks took: the model knows how cost grows with the setting, not how fast each sampler is. */
#ifndef PARALLEL_SCHEDULE_H
#define PARALLEL_SCHEDULE_H

#include <stdbool.h>

/* The tasks of one policy, longest first by the model. */
typedef struct {
  double next; /* cost of the first that nobody has taken; 0: none is left */
  bool begun; /* one was taken */
  double cost, seconds; /* of those that are finished: sums */
} ScheduleLine;

/* Seconds for a unit of cost of a line: measured, or that of all lines together, or 0 when nothing is
 * finished. */
double schedule_speed(int count, const ScheduleLine *lines, int line);

/* The line to take from, -1 when nothing is left; by the model alone while nothing is finished. Each policy
 * is begun once before any line is preferred for its length, so that its speed is known early; `rank` spreads
 * these first choices. */
int schedule_choose(int count, const ScheduleLine *lines, int rank);

#endif
