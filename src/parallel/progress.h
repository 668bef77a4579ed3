/* Progress on stderr: a bar on a terminal, whole lines elsewhere; done of total, rate, time left. Rank 0
 * only. */
#pragma once

#include <stdbool.h>

typedef enum { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_NONE } ProgressMode;

typedef struct {
  const char *what; /* "learning priors", "running tasks" */
  bool shown, terminal;
  double start, last; /* seconds */
} Progress;

/* Begins the progress of this work; the time left is that of the work alone, not of what follows. */
Progress progress_begin(ProgressMode mode, const char *what);
/* Returns whether an update now would print. */
bool progress_is_due(const Progress *progress);
/* Reports that `done` of `total` are finished, which is this fraction (0 .. 1) of the work. Prints if enough
 * time has passed: whole lines come every 5 s at first, later whenever the time has grown by about a tenth,
 * and at least every 5 min. */
void progress_update(Progress *progress, long done, long total, double fraction);
/* Reports the progress of work without a known end, "12 iterations, 40 s"; prints if enough time has passed.
 */
void progress_count(Progress *progress, long done, const char *unit);
/* Returns the seconds left when `whole` (0 .. 1) of the work took `elapsed` seconds; NaN while it is too
 * early to say: less than a tenth is done, within the first minute. */
double progress_left(double elapsed, double whole);
/* Prints the last line: how many, and how long it took. */
void progress_end(Progress *progress, long done, long total);
