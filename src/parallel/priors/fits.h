/* Fits of priors on all ranks. Ranks take the independent parts of a fit (stages of a diffusion model) from a
 * shared counter; the result is the same on any number of ranks. */
#pragma once

#include "core/core_tick.h"
#include "model/prior/prior.h"
#include "parallel/parallel.h"
#include "parallel/progress.h"

/* One prior to fit: its parts are spread over ranks, and one rank makes the prior of them. */
typedef struct {
  const PriorOps *family;
  const PriorFit *fit;
  FitSource source;
  int parts, done; /* done: parts that are fitted, on all ranks */
  size_t part_size;
  double *values; /* [parts, part_size]; zero where another rank fitted */
  double seconds; /* CPU seconds spent here */
} Fit;

/* Fits the parts of all `fits`, in order. `tick` is called between parts and between their steps, with the
 * share of the work that is done, as far as it is known, and may end the work (STATUS_STOPPED). All ranks
 * then have the values of all parts, or of those that were done before the stop. Collective. */
Status fits_run(Arena *memory, int count, Fit *fits, Tick tick);
/* Makes the prior of a fit, on one rank. */
Status fits_assemble(Arena *memory, const Fit *fit, Prior *out);
/* Fits one prior to data that all ranks have, and shows its progress; the result exists on rank 0 only.
 * `tick` as above. Collective. */
Status fits_run_one(Arena *memory, const PriorOps *family, const PriorFit *fit, const FitSource *source,
                    ProgressMode mode, Tick tick, Prior *out);
