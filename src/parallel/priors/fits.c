#include "parallel/priors/fits.h"

#include "core/clock.h"

/* What the steps of a part report to. */
typedef struct {
  Tick tick;
  int64_t part, parts; /* the one that is being fitted; of all fits */
} FitsTick;

static bool fits_tick(void *context, double fraction) {
  const FitsTick *self = context;
  return core_tick_goes_on(self->tick, ((double)self->part + fraction) / (double)self->parts);
}

/* Fits a part of `fits`, counted over all of them. */
static Status fits_fit_part(Fit *fits, int64_t part) {
  Fit *fit = fits;
  while (part >= fit->parts) part -= fit++->parts;
  const double start = clock_cpu();
  TRY(fit->family->fit_part(fit->fit, &fit->source, (int)part, fit->values + (size_t)part * fit->part_size));
  fit->seconds += clock_cpu() - start;
  fit->done++;
  return STATUS_OK;
}

/* Takes parts of all fits, in order, from the shared counter and fits them until none is left. */
static Status fits_take_shared_parts(Counters *counters, int count, Fit *fits, Tick tick) {
  FitsTick own = {.tick = tick};
  Status status = STATUS_OK;
  for (int f = 0; f < count; f++) own.parts += fits[f].parts;
  const Tick before = core_tick_exchange((Tick){fits_tick, &own});
  while (status == STATUS_OK && (own.part = parallel_counter_add(counters, 0, 1)) < own.parts) {
    status = core_tick_check(0);
    if (status == STATUS_OK) status = fits_fit_part(fits, own.part);
  }
  core_tick_exchange(before);
  if (status != STATUS_STOPPED) return status;
  return status_set(STATUS_STOPPED, "stopped early while learning priors; run again with --resume");
}

Status fits_run(Arena *memory, int count, Fit *fits, Tick tick) {
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
  status = fits_take_shared_parts(counters, count, fits, tick);
  status = parallel_agree(status);
  parallel_counter_destroy(counters);
  if (status != STATUS_OK && status != STATUS_STOPPED) return status;
  for (int f = 0; f < count; f++) {
    fits[f].seconds = parallel_sum(fits[f].seconds);
    fits[f].done = (int)parallel_sum(fits[f].done);
    parallel_collect(fits[f].values, (size_t)fits[f].parts * fits[f].part_size * sizeof *fits[f].values);
  }
  return status;
}

Status fits_assemble(Arena *memory, const Fit *fit, Prior *out) {
  Status status = fit_source_assemble(memory, &fit->source, fit->family, fit->fit, fit->values, out);
  out->seconds_fit = fit->seconds;
  return status;
}

/* The progress of a single fit. */
typedef struct {
  Progress shown;
  Tick tick;
  int parts;
  long steps;
} FitsProgress;

static bool fits_show_progress(void *context, double fraction) {
  FitsProgress *self = context;
  self->steps++;
  if (self->parts == 1 && fraction == 0)
    progress_count(&self->shown, self->steps, "steps");
  else
    progress_update(&self->shown, (long)(fraction * self->parts), self->parts, fraction);
  return core_tick_goes_on(self->tick, fraction);
}

Status fits_run_one(Arena *memory, const PriorOps *family, const PriorFit *fit, const FitSource *source,
                    ProgressMode mode, Tick tick, Prior *out) {
  SCRATCH_ARENA(scratch);
  Fit one = {.family = family, .fit = fit, .source = *source};
  FitsProgress progress = {
      .shown = progress_begin(mode, "learning the prior"), .tick = tick, .parts = prior_parts(family, fit)};
  TRY(fits_run(&scratch, 1, &one, (Tick){fits_show_progress, &progress}));
  progress_end(&progress.shown, one.parts, one.parts);
  return parallel_agree(parallel_rank() == 0 ? fits_assemble(memory, &one, out) : STATUS_OK);
}
