/* Learning priors on all ranks: the independent parts of every fit (stages of a diffusion model) are taken by
 * ranks from a shared counter, and the result is the same for any number of ranks. */
#pragma once

#include "model/prior/fit_source.h"
#include "parallel/parallel.h"
#include "parallel/progress.h"
#include "study/study.h"

/* Fits one prior to what all ranks have; the result exists on rank 0 only. `stop` as below, or NULL.
 * Collective. */
Status prepare_fit(Arena *memory, const Parallel *parallel, const PriorOps *family, const PriorFit *fit,
                   const FitSource *source, ProgressMode mode, bool (*stop)(void), Prior *out);

/* Fits every distinct prior that the study's tasks need and that DIR/priors lacks, and notes on stderr which
 * priors, files of the user's among them, fail their own check. `stop` is asked between parts and may end the
 * work (STATUS_STOPPED; priors that are finished stay). `share`: what this is of the work of the whole job.
 * Collective. */
Status prepare_study(const Parallel *parallel, const Study *study, const char *directory, ProgressMode mode,
                     double share, bool (*stop)(void));
