/* Progress on stderr: a bar on a terminal, whole lines elsewhere; done of total, rate, time left. Rank 0
 * only. */
#ifndef PARALLEL_PROGRESS_H
#define PARALLEL_PROGRESS_H

#include <stdbool.h>

typedef enum { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_NONE } ProgressMode;

typedef struct {
  const char *what; /* "learning priors", "running tasks" */
  bool shown, terminal;
  double start, last; /* seconds */
} Progress;

Progress progress_begin(ProgressMode mode, bool is_rank_zero, const char *what);
/* Report that `done` of `total` are finished, of the work that fraction (0 .. 1); prints when enough time has
 * passed. */
void progress_update(Progress *progress, long done, long total, double fraction);
/* The last line: how many, and how long it took. */
void progress_end(Progress *progress, long done, long total);

#endif
