/* Progress on stderr: a bar on a terminal, whole lines elsewhere; done of total, rate, time left. Rank 0
 * only. */
#pragma once

#include <stdbool.h>

typedef enum { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_NONE } ProgressMode;

typedef struct {
  const char *what; /* "learning priors", "running tasks" */
  bool shown, terminal;
  double start, last; /* seconds */
  double share; /* of the work of the whole job, whose time left is told */
} Progress;

/* Begins the progress of a job that does this work alone; where more follows, set `share`. */
Progress progress_begin(ProgressMode mode, bool is_rank_zero, const char *what);
/* Returns whether an update now would print. */
bool progress_is_due(const Progress *progress);
/* Reports that `done` of `total` are finished, of the work that fraction (0 .. 1); prints when enough time
 * has passed: as whole lines every 5 s at first, then after each tenth of the time so far, at last every 5
 * min. */
void progress_update(Progress *progress, long done, long total, double fraction);
/* Reports on a terminal how much of work without a known end is done, "12 iterations, 40 s"; prints when
 * enough time has passed. */
void progress_count(Progress *progress, long done, const char *unit);
/* Returns the seconds left when `whole` (0 .. 1) of the work took `elapsed` seconds; NaN while that says
 * little: less than a tenth is done, within the first minute. */
double progress_left(double elapsed, double whole);
/* Prints the last line: how many, and how long it took. */
void progress_end(Progress *progress, long done, long total);
