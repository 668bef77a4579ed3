/* What a prior is fitted to: samples of theta or logs of past tasks. These functions call the family's ops
 * for the one or the other, so that code that shares out the parts of a fit need not know which. */
#pragma once

#include "model/prior/prior.h"

/* One of the two, not owned; the other is NULL. Logs go to families that have fit_logs_part. */
typedef struct {
  const Samples *samples;
  const Logs *logs;
} FitSource;

/* Returns the number of doubles in a part. fit_source_part fits one, out[fit_source_part_size];
 * fit_source_assemble makes the prior from all parts[parts, size]. */
size_t fit_source_part_size(const FitSource *source, const PriorOps *family, const PriorFit *fit);
Status fit_source_part(const FitSource *source, const PriorOps *family, const PriorFit *fit, int part,
                       double *out);
Status fit_source_assemble(Arena *memory, const FitSource *source, const PriorOps *family,
                           const PriorFit *fit, const double *parts, Prior *out);

/* Fits all parts in this process, in order, and assembles them. */
Status fit_source_whole(Arena *memory, const FitSource *source, const PriorOps *family, const PriorFit *fit,
                        Prior *out);
