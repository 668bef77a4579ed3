#include "parallel/priors/fits.h"

#include "core/clock.h"

/* Takes parts of all fits, in order, from the shared counter and fits them until none is left. */
static Status fits_take_shared_parts(Counters *counters, int count, Fit *fits, bool (*stop)(void),
                                     Progress *progress) {
  int64_t total = 0, next;
  for (int f = 0; f < count; f++) total += fits[f].parts;
  while ((next = parallel_counter_add(counters, 0, 1)) < total) {
    progress_update(progress, (long)next, (long)total, (double)next / (double)total);
    if (stop && stop())
      return status_set(STATUS_STOPPED, "stopped early while learning priors; run again with --resume");
    Fit *fit = fits;
    while (next >= fit->parts) next -= fit++->parts;
    const double start = clock_cpu();
    TRY(fit->family->fit_part(fit->fit, &fit->source, (int)next,
                              fit->values + (size_t)next * fit->part_size));
    fit->seconds += clock_cpu() - start;
  }
  return STATUS_OK;
}

Status fits_run(Arena *memory, int count, Fit *fits, bool (*stop)(void), Progress *progress) {
  Status status = STATUS_OK;
  for (int f = 0; f < count && status == STATUS_OK; f++) {
    Fit *fit = &fits[f];
    fit->parts = prior_parts(fit->family, fit->fit);
    fit->part_size = fit->family->part_size(fit->fit, fit_source_dimension(&fit->source));
    status =
        arena_new(memory, (void **)&fit->values, (size_t)fit->parts * fit->part_size, sizeof *fit->values);
  }
  TRY(parallel_agree(status));
  Counters *counters;
  TRY(parallel_counter_create(1, 1, &counters));
  status = fits_take_shared_parts(counters, count, fits, stop, progress);
  status = parallel_agree(status);
  parallel_counter_destroy(counters);
  TRY(status);
  for (int f = 0; f < count; f++) {
    fits[f].seconds = parallel_sum(fits[f].seconds);
    parallel_collect(fits[f].values, (size_t)fits[f].parts * fits[f].part_size * sizeof *fits[f].values);
  }
  return STATUS_OK;
}

Status fits_assemble(Arena *memory, const Fit *fit, Prior *out) {
  Status status = fit_source_assemble(memory, &fit->source, fit->family, fit->fit, fit->values, out);
  out->seconds_fit = fit->seconds;
  return status;
}

Status fits_run_one(Arena *memory, const PriorOps *family, const PriorFit *fit, const FitSource *source,
                    ProgressMode mode, bool (*stop)(void), Prior *out) {
  Fit one = {.family = family, .fit = fit, .source = *source};
  Progress progress = progress_begin(mode, "learning the prior");
  SCRATCH_ARENA(scratch);
  TRY(fits_run(&scratch, 1, &one, stop, &progress));
  progress_end(&progress, one.parts, one.parts);
  return parallel_agree(parallel_rank() == 0 ? fits_assemble(memory, &one, out) : STATUS_OK);
}
