#include "app/meter.h"

#include "core/clock.h"

#include <math.h>

enum { FIRST_TRIES = 20 };
static const double PART = 0.02; /* CPU seconds of work between two tries of the peaks */

static MeterRates try_peaks(Meter *meter) {
  MeterRates found = {peak_float(), peak_double(), peak_memory_rate(&meter->memory)};
  meter->best.floats = fmax(meter->best.floats, found.floats);
  meter->best.doubles = fmax(meter->best.doubles, found.doubles);
  meter->best.bytes = fmax(meter->best.bytes, found.bytes);
  return found;
}

Status meter_create(Meter *out) {
  *out = (Meter){0};
  TRY(peak_memory_create(&out->memory));
  for (int i = 0; i < FIRST_TRIES; i++) out->now = try_peaks(out);
  return STATUS_OK;
}

void meter_destroy(Meter *meter) { peak_memory_destroy(&meter->memory); }

void meter_clear(Meter *meter) {
  meter->seconds = 0;
  meter->possible = (MeterRates){0};
}

void meter_start(Meter *meter) {
  meter->now = try_peaks(meter);
  meter->since = clock_cpu();
}

void meter_stop(Meter *meter) {
  const double used = clock_cpu() - meter->since;
  const MeterRates before = meter->now, after = try_peaks(meter);
  meter->seconds += used;
  meter->possible.floats += used * (before.floats + after.floats) / 2;
  meter->possible.doubles += used * (before.doubles + after.doubles) / 2;
  meter->possible.bytes += used * (before.bytes + after.bytes) / 2;
  meter->now = after;
}

void meter_mark(Meter *meter) {
  if (clock_cpu() - meter->since < PART) return;
  meter_stop(meter);
  meter->since = clock_cpu();
}
