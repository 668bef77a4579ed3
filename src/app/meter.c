#include "app/meter.h"

#include "core/clock.h"

#include <math.h>

enum { FIRST_TRIES = 20 };
static const double PART = 0.02; /* CPU seconds of work between two measurements of the peaks */

static MeterRates bench_meter_try_peaks(Meter *meter) {
  MeterRates found = {peak_float(), peak_double(), peak_memory_rate(&meter->memory)};
  meter->best.floats = fmax(meter->best.floats, found.floats);
  meter->best.doubles = fmax(meter->best.doubles, found.doubles);
  meter->best.bytes = fmax(meter->best.bytes, found.bytes);
  return found;
}

Status meter_create(int ranks, Meter *out) {
  *out = (Meter){0};
  TRY(peak_memory_create(ranks, &out->memory));
  for (int i = 0; i < FIRST_TRIES; i++) bench_meter_try_peaks(out);
  return STATUS_OK;
}

void meter_destroy(Meter *meter) { peak_memory_destroy(&meter->memory); }

void meter_clear(Meter *meter) {
  meter->seconds = meter->part = 0;
  meter->possible = (MeterRates){0};
  meter->now = bench_meter_try_peaks(meter);
}

void meter_start(Meter *meter) { meter->since = clock_cpu(); }

void meter_finish(Meter *meter) {
  const double used = meter->part;
  const MeterRates before = meter->now, after = bench_meter_try_peaks(meter);
  meter->seconds += used;
  meter->possible.floats += used * (before.floats + after.floats) / 2;
  meter->possible.doubles += used * (before.doubles + after.doubles) / 2;
  meter->possible.bytes += used * (before.bytes + after.bytes) / 2;
  meter->now = after;
  meter->part = 0;
}

void meter_stop(Meter *meter) {
  meter->part += clock_cpu() - meter->since;
  if (meter->part >= PART) meter_finish(meter);
}

void meter_mark(Meter *meter) {
  meter_stop(meter);
  meter_start(meter);
}
