/* Removes from a folder the finished tasks that its study does not have, as edits leave them. */
#pragma once

#include "study/study.h"

typedef struct {
  int64_t records, bytes; /* that were removed */
} PruneCounts;

/* Writes the journals again without the records of tasks that the study does not have; one that has no other
 * records is removed. The folder is locked meanwhile. Called on one rank. */
Status prune_folder(const char *directory, const Study *study, PruneCounts *counts);
