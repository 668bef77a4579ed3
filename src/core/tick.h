/* What long work calls now and then, and where it may end early. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

/* Called between the parts of a task, and while it waits for another process, with the share of its work that
 * is done, as far as it is known; returns false to give the task up. A NULL `tick` never does. */
typedef struct {
  bool (*tick)(void *context, double fraction_done);
  void *context;
} Tick;

static inline bool tick_goes_on(Tick tick, double fraction_done) {
  return !tick.tick || tick.tick(tick.context, fraction_done);
}

/* Sets what the fits in this thread ask between their steps, and returns what it was. A tick that has given
 * up once must do so again: loops that end early leave it to a caller to ask why. */
Tick tick_exchange(Tick tick);
/* Returns whether the tick of this thread lets a fit go on. */
bool tick_allows(void);
/* Returns STATUS_STOPPED where it does not. */
Status tick_check(void);
