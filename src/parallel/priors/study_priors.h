/* Learns the priors of a study on all ranks, before its tasks run. */
#pragma once

#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study.h"

/* Fits every distinct prior that the study's tasks need and that DIR/priors lacks, and reports on stderr
 * which priors, including the user's own files, fail their own check. `stop`, which may be NULL, is called
 * between steps and may end the work (STATUS_STOPPED; priors that are finished stay). Collective. */
Status study_priors_fit(const Study *study, const char *directory, ProgressMode mode, bool (*stop)(void));

/* Counts the distinct priors that the study's tasks need, and those that DIR/priors has. Not collective;
 * changes nothing. */
Status study_priors_count(const Study *study, const char *directory, int *present, int *needed);
