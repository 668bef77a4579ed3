/* The results that stand in a folder already, so that they are not replaced by fewer, or by those of another
 * study. */
#pragma once

#include "study/study.h"

typedef struct {
  int policies;
  int64_t runs; /* 0: there are no results */
  signed char *status; /* [setting, policy, runs], RunStatus */
} Former;

/* Reads what DIR/results.nc has. One that is damaged is set aside, reported, and counts as none.
 * STATUS_RESUME naming the key when it is of another configuration, STATUS_FILE when it is no results file
 * of this program. */
Status former_read(Arena *memory, const char *directory, const Study *study, Former *out);

/* Returns how many runs of a cell are done in the former results and not in status[runs]. */
int64_t former_lost(const Former *former, size_t setting, size_t policy, int64_t runs,
                    const signed char *status);
