/* A callback that long work calls now and then, and that can end it early. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

/* `tick` is called between the parts of a task, and while the task waits for another process, with the share
 * of its work that is done, as far as it is known; it returns false to stop the task. A NULL `tick` never
 * does. */
typedef struct {
  bool (*tick)(void *context, double fraction_done);
  void *context;
} Tick;

static inline bool core_tick_goes_on(Tick tick, double fraction_done) {
  return !tick.tick || tick.tick(tick.context, fraction_done);
}

/* Sets the tick that fits in this thread call between their steps, and returns the previous one. A tick that
 * has returned false must do so again: loops that end early leave it to their caller to ask why. */
Tick core_tick_exchange(Tick tick);
/* Returns whether the tick of this thread lets a fit continue, of which this fraction is done; 0: not known.
 */
bool core_tick_allows(double fraction_done);
/* Returns STATUS_STOPPED if it does not. */
Status core_tick_check(double fraction_done);
