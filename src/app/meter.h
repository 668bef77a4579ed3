/* The CPU seconds of a piece of work, compared with what this core could have done in them at its peak. The
 * peaks are measured again after every few hundredths of a second of work, which is not counted as work: on a
 * shared machine the speed of a core changes from second to second, but the share of the peak that work
 * reaches changes much less. */
#pragma once

#include "core/peak.h"

/* What one core does in a second: floating-point operations, and bytes to and from memory. */
typedef struct {
  double floats, doubles, bytes;
} MeterRates;

typedef struct {
  double seconds; /* of the work since meter_clear; only whole parts until meter_finish */
  MeterRates possible; /* operations and bytes that the peaks allow in that time */
  MeterRates best; /* the highest rates measured so far */
  PeakMemory memory;
  /* State of the open part: */
  MeterRates now;
  double part; /* CPU seconds of the work */
  double since; /* CPU seconds of this process */
} Meter;

/* Measures the peaks a few times, while all `ranks` do the same. The caller must call meter_destroy, even
 * after an error. */
Status meter_create(int ranks, Meter *out);
void meter_destroy(Meter *meter);
void meter_clear(Meter *meter);
/* Times a piece of work, from meter_start to meter_stop. Pieces may be many and short: they are summed into
 * parts, and `seconds` grows when a part is complete. meter_mark stops and starts again; meter_finish adds
 * what is left after the last meter_stop. */
void meter_start(Meter *meter);
void meter_stop(Meter *meter);
void meter_mark(Meter *meter);
void meter_finish(Meter *meter);
