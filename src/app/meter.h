/* CPU seconds of a piece of work, beside what this core could have done in them at its peak. The peaks are
 * tried again after every few milliseconds of the work, and the time that takes is left out: on a shared
 * machine the speed of a core changes from second to second, its share of the peak much less. */
#pragma once

#include "core/peak.h"

/* What one core does in a second: floating-point operations, and bytes to and from memory. */
typedef struct {
  double floats, doubles, bytes;
} MeterRates;

typedef struct {
  double seconds; /* of the work since meter_clear, in whole parts until meter_finish */
  MeterRates possible; /* operations and bytes at the peaks in that time */
  MeterRates best; /* the highest rates of all tries */
  PeakMemory memory;
  /* About the part that is open: */
  MeterRates now;
  double part; /* CPU seconds of the work */
  double since; /* CPU seconds of this process */
} Meter;

/* Tries the peaks a few times. `ranks` do this at once. The caller ends with meter_destroy, also after an
 * error. */
Status meter_create(int ranks, Meter *out);
void meter_destroy(Meter *meter);
void meter_clear(Meter *meter);
/* Starts a piece of work that goes on from meter_start to meter_stop, as often and as shortly as one
 * likes: a part is many such pieces, and `seconds` changes when there are enough. meter_mark stops and
 * starts; meter_finish takes in what is left after the last meter_stop. */
void meter_start(Meter *meter);
void meter_stop(Meter *meter);
void meter_mark(Meter *meter);
void meter_finish(Meter *meter);
