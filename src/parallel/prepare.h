/* Learning the priors of a study on all ranks, before its tasks. */
#pragma once

#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study.h"

/* Fits every distinct prior that the study's tasks need and that DIR/priors lacks, and notes on stderr which
 * priors, files of the user's among them, fail their own check. `stop` is asked between parts and may end the
 * work (STATUS_STOPPED; priors that are finished stay). `share`: what this is of the work of the whole job.
 * Collective. */
Status prepare_study(const Parallel *parallel, const Study *study, const char *directory, ProgressMode mode,
                     double share, bool (*stop)(void));
