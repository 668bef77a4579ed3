/* The results that a folder already holds, so that they are not replaced by fewer, or by those of another
 * study. */
#pragma once

#include "study/study.h"

typedef struct {
  int policies;
  int64_t runs; /* 0: there are no results, or they are of another version of the study */
  bool edited; /* they are */
  signed char *status; /* [setting, policy, runs], RunStatus */
} Former;

/* Reads the outcomes in DIR/results.nc; those of another version of the study count as none. A damaged file
 * is set aside, reported, and counts as none. STATUS_RESUME naming the key when it belongs to a study of
 * another kind or name, STATUS_FILE when it is not a results file of this program. */
Status former_read(Arena *memory, const char *directory, const Study *study, Former *out);

/* Returns how many runs of a cell succeeded in the former results but not in status[runs]. */
int64_t former_lost(const Former *former, size_t setting, size_t policy, int64_t runs,
                    const signed char *status);
