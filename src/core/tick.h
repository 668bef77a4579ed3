/* What long work calls now and then, and where it may end early. */
#ifndef CORE_TICK_H
#define CORE_TICK_H

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

#endif
