/* What a prior is fitted to, samples of theta or logs of past tasks, so that who shares the parts of a fit
 * need not know which: the ops of its family for the one or for the other. */
#pragma once

#include "model/prior/prior.h"

/* One of both, not owned; the other is NULL. Logs go to families that have fit_logs_part. */
typedef struct {
  const Samples *samples;
  const Logs *logs;
} FitSource;

/* Returns the doubles of a part, out[fit_source_part_size]. Then come the parts, and the prior of all
 * parts[parts, size]. */
size_t fit_source_part_size(const FitSource *source, const PriorOps *family, const PriorFit *fit);
Status fit_source_part(const FitSource *source, const PriorOps *family, const PriorFit *fit, int part,
                       double *out);
Status fit_source_assemble(Arena *memory, const FitSource *source, const PriorOps *family,
                           const PriorFit *fit, const double *parts, Prior *out);

/* Fits all parts here, in order, and assembles them. */
Status fit_source_whole(Arena *memory, const FitSource *source, const PriorOps *family, const PriorFit *fit,
                        Prior *out);
