/* CPU seconds of a piece of work, beside what this core could have done in them at its peak. The peaks are
 * tried anew every few milliseconds between parts of the work, and the time that takes is left out: on a
 * shared machine the speed of a core changes from second to second, its share of the peak much less. */
#ifndef APP_METER_H
#define APP_METER_H

#include "core/peak.h"

/* What one core does in a second: floating-point operations, and bytes to and from memory. */
typedef struct {
  double floats, doubles, bytes;
} MeterRates;

typedef struct {
  double seconds; /* of the work since meter_clear */
  MeterRates possible; /* operations and bytes at the peaks in that time */
  MeterRates best; /* the highest rates of all tries */
  /* Of the part that is open. */
  PeakMemory memory;
  MeterRates now;
  double since; /* CPU seconds of this process */
} Meter;

/* Tries the peaks a few times. The caller ends with meter_destroy, also after an error. */
Status meter_create(Meter *out);
void meter_destroy(Meter *meter);
void meter_clear(Meter *meter);
/* The work goes on from here; meter_mark is called between its parts, as often as one likes; meter_stop ends
 * it until the next meter_start. */
void meter_start(Meter *meter);
void meter_mark(Meter *meter);
void meter_stop(Meter *meter);

#endif
